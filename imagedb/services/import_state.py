"""How far an import is, who works on it, and how it ends.

An import waits, is planned by one worker, then its chunks are done by any number of them, and whoever sees the last
one done closes it. A worker holds a chunk by a lease that it renews; the chunk of a worker that was killed is free
again when the lease is over, or at once for the same task delivered again.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone

from imagedb.models import ImportBatch, ImportChunk, ImportRow
from imagedb.models.imports import ImportSource, ImportStatus
from imagedb.services import import_dry_run, import_notes, import_store

logger = logging.getLogger(__name__)

# Renewed between rows; a row takes seconds even if its image is as large as any may be.
LEASE = timedelta(minutes=2)
LEASE_RENEWED_AFTER = timedelta(seconds=15)
# Nobody has done a chunk or holds a lease for this long: the workers are gone, or the queue is long.
HEARTBEAT_TIMEOUT = timedelta(minutes=3)
# Planning, and an import from the command line, show a heartbeat at least this often.
STOPPED_AFTER = timedelta(minutes=10)
# Long enough for a worker that is merely busy to take a waiting import first; handing it out twice does no harm.
WAITING_TIMEOUT = timedelta(minutes=2)

UNFINISHED = (ImportStatus.WAITING, ImportStatus.PLANNING, ImportStatus.RUNNING)
OVER = (ImportStatus.DONE, ImportStatus.FAILED, ImportStatus.CANCELLED)
STOPPED_COMMAND = (
    "The command was stopped before it was done. Rows listed as imported are in the catalogue; run it again to add "
    "the rest."
)


class ImportFailed(Exception):
    """Nothing can be imported at all; the message says what to do."""


class ImportTakenOver(Exception):
    """Another worker does this work now, or the import is over."""


def stopped_by(error: BaseException) -> str:
    """What to tell of an import that an error of ours has ended."""
    return (
        f"Stopped by {type(error).__name__}: {error}. Rows listed as imported are in the catalogue; "
        "import the same files again to add the rest."
    )


def within_reach() -> Q:
    """Imports whose files every worker can read: not those of a folder or ZIP that only the command knows."""
    return ~Q(archive="") | Q(source=ImportSource.PREFIX)


def ask_again(batch: ImportBatch) -> None:
    """Have an import that is over wait once more. Rows that are in stay as they are, the others are tried again."""
    ImportBatch.objects.filter(pk=batch.pk, status__in=OVER).update(
        status=ImportStatus.WAITING, error="", finished_at=None, cancel_requested_at=None
    )


def begin_planning(batch_id: int) -> ImportBatch | None:
    """Take a waiting import, to plan it; None if another worker has, or it is over."""
    now = timezone.now()
    is_ours = ImportBatch.objects.filter(pk=batch_id, status=ImportStatus.WAITING).update(
        status=ImportStatus.PLANNING,
        error="",
        started_at=now,
        heartbeat_at=now,
        handout=F("handout") + 1,
        handout_begun=F("handout") + 1,
    )
    if not is_ours:
        logger.info("Import %s does not wait: nothing to plan", batch_id)
        return None
    return load(batch_id)


def load(batch_id: int) -> ImportBatch:
    """The import, with its account and its group."""
    return ImportBatch.objects.select_related("created_by", "group").get(pk=batch_id)


def planning_goes_on(batch: ImportBatch) -> None:
    """Show that planning is alive. Raises ImportTakenOver if it is not ours any more, or was cancelled."""
    if not _planned_by_us(batch).filter(cancel_requested_at=None).update(heartbeat_at=timezone.now()):
        if _planned_by_us(batch).exists():
            close(batch, ImportStatus.CANCELLED)
        raise ImportTakenOver(f"Import {batch.pk} is not ours to plan any more")


def begin_running(batch: ImportBatch, *, row_count: int, failed_count: int, kept: dict[str, int], notes: str) -> None:
    """The plan is complete: its chunks can be done. Raises ImportTakenOver."""
    planning_goes_on(batch)
    is_ours = _planned_by_us(batch).update(
        status=ImportStatus.RUNNING,
        heartbeat_at=timezone.now(),
        row_count=row_count,
        imported_count=kept.get(ImportRow.Result.IMPORTED, 0),
        already_there_count=kept.get(ImportRow.Result.ALREADY_THERE, 0),
        failed_count=failed_count,
        notes=notes,
    )
    if not is_ours:
        raise ImportTakenOver(f"Import {batch.pk} is not ours to plan any more")


def wait_again(batch: ImportBatch) -> None:
    """Give up planning for now: another try may succeed."""
    _planned_by_us(batch).update(status=ImportStatus.WAITING)


def _planned_by_us(batch: ImportBatch) -> QuerySet[ImportBatch]:
    return ImportBatch.objects.filter(pk=batch.pk, status=ImportStatus.PLANNING, handout=batch.handout)


def begin_work(batch_id: int, handout: int) -> ImportBatch | None:
    """Begin with what was handed out; None if it is stale, or the import is not running."""
    is_ours = ImportBatch.objects.filter(
        pk=batch_id, status=ImportStatus.RUNNING, handout_begun__lte=handout, handout__gte=handout
    ).update(handout_begun=handout)
    return load(batch_id) if is_ours else None


def may_go_on(batch: ImportBatch) -> bool:
    """Whether chunks of the import are still to be done; one that was cancelled is closed once nobody works on it."""
    state = ImportBatch.objects.only("status", "handout_begun", "cancel_requested_at").get(pk=batch.pk)
    if state.status != ImportStatus.RUNNING or state.handout_begun > batch.handout_begun:
        return False
    if state.cancel_requested_at is None:
        return True
    close_if_cancelled(batch)
    return False


@dataclass
class Claim:
    """That a worker holds a chunk. ``is_again``: another had begun with it, and may have left files."""

    chunk: ImportChunk
    is_again: bool

    @property
    def held(self) -> QuerySet[ImportChunk]:
        """The chunk, as long as it is ours."""
        return ImportChunk.objects.filter(pk=self.chunk.pk, claimed_by=self.chunk.claimed_by, is_done=False)


def claim_chunk(batch: ImportBatch, worker: UUID) -> Claim | None:
    """Take the next chunk that is nobody's, or whose worker is gone; None if there is none to take now."""
    now = timezone.now()
    is_free = Q(claimed_at=None) | Q(claimed_at__lt=now - LEASE) | Q(claimed_by=worker)
    ready = Q(after=None) | Q(after__is_done=True)
    open_chunks = ImportChunk.objects.filter(is_free, ready, batch=batch, is_done=False).order_by("number")
    while chunk := open_chunks.first():
        is_again = chunk.claimed_by is not None
        mine = ImportChunk.objects.filter(is_free, pk=chunk.pk, is_done=False).update(
            claimed_by=worker, claimed_at=now, attempts=F("attempts") + 1
        )
        if mine:
            if is_again:
                logger.warning("Import %s: chunk %s is done again", batch.pk, chunk.number)
            chunk.claimed_by, chunk.claimed_at, chunk.attempts = worker, now, chunk.attempts + 1
            return Claim(chunk, is_again)
    return None


