"""Background work of the catalogue. The work itself is in services."""

import logging
from uuid import UUID, uuid4

from celery import current_task
from django.conf import settings

from imagedb.services import import_plan, import_run, import_state, uploads
from imagedb.services.import_run import Outcome
from imagedb.services.import_state import ImportTakenOver
from scooter_site.common.tasks import enqueue, task

logger = logging.getLogger(__name__)

# A task works on an import for about this long and then queues up again, so that other tasks get their turn.
SECONDS_AT_A_TIME = 60
# How soon one looks again that found all chunks in the hands of others.
SECONDS_UNTIL_NEXT_LOOK = 10


@task
def plan_import(batch_id: int) -> None:
    """Plan an import that waits, and hand out its chunks."""
    try:
        batch = import_plan.plan_import(batch_id)
    except ImportTakenOver as reason:
        logger.warning("%s", reason)
        return
    if batch is not None:
        _hand_out(batch_id, batch.handout)


@task
def work_on_import(batch_id: int, handout: int) -> None:
    """Do chunks of an import for a while. What goes wrong with it is told on the import's own page."""
    # Without a broker there is no queue to go back to: the whole import is done in one go.
    in_turns = not settings.CELERY_TASK_ALWAYS_EAGER
    outcome = import_run.work(batch_id, handout, _worker(), seconds=SECONDS_AT_A_TIME if in_turns else None)
    if in_turns and outcome is Outcome.TIME_IS_UP:
        enqueue(work_on_import, batch_id, handout)
    elif in_turns and outcome is Outcome.OTHERS_ARE_AT_IT:
        enqueue(work_on_import, batch_id, handout, countdown=SECONDS_UNTIL_NEXT_LOOK)


@task
def resume_interrupted_imports() -> None:
    """Hand out imports again that no worker is at."""
    import_state.put_right()
    for batch_id in import_state.waiting_too_long():
        logger.warning("Import %s still waits; handing it out again", batch_id)
        enqueue(plan_import, batch_id)
    for batch_id in import_state.without_workers():
        logger.warning("Nobody works on import %s; handing it out again", batch_id)
        _hand_out(batch_id, import_state.hand_out(batch_id))


@task
def abandon_stale_uploads() -> None:
    """Delete uploads that nobody goes on with."""
    if count := uploads.abandon_stale_uploads():
        logger.info("%s stale uploads were abandoned", count)


def _hand_out(batch_id: int, handout: int) -> None:
    for _ in range(settings.IMPORT_TASKS):
        enqueue(work_on_import, batch_id, handout)


def _worker() -> UUID:
    """Who works: the task's id, which stays the same when it is delivered again because its worker was lost."""
    task_id = current_task.request.id if current_task else None
    return UUID(task_id) if task_id else uuid4()
