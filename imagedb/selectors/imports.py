"""Who may look at which imports, and what an import tells of its rows."""

import csv
import io
from collections.abc import Iterator

from django.contrib.auth.models import AbstractUser
from django.db.models import F, Q, QuerySet

from imagedb.models import ImportBatch, ImportRow, Visibility
from imagedb.models.imports import ImportSource, ImportStatus
from scooter_site.common.csv_text import cell

UNFINISHED = frozenset({ImportStatus.WAITING, ImportStatus.PLANNING, ImportStatus.RUNNING})
ROWS_CSV_COLUMNS = ("row", "filename", "kind", "result", "message", "image", "sha256")
ROWS_AT_A_TIME = 500


def own_imports(user: AbstractUser) -> QuerySet[ImportBatch]:
    """The imports that an account has asked for; for a superuser, all."""
    return ImportBatch.objects.all() if user.is_superuser else ImportBatch.objects.filter(created_by_id=user.pk)


def visible_imports(user: AbstractUser) -> QuerySet[ImportBatch]:
    """The imports that staff may look at: of private images only their own, and those of their groups."""
    if user.is_superuser:
        return ImportBatch.objects.all()
    groups = list(user.groups.values_list("pk", flat=True))
    return ImportBatch.objects.filter(
        ~Q(visibility=Visibility.PRIVATE) | Q(created_by_id=user.pk) | Q(group_id__in=groups)
    )


def can_be_run_again(batch: ImportBatch) -> bool:
    """Whether workers can read the files: not those of a folder or ZIP that only the command line knows."""
    return bool(batch.archive) or batch.source == ImportSource.PREFIX


def handled_count(batch: ImportBatch) -> int:
    """How many rows are through, well or badly."""
    return batch.imported_count + batch.already_there_count + batch.failed_count


def result_label(row_result: str, *, is_dry_run: bool) -> str:
    """A row's result, for people."""
    if is_dry_run and row_result == ImportRow.Result.IMPORTED:
        return "Would be imported"
    return ImportRow.Result(row_result).label


def rows_csv(batch: ImportBatch) -> Iterator[str]:
    """What became of every row of an import, as CSV, some rows at a time; the first piece is the header.

    After a dry run, ``would_be_imported`` stands for ``imported``. Text that a spreadsheet would take for a formula
    gets an apostrophe in front.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(ROWS_CSV_COLUMNS)
    rows = (
        batch.rows.order_by("row_number")
        .annotate(kind=F("values__manifest__kind"), public_id=F("image__public_id"), sha256=F("image__original_sha256"))
        .values_list("row_number", "filename", "kind", "result", "message", "public_id", "sha256")
    )
    for count, (number, filename, kind, result, message, public_id, sha256) in enumerate(
        rows.iterator(chunk_size=ROWS_AT_A_TIME), start=1
    ):
        word = "would_be_imported" if batch.is_dry_run and result == ImportRow.Result.IMPORTED else result
        writer.writerow([cell(value) for value in (number, filename, kind, word, message, public_id, sha256)])
        if count % ROWS_AT_A_TIME == 0:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
