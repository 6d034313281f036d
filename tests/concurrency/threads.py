"""Run functions at the same moment, each with a database connection of its own."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def at_once(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Call all of them at once; gives each one's result, or the exception it raised, in the same order."""
    start = threading.Barrier(len(functions))

    def run(function: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            start.wait(timeout=60)
            return function()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=len(functions)) as pool:
        return list(pool.map(run, functions))


def meeting_after(function: Callable[..., Any], *, parties: int = 2) -> Callable[..., Any]:
    """The function, but that so many threads wait for each other when each has called it for the first time."""
    meeting, calls = threading.Barrier(parties), threading.local()

    def met(*arguments: Any) -> Any:
        result = function(*arguments)
        if not hasattr(calls, "first"):
            calls.first = True
            meeting.wait(timeout=30)
        return result

    return met
