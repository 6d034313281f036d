"""What an import tells when it is over: counts, errors and notes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from imagedb.image_files import ImageFiles, RowFiles
from imagedb.manifest import Manifest, RowError
from imagedb.models import Attack, ImageKind, TargetModel

NAMES_SHOWN = 5


@dataclass
class ImportSummary:
    """What became of an import; after a dry run, what would become of it."""

    row_count: int = 0
    imported: int = 0
    already_there: int = 0
    errors: list[RowError] = field(default_factory=list)  # one row may have several
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return len({error.row_number for error in self.errors})


class ImportNotes:
    """Collects what was created, changed or skipped on the way."""

    def __init__(self) -> None:
        self._created: list[str] = []
        self._of_images: Counter[str] = Counter()

    def image(self, notes: Iterable[str]) -> None:
        """Note what was changed in one image to show it."""
        self._of_images.update(notes)

    def created(self, *named: Attack | TargetModel | None) -> None:
        """Note those that are new: the unsaved ones."""
        for one in named:
            if one is not None and one.pk is None:
                note = f"{one._meta.verbose_name} {one.name} ({one.slug})"
                if note not in self._created:
                    self._created.append(note)

    def lines(self, manifest: Manifest, files: ImageFiles, row_files: RowFiles, dry_run: bool) -> list[str]:
        """All notes, one sentence each."""
        verb = "Would create" if dry_run else "Created"
        lines = [f"{verb} {created}." for created in self._created]
        lines += [f"{count} image(s): {note}." for note, count in self._of_images.most_common()]
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
        return lines


def _first_of(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
