"""Imports that were uploaded: hand them to a worker."""

from imagedb.models import ImportBatch
from imagedb.models.imports import ImportStatus
from imagedb.tasks import run_import
from scooter_site.common.tasks import enqueue


def request_import(batch: ImportBatch) -> None:
    """Have a worker import an uploaded archive, once the current transaction has committed.

    One that has been run waits again: rows that are in stay as they are, rows that failed are tried once more.
    """
    over = (ImportStatus.DONE, ImportStatus.FAILED)
    ImportBatch.objects.filter(pk=batch.pk, status__in=over).update(
        status=ImportStatus.WAITING, error="", finished_at=None
    )
    enqueue(run_import, batch.pk)
