"""What an import tells when it is over: counts, errors, and notes of what was created, changed or left out."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, F, Value
from django.db.models.functions import Concat

from imagedb.image_files import ImageFiles, RowFiles
from imagedb.manifest import Manifest, RowError
from imagedb.models import Attack, ImageKind, ImportBatch, ImportRow, TargetModel
from imagedb.models.imports import ImportStatus
from imagedb.services.import_rules import Candidate

NAMES_SHOWN = 5
CHANGES_SHOWN = 20


@dataclass
class ImportSummary:
    """What became of an import; after a dry run, what would become of it."""

    row_count: int = 0
    imported: int = 0
    already_there: int = 0
    failed: int = 0
    is_cancelled: bool = False
    errors: list[RowError] = field(default_factory=list)  # one row may have several
    notes: list[str] = field(default_factory=list)


def summary(batch: ImportBatch) -> ImportSummary:
    """Sum up an import from what it has recorded."""
    batch.refresh_from_db()
    failed = batch.rows.filter(result=ImportRow.Result.FAILED).order_by("row_number")
    return ImportSummary(
        row_count=batch.row_count,
        imported=batch.imported_count,
        already_there=batch.already_there_count,
        failed=batch.failed_count,
        is_cancelled=batch.status == ImportStatus.CANCELLED,
        errors=[error for row in failed.iterator() for error in errors_of(row)],
        notes=batch.notes.splitlines(),
    )


def fail(row: ImportRow, errors: Iterable[tuple[str, str]]) -> None:
    """Say in a row, not saved yet, that it failed and why: pairs of column (empty: the whole row) and message."""
    errors = list(errors)
    row.result, row.image = ImportRow.Result.FAILED, None
    row.values = {**row.values, "errors": errors}
    row.message = "; ".join(RowError(row.row_number, row.filename, *error).text for error in errors)


def errors_of(row: ImportRow) -> list[RowError]:
    """What is wrong with a row that failed."""
    return [RowError(row.row_number, row.filename, column, message) for column, message in row.values["errors"]]


def of_plan(manifest: Manifest, files: ImageFiles, row_files: RowFiles) -> str:
    """What is to be said of the manifest and the files as a whole, one sentence a line."""
    lines = []
    without_model = sum(row.kind == ImageKind.MODIFIED and not row.target_model for row in manifest.rows)
    if without_model:
        lines.append(
            f"{without_model} modified image(s) have no target model and can be used in no study until one is set."
        )
    if manifest.ignored_columns:
        lines.append(f"Columns not read: {', '.join(manifest.ignored_columns)}.")
    if row_files.unused:
        lines.append(f"{len(row_files.unused)} file(s) are in no row: {_first_of(row_files.unused)}.")
    if files.junk_count:
        lines.append(f"{files.junk_count} file(s) of the operating system were skipped (such as .DS_Store).")
    if files.refused:
        lines.append(f"{len(files.refused)} file(s) were refused: {_first_of(files.refused)}.")
    return "\n".join(lines)


def identity(candidate: Candidate) -> list[str]:
    """By what a dry run knows that two of its rows are one image: digest, and what it is an example of."""
    attack, target_model = candidate.attack, candidate.target_model
    return [candidate.digest, attack.slug if attack else "", target_model.slug if target_model else ""]


def created(named: Attack | TargetModel, *, dry_run: bool) -> str:
    """That an attack or target model is new."""
    verb = "Would create" if dry_run else "Created"
    return f"{verb} {named._meta.verbose_name} {named.name} ({named.slug})."


def added(lines: Iterable[str]) -> dict[str, Any]:
    """What to update of an import to add lines to its notes, whoever else adds some."""
    text = "".join(f"\n{line}" for line in lines)
    return {"notes": Concat(F("notes"), Value(text))} if text else {}


def final(batch: ImportBatch) -> str:
    """All notes of an import that is over: those so far, each once, and how many images were changed to be shown."""
    so_far = ImportBatch.objects.values_list("notes", flat=True).get(pk=batch.pk)
    changed = (
        batch.rows.filter(result=ImportRow.Result.IMPORTED)
        .exclude(message="")
        .order_by()
        .values_list("message")
        .annotate(images=Count("pk"))
        .order_by("-images", "message")
    )
    lines = [line for line in so_far.splitlines() if line]
    shown = list(changed[: CHANGES_SHOWN + 1])
    lines += [f"{count} image(s): {message}." for message, count in shown[:CHANGES_SHOWN]]
    if len(shown) > CHANGES_SHOWN:
        lines.append("Further changes are in the table of rows.")
    return "\n".join(dict.fromkeys(lines))


def _first_of(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