def renew_lease(claim: Claim) -> None:
    """Show that work on a chunk goes on. Raises ImportTakenOver if another worker has it now."""
    now = timezone.now()
    claimed_at = claim.chunk.claimed_at
    if claimed_at is not None and now - claimed_at < LEASE_RENEWED_AFTER:
        return
    if not claim.held.update(claimed_at=now):
        raise ImportTakenOver(f"Chunk {claim.chunk.number} of import {claim.chunk.batch_id} is another worker's now")
    claim.chunk.claimed_at = now


def give_back(claim: Claim) -> None:
    """Leave a chunk for whoever comes next, undone, without counting this try."""
    claim.held.update(claimed_at=None, attempts=F("attempts") - 1)


def mark_done(claim: Claim, counts: dict[str, int], notes: Iterable[str]) -> None:
    """Within the transaction that stores a chunk's rows. Raises ImportTakenOver if it is not ours to store."""
    if not claim.held.update(is_done=True):
        raise ImportTakenOver(f"Chunk {claim.chunk.number} of import {claim.chunk.batch_id} is another worker's now")
    is_running = ImportBatch.objects.filter(pk=claim.chunk.batch_id, status=ImportStatus.RUNNING).update(
        heartbeat_at=timezone.now(),
        imported_count=F("imported_count") + counts.get(ImportRow.Result.IMPORTED, 0),
        already_there_count=F("already_there_count") + counts.get(ImportRow.Result.ALREADY_THERE, 0),
        failed_count=F("failed_count") + counts.get(ImportRow.Result.FAILED, 0),
        **import_notes.added(notes),
    )
    if not is_running:
        raise ImportTakenOver(f"Import {claim.chunk.batch_id} is over")


