"""An import from the command line in several processes. Each is started afresh and sets Django up for itself."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from uuid import UUID, uuid4

import django

PROGRESS_SECONDS = 0.5


def work_in_processes(batch_id: int, handout: int, count: int, look: Callable[[], None]) -> None:
    """Have ``count`` processes do the chunks of an import, and come back when all have left.

    ``look`` is called twice a second. What a process that was killed has left undone is free to be done.
    """
    from imagedb.models import ImportChunk  # here, because a new process imports this module before Django is set up

    # Not forked: a copy would share the parent's connections to database and bucket.
    context = multiprocessing.get_context("spawn")
    workers = [uuid4() for _ in range(count)]
    processes: list[BaseProcess] = [
        context.Process(target=_work, args=(batch_id, handout, worker), daemon=True) for worker in workers
    ]
    for process in processes:
        process.start()
    try:
        while any(process.is_alive() for process in processes):
            time.sleep(PROGRESS_SECONDS)
            look()
    finally:
        _stop(processes)
    ImportChunk.objects.filter(batch_id=batch_id, claimed_by__in=workers, is_done=False).update(claimed_at=None)


def _work(batch_id: int, handout: int, worker: UUID) -> None:
    django.setup()
    from imagedb.services.import_run import work

    work(batch_id, handout, worker)


def _stop(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
        process.join()
