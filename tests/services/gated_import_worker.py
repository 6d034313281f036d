"""The Celery application with a gate in the import: the first worker to come to it stops there and waits to be killed.

GATE_AT says where: ``commit`` is when all files of a chunk are written and nothing of it is in the database yet,
``plan`` when some of a plan is stored. The worker leaves its process id in the file that GATE names; whoever comes
later passes.
"""

import os
import time
from pathlib import Path
from typing import Any

import django

from scooter_site.celery import app

django.setup()

from imagedb.services import import_commit, import_plan  # noqa: E402 - needs the applications to be set up

__all__ = ["app"]

gate = Path(os.environ["GATE"])
module, name = {"commit": (import_commit, "_store"), "plan": (import_plan, "_new_rows")}[os.environ["GATE_AT"]]
function = getattr(module, name)


def stop_at_the_gate(*arguments: Any) -> Any:
    try:
        with gate.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return function(*arguments)
    time.sleep(600)
    raise AssertionError("nobody killed this process")


setattr(module, name, stop_at_the_gate)
