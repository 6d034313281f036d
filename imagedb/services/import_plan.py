"""Planning an import: the manifest is read once, each row finds its file and its source, and rows become chunks.

The plan is in the database before any image is read, so that workers can share it and a killed one loses nothing.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import IO, Any, TypeVar

from django.db import transaction

from imagedb.image_files import FileFinder, FileProblem, ImageFiles, NoSuchFile, RowFiles
from imagedb.manifest import Manifest, ManifestReader, ManifestRow, UnreadableManifest
from imagedb.models import ImageKind, ImportBatch, ImportChunk, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services import import_notes, import_sources, import_state
from imagedb.services.import_state import ImportFailed, ImportTakenOver
from scooter_site.common.tasks import RETRYABLE

T = TypeVar("T")
Result = ImportRow.Result

# Some seconds of work: little is lost with a worker, and a transaction is worth its cost.
CHUNK_ROWS = 32
# What is known of each file and row while planning takes about 1 kB.
MAX_ROWS = 100_000
# Rows written in one transaction: SQLite lets nobody else write meanwhile.
SLICE = 1000


@dataclass
class PlannedChunk:
    """Rows for one chunk; ``after`` is the position of the chunk that must be done before."""

    rows: list[ManifestRow]
    after: int | None = None


class Plan:
    """What each row of a manifest means: its file, its source, and its place in a chunk. Writes nothing."""

    def __init__(self, manifest: Manifest, files: ImageFiles, folder: str, done: set[int]) -> None:
        """``folder`` is where the manifest lies among the files. ``done`` are rows that an earlier run has put in."""
        self.manifest = manifest
        self.row_files = RowFiles(files, (row.filename for row in manifest.rows), folder)
        self.problems: dict[int, list[tuple[str, str]]] = defaultdict(list)
        self.filenames: dict[int, str] = {}
        self.source_rows: dict[int, int] = {}
        for error in manifest.errors:
            self.problems[error.row_number].append((error.column, error.message))
            self.filenames[error.row_number] = error.filename
        self._clean_names = FileFinder(row.filename for row in manifest.rows if row.kind == ImageKind.CLEAN)
        self._modified_names = {row.filename for row in manifest.rows if row.kind == ImageKind.MODIFIED}
        self._clean_rows: dict[str, int] = {}
        for row in manifest.rows:
            if row.kind == ImageKind.CLEAN:
                self._clean_rows.setdefault(row.filename, row.number)
        to_do = [row for row in manifest.rows if row.number not in done and self._is_clear(row)]
        self.chunks = chunks_of(to_do, self.source_rows)

    def _is_clear(self, row: ManifestRow) -> bool:
        """Find the row's source and file, or note why they cannot be found."""
        column = "source_filename"
        try:
            if row.kind == ImageKind.MODIFIED:
                source_row = self._source_row(row.source_filename)
                if source_row is not None:
                    self.source_rows[row.number] = source_row
            column = "filename"
            self.row_files.locate(row.filename)
        except FileProblem as problem:
            self.problems[row.number].append((column, str(problem)))
            self.filenames[row.number] = row.filename
            return False
        return True

    def _source_row(self, filename: str) -> int | None:
        """The row of the clean image of that name; None if the catalogue must have it."""
        try:
            return self._clean_rows[self._clean_names.find(filename)]
        except NoSuchFile:
            if filename in self._modified_names:
                raise FileProblem(f"{filename} is itself a modified image") from None
            return None
        except FileProblem as problem:
            raise FileProblem(f"{filename} {problem}") from problem

    def values(self, row: ManifestRow) -> dict[str, Any]:
        """What is stored of a row: as the manifest has it, the file it means, and the row of its source."""
        values: dict[str, Any] = {"manifest": asdict(row), "file": self.row_files.locate(row.filename)}
        if row.number in self.source_rows:
            values["source_row"] = self.source_rows[row.number]
        return values


def chunks_of(rows: Iterable[ManifestRow], source_rows: dict[int, int]) -> list[PlannedChunk]:
    """Put rows into chunks, each modified image into that of its source, which is decoded once.

    One source's images beyond what fits go into chunks of their own, to be done after the source's. ``source_rows``
    gives the row number of a modified image's source, where that is in the same manifest.
    """
    groups: dict[int | str, list[ManifestRow]] = defaultdict(list)
    for row in rows:
        is_clean = row.kind == ImageKind.CLEAN
        groups[row.number if is_clean else source_rows.get(row.number, row.source_filename)].append(row)
    chunks: list[PlannedChunk] = []
    open_chunk = PlannedChunk([])
    for key, group in groups.items():
        group.sort(key=lambda row: row.kind != ImageKind.CLEAN)
        if len(group) <= CHUNK_ROWS:
            if len(open_chunk.rows) + len(group) > CHUNK_ROWS:
                chunks.append(open_chunk)
                open_chunk = PlannedChunk([])
            open_chunk.rows.extend(group)
            continue
        first = len(chunks)
        has_source = group[0].number == key
        for start in range(0, len(group), CHUNK_ROWS):
            after = first if has_source and start else None
            chunks.append(PlannedChunk(group[start : start + CHUNK_ROWS], after))
    return [*chunks, open_chunk] if open_chunk.rows else chunks