def split(claim: Claim, rows: list[ImportRow]) -> None:
    """Give each row of a chunk a chunk of its own, modified images after their source's. Raises ImportTakenOver."""
    batch_id = claim.chunk.batch_id
    with transaction.atomic():
        last = ImportChunk.objects.filter(batch_id=batch_id).aggregate(last=Max("number"))["last"]
        chunk_of_row: dict[int, ImportChunk] = {}
        for number, row in enumerate(sorted(rows, key=lambda row: "source_row" in row.values), start=last + 1):
            source_chunk = chunk_of_row.get(row.values.get("source_row"))
            row.chunk = chunk_of_row[row.row_number] = ImportChunk.objects.create(
                batch_id=batch_id, number=number, after=source_chunk
            )
        ImportRow.objects.bulk_update(rows, ["chunk"])
        # Chunks that wait for the source in this one wait for its new chunk.
        for dependent in ImportChunk.objects.filter(after=claim.chunk, is_done=False):
            first = dependent.rows.order_by("row_number").first()
            dependent.after = chunk_of_row.get(first.values.get("source_row")) if first else None
            dependent.save(update_fields=["after"])
        mark_done(claim, {}, ())


def record_failures(claim: Claim, rows: list[ImportRow]) -> None:
    """Store that all rows of a chunk have failed, as they say. Raises ImportTakenOver."""
    with transaction.atomic():
        ImportRow.objects.bulk_update(rows, ["result", "message", "image", "values"])
        mark_done(claim, {ImportRow.Result.FAILED: len(rows)}, ())


def close_if_done(batch: ImportBatch) -> bool:
    """Close the import if all its chunks are done; whether it is over."""
    if ImportChunk.objects.filter(batch=batch, is_done=False).exists():
        return False
    close(batch, ImportStatus.DONE)
    return True


def request_cancel(batch: ImportBatch) -> None:
    """Have workers stop at the next chunk. What is in the catalogue by then stays."""
    ImportBatch.objects.filter(pk=batch.pk, status__in=UNFINISHED, cancel_requested_at=None).update(
        cancel_requested_at=timezone.now()
    )
    close_if_cancelled(batch)


def close_if_cancelled(batch: ImportBatch) -> None:
    """Close an import that was cancelled, unless a worker is still at it and will do so."""
    cancelled = ImportBatch.objects.filter(pk=batch.pk).exclude(cancel_requested_at=None)
    at_rest = Q(status=ImportStatus.WAITING) | Q(
        status=ImportStatus.PLANNING, heartbeat_at__lt=timezone.now() - STOPPED_AFTER
    )
    if not ImportBatch.objects.filter(pk=batch.pk).filter(live_leases(batch.pk)).exists():
        at_rest |= Q(status=ImportStatus.RUNNING)
    if cancelled.filter(at_rest).exists():
        close(batch, ImportStatus.CANCELLED)


