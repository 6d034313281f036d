#!/usr/bin/env python
"""Django's command line."""

import os
import sys

# They read files and arguments alone. So they need no site, and none of what a site must be told before it runs.
WITHOUT_A_SITE = {"analyse_ratings", "plan_study"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")
    if WITHOUT_A_SITE.intersection(sys.argv[1:2]):
        os.environ.setdefault("DEBUG", "on")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
