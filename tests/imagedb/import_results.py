"""What an import has left behind, for its tests."""

from pathlib import Path

from django.conf import settings

from imagedb.services.import_summary import ImportSummary


def stored_files() -> set[Path]:
    return {path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()}


def failures(summary: ImportSummary) -> list[tuple[int, str]]:
    return [(error.row_number, error.column) for error in summary.errors]
