"""Run a management command on the demonstration's data, whether it is being served or not.

    python -m scooter_site.demo.manage simulate_participants demo --count 10

Background work that the command causes is done here and now.
"""

import os
import sys

from scooter_site.demo.serve import DEMO_REMOVED, VAR, environment


def main() -> None:
    if not (VAR / "demo.env").exists():
        sys.exit(f"There is no demonstration in {VAR} yet: make demo")
    os.environ.update(environment(broker=""))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
    # The next start must not bring back what was removed, nor leave out what was loaded again.
    match sys.argv[1:2]:
        case ["remove_demo"]:
            DEMO_REMOVED.touch()
        case ["load_demo"]:
            DEMO_REMOVED.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
