"""WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")

application = get_wsgi_application()

# Django would load what the addresses lead to (every view, form and the admin) at the first request, which then waits
# for a second: in each worker anew, after each restart.
get_resolver().url_patterns  # noqa: B018 - a property that loads them
