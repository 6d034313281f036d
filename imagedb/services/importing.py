"""Import images with a manifest: the one way into the catalogue, for the command, the admin and the demo."""

import logging
from datetime import timedelta
from pathlib import Path, PurePosixPath
from types import TracebackType

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from imagedb.image_files import ArchiveFiles, FileProblem, FolderFiles, ImageFiles, find_manifest
from imagedb.manifest import Manifest, UnreadableManifest, parse
from imagedb.models import ImportBatch
from imagedb.models.imports import ImportStatus
from imagedb.services.import_run import ImportRun, ImportTakenOver, Progress
from imagedb.services.import_summary import ImportSummary
from scooter_site.common.tasks import RETRYABLE

logger = logging.getLogger(__name__)

# A running import shows a heartbeat at every row; without one for this long its worker is taken to be gone.
HEARTBEAT_TIMEOUT = timedelta(minutes=10)
# Long enough for a worker that is merely busy to take a waiting import first; handing it out twice does no harm.
WAITING_TIMEOUT = timedelta(minutes=2)


class ImportFailed(Exception):
    """Nothing could be imported at all; the message says what to do."""


def import_manifest(
    *,
    manifest: Path,
    images: Path,
    batch: ImportBatch,
    dry_run: bool = False,
    is_demo: bool = False,
    progress: Progress | None = None,
) -> ImportSummary:
    """Import the images that ``manifest`` (CSV) describes from ``images``, a folder or a ZIP archive.

    ``batch`` says visibility, licence and attribution, and keeps a record of each row. A dry run checks everything,
    decodes every image and writes nothing; its batch need not be saved. ``progress`` is called with the numbers of
    rows done and of all rows. Raises ImportFailed if nothing can be read; failed rows are in the summary.
    """
    if not manifest.is_file():
        raise ImportFailed(f"There is no manifest {manifest}.")
    if not images.exists():
        raise ImportFailed(f"There is no folder or ZIP archive {images}.")
    if not dry_run:
        batch.source_name = batch.source_name or manifest.name
        batch.status, batch.started_at, batch.heartbeat_at = ImportStatus.RUNNING, timezone.now(), timezone.now()
        batch.save()
    with _recorded_in(batch, dry_run):
        try:
            files: ImageFiles = FolderFiles(images, manifest) if images.is_dir() else ArchiveFiles(images, images.name)
        except FileProblem as error:
            raise ImportFailed(str(error)) from error
        run = ImportRun(_parse(manifest.read_bytes()), files, batch, dry_run=dry_run, is_demo=is_demo)
        return run.run(progress)


def run_import(batch_id: int) -> ImportSummary | None:
    """Import an uploaded archive that holds its manifest. Safe to run twice; goes on where it was cut off.

    Does nothing, and gives None, unless the import is waiting, or its worker is gone.
    """
    batch = _claim(batch_id)
    if batch is None:
        return None
    with _recorded_in(batch, dry_run=False), batch.archive.open("rb") as file:
        try:
            files = ArchiveFiles(file, batch.source_name or "upload")
            manifest_name = find_manifest(files.names)
            content = files.read(manifest_name)
        except FileProblem as error:
            raise ImportFailed(str(error)) from error
        files.names.remove(manifest_name)
        folder = str(PurePosixPath(manifest_name).parent)
        return ImportRun(_parse(content), files, batch, manifest_folder=folder).run()


def release_lost_imports() -> list[int]:
    """The ids of uploaded imports that no worker has taken, or whose worker is gone: they are to be run again.

    An import from the command line has no archive to go on with: it is marked as failed, saying so.
    """
    now = timezone.now()
    lost = ImportBatch.objects.filter(
        Q(status=ImportStatus.WAITING, created_at__lt=now - WAITING_TIMEOUT)
        | Q(status=ImportStatus.RUNNING, heartbeat_at__lt=now - HEARTBEAT_TIMEOUT)
        | Q(status=ImportStatus.RUNNING, heartbeat_at=None)
    )
    stopped = lost.filter(archive="").update(
        status=ImportStatus.FAILED,
        finished_at=now,
        error="The command was stopped before it was done. Rows listed as imported are in the catalogue; "
        "run it again to add the rest.",
    )
    if stopped:
        logger.warning("%s import(s) from the command line had been stopped", stopped)
    return list(lost.exclude(archive="").order_by("id").values_list("id", flat=True))


def _parse(content: bytes) -> Manifest:
    try:
        return parse(content)
    except UnreadableManifest as error:
        raise ImportFailed(str(error)) from error


def _claim(batch_id: int) -> ImportBatch | None:
    """Mark the import as ours to run, if nobody else runs it."""
    with transaction.atomic():
        batch = ImportBatch.objects.select_for_update().get(pk=batch_id)
        now = timezone.now()
        abandoned = batch.status == ImportStatus.RUNNING and (
            batch.heartbeat_at is None or batch.heartbeat_at < now - HEARTBEAT_TIMEOUT
        )
        if batch.status != ImportStatus.WAITING and not abandoned:
            logger.info("Import %s is %s: nothing to do", batch.pk, batch.status)
            return None
        batch.status, batch.error = ImportStatus.RUNNING, ""
        batch.started_at = batch.started_at or now
        batch.heartbeat_at = now
        batch.save(update_fields=["status", "error", "started_at", "heartbeat_at"])
    return batch


class _recorded_in:
    """Keep the batch's status true, however the import inside ends."""

    def __init__(self, batch: ImportBatch, dry_run: bool) -> None:
        self.batch = batch
        self.dry_run = dry_run

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.dry_run or isinstance(error, ImportTakenOver):
            return
        batch = self.batch
        # What a later try may mend goes back to waiting: for the task's own retry, or the reconciling task.
        is_passing = isinstance(error, RETRYABLE) or not isinstance(error, Exception)
        if error is None:
            batch.status, batch.error = ImportStatus.DONE, ""
        elif isinstance(error, ImportFailed):
            batch.status, batch.error = ImportStatus.FAILED, str(error)
        elif is_passing and batch.archive:
            batch.status, batch.error = ImportStatus.WAITING, f"Interrupted; it will be tried again. ({error!r})"
        else:
            batch.status = ImportStatus.FAILED
            batch.error = (
                f"Stopped by {type(error).__name__}: {error}. Rows listed as imported are in the catalogue; "
                "import the same files again to add the rest."
            )
        batch.finished_at = None if batch.status == ImportStatus.WAITING else timezone.now()
        batch.save(update_fields=["status", "error", "finished_at"])
