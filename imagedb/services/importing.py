"""Import images with a manifest: the one way into the catalogue, for the command, the admin, the API and the demo.

An import is planned once and then done in chunks, by background workers or, for the command line, right here.
"""

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from uuid import UUID, uuid4

from django.contrib.auth.models import Group, User
from django.core.files import File
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from imagedb import tasks
from imagedb.image_files import MANIFEST_ENDINGS, FileProblem, FolderFiles, ImageFiles
from imagedb.models import ImportBatch, Upload
from imagedb.models.imports import ImportSource, ImportStatus
from imagedb.services import import_notes, import_plan, import_sources, import_state
from imagedb.services.import_notes import ImportSummary
from imagedb.services.import_processes import work_in_processes
from imagedb.services.import_run import Outcome, work
from imagedb.services.import_state import ImportFailed, ImportTakenOver
from imagedb.services.uploads import take_upload
from imagedb.upload_parts import UploadConflict
from scooter_site.common.tasks import enqueue

__all__ = [
    "ImportFailed",
    "ImportRefused",
    "ImportSummary",
    "ImportTakenOver",
    "Progress",
    "cancel_import",
    "import_manifest",
    "own_groups",
    "request_import",
    "request_new_import",
]

Progress = Callable[[int, int], None]


class ImportRefused(ValueError):
    """An import cannot be asked for like this: ``field`` is what is wrong, the message says what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def own_groups(user: User) -> QuerySet[Group]:
    """The groups that an account may import for: its own; for a superuser, all."""
    return Group.objects.all() if user.is_superuser else user.groups.all()


def request_new_import(
    user: User,
    batch: ImportBatch,
    *,
    archive: File | None = None,
    upload: UUID | None = None,
    prefix: str = "",
    manifest: str = "",
) -> ImportBatch:
    """Have workers import what ``batch``, not saved yet, says about visibility, group, licence and dry run.

    The files come as an ``archive``, as an ``upload`` that has arrived whole (its public id), or from below a
    ``prefix`` of the bucket, in which case ``manifest`` may name the manifest there and an ``upload`` may be it.
    Raises ImportRefused.
    """
    batch.created_by_id = user.pk
    if batch.group is not None and not own_groups(user).filter(pk=batch.group.pk).exists():
        raise ImportRefused("group", "This is no group of yours. Choose one of your own, or none.")
    if prefix:
        try:
            batch.source, batch.location = ImportSource.PREFIX, import_sources.checked_prefix(prefix)
        except ImportFailed as problem:
            raise ImportRefused("prefix", str(problem)) from problem
        batch.source_name = manifest
    with transaction.atomic():
        if upload is not None:
            uploaded = _taken(user, upload, MANIFEST_ENDINGS if prefix else {".zip"})
            (batch.manifest if prefix else batch.archive).name = uploaded.file.name
            batch.source_name = uploaded.filename
        elif archive is not None and not prefix:
            batch.source_name = PurePosixPath(archive.name or "").name[:255]
            batch.archive.save(batch.source_name, archive, save=False)
        elif not prefix:
            raise ImportRefused("upload", "Give an upload, or the prefix of the files in the bucket.")
        batch.save()
        request_import(batch)
    return batch


def _taken(user: User, upload: UUID, endings: Collection[str]) -> Upload:
    try:
        taken = take_upload(user, upload)
    except Upload.DoesNotExist:
        raise ImportRefused("upload", "There is no such upload of yours.") from None
    except UploadConflict as conflict:
        raise ImportRefused("upload", str(conflict)) from conflict
    if PurePosixPath(taken.filename).suffix.lower() not in endings:
        raise ImportRefused("upload", f"{taken.filename} must end in {' or '.join(sorted(endings))} for this.")
    return taken


def request_import(batch: ImportBatch) -> None:
    """Have workers do an import, once the current transaction has committed.

    One that is over waits again: rows that are in stay as they are, all others are tried once more.
    """
    import_state.ask_again(batch)
    enqueue(tasks.plan_import, batch.pk)


def cancel_import(batch: ImportBatch) -> None:
    """Have workers stop at the next chunk. Rows that are in stay in. Cancelling what is over does nothing."""
    import_state.request_cancel(batch)


def import_manifest(
    *,
    manifest: Path,
    images: Path | None = None,
    prefix: str = "",
    batch: ImportBatch,
    dry_run: bool = False,
    is_demo: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> ImportSummary:
    """Import the images that ``manifest`` (CSV or JSONL) describes, right here, and come back when it is done.

    ``images`` is a folder or a ZIP archive; ``prefix`` takes them from the bucket instead. ``batch``, not saved yet,
    says visibility, group, licence and attribution, and keeps a record of each row. A dry run checks everything,
    decodes every image, and imports none. ``workers`` is the number of processes. ``progress`` is called with the
    numbers of rows done and of all rows. Raises ImportFailed if nothing can be read; failed rows are in the summary.
    """
    if not manifest.is_file():
        raise ImportFailed(f"There is no manifest {manifest}.")
    if images is not None and not images.exists():
        raise ImportFailed(f"There is no folder or ZIP archive {images}.")
    batch.source_name = batch.source_name or manifest.name[:255]
    batch.is_dry_run, batch.is_demo = dry_run, is_demo
    if images is None:
        batch.source, batch.location = ImportSource.PREFIX, import_sources.checked_prefix(prefix)
    else:
        batch.source = ImportSource.FOLDER if images.is_dir() else ImportSource.ARCHIVE
        batch.location = str(images.resolve())
    batch.status, batch.started_at, batch.heartbeat_at = ImportStatus.PLANNING, timezone.now(), timezone.now()
    batch.save()
    try:
        with ExitStack() as stack:
            files: ImageFiles
            if batch.source == ImportSource.FOLDER:
                files = FolderFiles(Path(batch.location), manifest)
            else:
                files = stack.enter_context(import_sources.opened(batch))
            import_plan.make_plan(batch, stack.enter_context(manifest.open("rb")), files, folder="")
        _work_here(batch, workers, progress)
    except (ImportFailed, FileProblem) as error:
        import_state.close(batch, ImportStatus.FAILED, str(error))
        raise ImportFailed(str(error)) from error
    except ImportTakenOver:
        pass  # cancelled
    except BaseException as error:
        import_state.close(batch, ImportStatus.FAILED, import_state.stopped_by(error))
        raise
    summary = import_notes.summary(batch)
    if batch.status == ImportStatus.FAILED:
        raise ImportFailed(batch.error)
    return summary


def _work_here(batch: ImportBatch, workers: int, progress: Progress | None) -> None:
    """Do all chunks of a planned import, in this process or several."""
    show = progress or (lambda done, total: None)

    done = 0

    def look() -> None:
        batch.refresh_from_db()
        show(batch.imported_count + batch.already_there_count + batch.failed_count, batch.row_count)

    def after_row() -> None:
        nonlocal done
        done += 1
        show(done, batch.row_count)

    look()
    if workers > 1:
        work_in_processes(batch.pk, batch.handout, workers, look)
    batch.refresh_from_db()
    done = batch.imported_count + batch.already_there_count + batch.failed_count
    while work(batch.pk, batch.handout, uuid4(), after_row=after_row) is not Outcome.OVER:
        time.sleep(1)
