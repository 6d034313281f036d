"""Background work of the catalogue. The work itself is in services."""

import logging

from imagedb.services import importing
from imagedb.services.import_run import ImportTakenOver
from scooter_site.common.tasks import enqueue, task

logger = logging.getLogger(__name__)


@task
def run_import(batch_id: int) -> None:
    """Import an uploaded archive. What goes wrong with the archive is told on the import's own page."""
    try:
        importing.run_import(batch_id)
    except (importing.ImportFailed, ImportTakenOver) as reason:
        logger.warning("Import %s: %s", batch_id, reason)


@task
def resume_interrupted_imports() -> None:
    """Hand out imports again that no worker runs."""
    for batch_id in importing.release_lost_imports():
        logger.warning("Import %s was lost; handing it out again", batch_id)
        enqueue(run_import, batch_id)