def plan_import(batch_id: int) -> ImportBatch | None:
    """Plan an import that waits. Safe to run twice: gives None, and does nothing, if it does not wait.

    An import that cannot be read at all is closed as failed. Raises ImportTakenOver.
    """
    batch = import_state.begin_planning(batch_id)
    if batch is None:
        return None
    try:
        with import_sources.opened(batch) as files, import_sources.opened_manifest(batch, files) as (manifest, folder):
            make_plan(batch, manifest, files, folder)
    except ImportFailed as error:
        import_state.close(batch, ImportStatus.FAILED, str(error))
        return None
    except ImportTakenOver:
        raise
    except RETRYABLE:
        import_state.wait_again(batch)
        raise
    except Exception as error:
        import_state.close(batch, ImportStatus.FAILED, import_state.stopped_by(error))
        raise
    return batch


def make_plan(batch: ImportBatch, manifest_file: IO[bytes], files: ImageFiles, folder: str) -> None:
    """Plan an import whose planning is ours, and store the plan: after this its chunks can be done.

    ``folder`` is where the manifest lies among the files. Raises ImportFailed if it cannot be read, ImportTakenOver.
    """
    manifest = _read(manifest_file)
    kept = _clear_earlier_plan(batch)
    plan = Plan(manifest, files, folder, set(kept))
    import_state.planning_goes_on(batch)
    chunks = _store_chunks(batch, plan)
    for some in _sliced(_new_rows(batch, plan, chunks), SLICE):
        with transaction.atomic():
            import_state.planning_goes_on(batch)
            ImportRow.objects.bulk_create(some)
    import_state.begin_running(
        batch,
        row_count=manifest.row_count,
        failed_count=len(plan.problems),
        kept=Counter(kept.values()),
        notes=import_notes.of_plan(manifest, files, plan.row_files),
    )


def _read(file: IO[bytes]) -> Manifest:
    """The whole manifest. Names that many rows share are kept once."""
    manifest = Manifest()
    try:
        reader = ManifestReader(file)
        for count, row in enumerate(reader, start=1):
            if count > MAX_ROWS:
                raise ImportFailed(f"The manifest has more than {MAX_ROWS:,} rows. Split it into several imports.")
            if isinstance(row, ManifestRow):
                manifest.rows.append(
                    replace(row, attack=sys.intern(row.attack), target_model=sys.intern(row.target_model))
                )
            else:
                manifest.errors.extend(row)
    except (UnreadableManifest, FileProblem) as error:
        raise ImportFailed(str(error)) from error
    manifest.ignored_columns = reader.ignored_columns
    return manifest


def _clear_earlier_plan(batch: ImportBatch) -> dict[int, str]:
    """Forget what an earlier plan of the same import left undone; gives the rows that stay, with their results."""
    import_state.remove_leftovers(batch)
    done = batch.rows.filter(result__in=(Result.IMPORTED, Result.ALREADY_THERE), image__isnull=False)
    with transaction.atomic():
        import_state.planning_goes_on(batch)
        batch.rows.exclude(pk__in=done.values("pk")).delete()
        batch.rows.update(chunk=None)
        batch.chunks.all().delete()
    return dict(done.values_list("row_number", "result"))


def _store_chunks(batch: ImportBatch, plan: Plan) -> list[ImportChunk]:
    chunks = [ImportChunk(batch=batch, number=number) for number in range(len(plan.chunks))]
    with transaction.atomic():
        import_state.planning_goes_on(batch)
        ImportChunk.objects.bulk_create(chunks, batch_size=SLICE)
        waiting = []
        for chunk, planned in zip(chunks, plan.chunks, strict=True):
            if planned.after is not None:
                chunk.after = chunks[planned.after]
                waiting.append(chunk)
        ImportChunk.objects.bulk_update(waiting, ["after"], batch_size=SLICE // 10)
    return chunks


def _new_rows(batch: ImportBatch, plan: Plan, chunks: list[ImportChunk]) -> Iterator[ImportRow]:
    for number, problems in plan.problems.items():
        row = ImportRow(batch=batch, row_number=number, filename=plan.filenames[number][:255])
        import_notes.fail(row, problems)
        yield row
    for chunk, planned in zip(chunks, plan.chunks, strict=True):
        for manifest_row in planned.rows:
            yield ImportRow(
                batch=batch,
                chunk=chunk,
                row_number=manifest_row.number,
                filename=manifest_row.filename,
                values=plan.values(manifest_row),
            )


def _sliced(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some
