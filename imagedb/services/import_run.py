"""One worker's time with an import: chunk after chunk, until there is none to take or its time is over."""

import enum
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from uuid import UUID

from imagedb.image_files import ImageFiles
from imagedb.models import ImportBatch, ImportChunk, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services import import_notes, import_sources, import_state, import_store
from imagedb.services.import_chunk import ChunkWork
from imagedb.services.import_commit import commit
from imagedb.services.import_rules import RowRules
from imagedb.services.import_state import Claim, ImportFailed, ImportTakenOver
from scooter_site.common.tasks import RETRYABLE

logger = logging.getLogger(__name__)

# Whatever kills its worker this often would do so for ever.
MAX_ATTEMPTS = 3


class Outcome(enum.Enum):
    """How a worker leaves an import."""

    OVER = "it is over, or not for this worker any more"
    TIME_IS_UP = "chunks are left to do"
    OTHERS_ARE_AT_IT = "all chunks that are left are other workers', or must wait for them"


def work(
    batch_id: int,
    handout: int,
    worker: UUID,
    *,
    seconds: float | None = None,
    after_row: Callable[[], None] = lambda: None,
) -> Outcome:
    """Do chunks of an import, for at most about ``seconds``. Safe to run any number of times, and several at once.

    ``worker`` identifies who works: a task that is delivered again takes up its own chunk at once. An import whose
    files cannot be read at all is closed as failed; what a later try can mend is raised, and leaves it running.
    """
    batch = import_state.begin_work(batch_id, handout)
    if batch is None:
        return Outcome.OVER
    try:
        outcome = _Worker(batch, worker, after_row).work(seconds)
    except RETRYABLE:
        raise
    except ImportFailed as error:
        import_state.close(batch, ImportStatus.FAILED, str(error))
        return Outcome.OVER
    except Exception as error:
        import_state.close(batch, ImportStatus.FAILED, import_state.stopped_by(error))
        raise
    if outcome is Outcome.OVER:
        import_sources.forget()
    return outcome


class _Worker:
    def __init__(self, batch: ImportBatch, worker: UUID, after_row: Callable[[], None]) -> None:
        self._batch = batch
        self._worker = worker
        self._after_row = after_row
        self._rules = RowRules(batch)

    def work(self, seconds: float | None) -> Outcome:
        deadline = None if seconds is None else time.monotonic() + seconds
        files = None
        with ExitStack() as stack:
            while import_state.may_go_on(self._batch):
                if deadline is not None and time.monotonic() > deadline:
                    return Outcome.TIME_IS_UP
                claim = import_state.claim_chunk(self._batch, self._worker)
                if claim is None:
                    if import_state.close_if_done(self._batch):
                        return Outcome.OVER
                    return Outcome.OTHERS_ARE_AT_IT
                if files is None:
                    files = stack.enter_context(import_sources.opened(self._batch))
                self._do(claim, files)
        return Outcome.OVER

    def _do(self, claim: Claim, files: ImageFiles) -> None:
        rows: list[ImportRow] = []

        def after_row() -> None:
            self._after_row()
            import_state.renew_lease(claim)

        try:
            if claim.chunk.attempts > MAX_ATTEMPTS:
                self._set_apart(claim)
                return
            self._rules.forget_unsaved()
            work = ChunkWork(self._batch, claim.chunk, files, self._rules)
            rows = work.rows
            commit(self._batch, claim, work.findings(after_row), self._rules)
        except BaseException as error:
            if claim.held.exists() and not isinstance(error, ImportTakenOver):
                import_state.give_back(claim)
                raise
            # Whatever came of it, it is no longer ours: another worker has it, or the import is over.
            logger.warning("Chunk %s of import %s: %s", claim.chunk.number, self._batch.pk, error)
            self._leave(claim, rows)
            if not isinstance(error, Exception):
                raise

    def _leave(self, claim: Claim, rows: list[ImportRow]) -> None:
        """Remove the files of a chunk that is not ours any more, unless another worker is writing them right now."""
        others = ImportChunk.objects.filter(pk=claim.chunk.pk, is_done=False, batch__status=ImportStatus.RUNNING)
        if others.exists():
            return
        # Whoever had it may have been done with it before our last file was written.
        with_images = ImportRow.objects.filter(
            pk__in=[row.pk for row in rows], result=ImportRow.Result.IMPORTED
        ).values_list("pk", flat=True)
        kept = set(with_images)
        import_store.discard_files(row for row in rows if row.pk not in kept)

    def _set_apart(self, claim: Claim) -> None:
        """Deal with a chunk that has cost several workers their lives: its rows one by one, then not at all."""
        rows = list(claim.chunk.rows.filter(result=ImportRow.Result.WAITING))
        import_store.discard_files(rows)
        import_store.discard_unfinished(rows)
        if len(rows) > 1:
            import_state.split(claim, rows)
            return
        for row in rows:
            import_notes.fail(
                row,
                [("filename", f"the worker was lost {MAX_ATTEMPTS} times over this file; make the file anew")],
            )
        import_state.record_failures(claim, rows)