def live_leases(batch_id: int) -> Q:
    """Condition on imports: a worker is at a chunk of this one right now."""
    leases = ImportChunk.objects.filter(batch_id=batch_id, is_done=False, claimed_at__gte=timezone.now() - LEASE)
    return Q(pk__in=leases.values("batch"))


def close(batch: ImportBatch, status: ImportStatus, error: str = "") -> None:
    """End the import: count, sum up, and remove the files of what was begun and will not be finished."""
    with transaction.atomic():
        is_ours = ImportBatch.objects.filter(pk=batch.pk, status__in=UNFINISHED).update(
            status=status, error=error, finished_at=timezone.now()
        )
        if is_ours:
            if batch.is_dry_run and status == ImportStatus.DONE:
                import_dry_run.settle(batch)
            counts = dict(batch.rows.order_by().values_list("result").annotate(Count("pk")))
            ImportBatch.objects.filter(pk=batch.pk).update(
                imported_count=counts.get(ImportRow.Result.IMPORTED, 0),
                already_there_count=counts.get(ImportRow.Result.ALREADY_THERE, 0),
                failed_count=counts.get(ImportRow.Result.FAILED, 0),
                notes=import_notes.final(batch),
            )
    remove_leftovers(batch)


def remove_leftovers(batch: ImportBatch) -> None:
    """Remove the files of chunks that were begun and will not be finished, because the import is over."""
    for chunk in ImportChunk.objects.filter(batch=batch, is_done=False).exclude(claimed_by=None):
        rows = list(chunk.rows.all())
        import_store.discard_files(rows)
        import_store.discard_unfinished(rows)
        ImportChunk.objects.filter(pk=chunk.pk).update(claimed_by=None, claimed_at=None)


def hand_out(batch_id: int) -> int:
    """A new number for handing out the work; what was handed out before turns stale once a worker begins with it."""
    ImportBatch.objects.filter(pk=batch_id).update(handout=F("handout") + 1, heartbeat_at=timezone.now())
    return ImportBatch.objects.values_list("handout", flat=True).get(pk=batch_id)


def put_right() -> None:
    """Close what was cancelled or stopped with nobody left to say so, and let lost plans wait again."""
    now = timezone.now()
    unfinished = ImportBatch.objects.filter(status__in=UNFINISHED)
    for batch in unfinished.exclude(cancel_requested_at=None):
        close_if_cancelled(batch)
    stale = Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - STOPPED_AFTER)
    for batch in unfinished.filter(stale, status__in=(ImportStatus.PLANNING, ImportStatus.RUNNING)).exclude(
        within_reach()
    ):
        if not ImportBatch.objects.filter(live_leases(batch.pk), pk=batch.pk).exists():
            logger.warning("Import %s from the command line had been stopped", batch.pk)
            close(batch, ImportStatus.FAILED, STOPPED_COMMAND)
    unfinished.filter(stale, within_reach(), status=ImportStatus.PLANNING).update(status=ImportStatus.WAITING)
    left_behind = ImportChunk.objects.filter(is_done=False, batch__status__in=OVER).exclude(claimed_by=None)
    for batch in ImportBatch.objects.filter(pk__in=left_behind.values("batch")):
        remove_leftovers(batch)


def waiting_too_long() -> list[int]:
    """Imports that no worker has taken to plan them."""
    return list(
        ImportBatch.objects.filter(
            within_reach(), status=ImportStatus.WAITING, created_at__lt=timezone.now() - WAITING_TIMEOUT
        )
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def without_workers() -> list[int]:
    """Imports under way that nobody has worked on for a while."""
    now = timezone.now()
    leases = ImportChunk.objects.filter(is_done=False, claimed_at__gte=now - LEASE)
    return list(
        ImportBatch.objects.filter(
            Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - HEARTBEAT_TIMEOUT),
            within_reach(),
            status=ImportStatus.RUNNING,
        )
        .exclude(pk__in=leases.values("batch"))
        .order_by("pk")
        .values_list("pk", flat=True)
    )
