"""One run over the rows of a manifest.

Clean images go first, so that sources resolve whatever the order of the rows. Each row is a transaction of its own:
a good row goes in even if its neighbours fail. Running an import again imports nothing twice, because an image is
known by the digest of its bytes.
"""

from collections import defaultdict
from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.utils import timezone

from imagedb import pixels
from imagedb.image_files import ImageFiles, RowFiles
from imagedb.manifest import Manifest, ManifestRow, RowError
from imagedb.models import Image, ImageKind, ImportBatch, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services import import_store
from imagedb.services.import_rules import (
    IMAGE_RELATIONS,
    Candidate,
    RowChecker,
    RowProblem,
    compare_with_existing,
    image_already_there,
)
from imagedb.services.import_summary import ImportNotes, ImportSummary

Result = ImportRow.Result
Progress = Callable[[int, int], None]


class ImportTakenOver(Exception):
    """Another worker runs this import now, because this one showed no heartbeat for too long."""


class ImportRun:
    """Imports the rows of one manifest for one batch."""

    def __init__(
        self,
        manifest: Manifest,
        files: ImageFiles,
        batch: ImportBatch,
        *,
        manifest_folder: str = "",
        dry_run: bool = False,
        is_demo: bool = False,
    ) -> None:
        """``manifest_folder`` is where the manifest lies among ``files``: paths may be relative to it."""
        self.manifest = manifest
        self.files = files
        self.batch = batch
        self.dry_run = dry_run
        self.is_demo = is_demo
        self.summary = ImportSummary(row_count=manifest.row_count)
        self._row_files = RowFiles(files, (row.filename for row in manifest.rows), manifest_folder)
        self._checker = RowChecker(manifest, self._row_files, is_demo=is_demo)
        self._planned: dict[str, list[Image]] = defaultdict(list)  # by digest: what a dry run would have made
        self._notes = ImportNotes()

    def run(self, progress: Progress | None = None) -> ImportSummary:
        """Import all rows. Errors of rows are in the summary; anything else that goes wrong is raised."""
        done_before = self._rows_of_an_interrupted_run()
        errors_of_row: dict[int, list[RowError]] = defaultdict(list)
        for error in self.manifest.errors:
            errors_of_row[error.row_number].append(error)
        for errors in errors_of_row.values():
            self._record_failure(errors)
        remaining = []
        for row in self.manifest.rows:
            # First what is in already, so that the counts never say less than the catalogue has.
            if earlier := done_before.get(row.number):
                self._count(row, earlier.result, earlier.image)
            else:
                remaining.append(row)
        # The sort is stable: within a kind the manifest's order stays.
        remaining.sort(key=lambda row: row.kind != ImageKind.CLEAN)
        for done, row in enumerate(remaining, start=self.summary.row_count - len(remaining) + 1):
            self._beat()
            self._import_row(row)
            if progress:
                progress(done, self.summary.row_count)
        self.summary.errors.sort(key=lambda error: error.row_number)
        self.summary.notes = self._notes.lines(self.manifest, self.files, self._row_files, self.dry_run)
        if not self.dry_run:
            self.batch.notes = "\n".join(self.summary.notes)
            self.batch.save(update_fields=["notes"])
            self._beat()
        return self.summary

    def _import_row(self, row: ManifestRow) -> None:
        try:
            candidate = self._checker.check(row)
            try:
                result, image = self._put_in(candidate)
            except IntegrityError:
                # Another import put the same image in at the same moment: the second look finds it.
                result, image = self._put_in(candidate)
        except RowProblem as problem:
            self._record_failure([RowError(row.number, row.filename, problem.column, problem.message)])
        else:
            self._count(row, result, image)

    def _put_in(self, candidate: Candidate) -> tuple[str, Image]:
        existing = image_already_there(candidate, self._planned[candidate.digest])
        if existing is not None:
            messages = compare_with_existing(candidate, existing)
            if not self.dry_run:
                with transaction.atomic():
                    messages += import_store.complete(candidate, existing)
                    import_store.record_row(
                        self.batch,
                        candidate.row.number,
                        candidate.row.filename,
                        Result.ALREADY_THERE,
                        existing,
                        messages,
                    )
            return Result.ALREADY_THERE, existing

        try:
            decoded = pixels.decode(candidate.content)
        except pixels.UnreadableImage as error:
            raise RowProblem("filename", error.reason) from error
        rendition = pixels.rendition_png(decoded.image)
        image = import_store.new_image(candidate, decoded, rendition, self.batch, is_demo=self.is_demo)
        if candidate.source is not None and image.rendition_sha256 == candidate.source.rendition_sha256:
            raise RowProblem("filename", f"no pixel differs from its source {candidate.source.original_filename}")
        if self.dry_run:
            self._planned[candidate.digest].append(image)
        else:
            import_store.store(candidate, image, decoded, rendition, self.batch)
        self._notes.created(candidate.attack, candidate.target_model)
        self._notes.image(decoded.notes)
        return Result.IMPORTED, image

    def _rows_of_an_interrupted_run(self) -> dict[int, ImportRow]:
        """Rows of this very batch that are in already; those that failed are tried again."""
        if self.dry_run:
            return {}
        rows = self.batch.rows.exclude(result=Result.FAILED).exclude(image=None)
        self.batch.rows.exclude(pk__in=rows.values("pk")).delete()
        relations = [f"image__{relation}" for relation in IMAGE_RELATIONS]
        return {row.row_number: row for row in rows.select_related("image", *relations)}

    def _record_failure(self, errors: list[RowError]) -> None:
        self.summary.errors.extend(errors)
        if not self.dry_run:
            import_store.record_row(
                self.batch,
                errors[0].row_number,
                errors[0].filename,
                Result.FAILED,
                messages=[error.text for error in errors],
            )

    def _count(self, row: ManifestRow, result: str, image: Image | None) -> None:
        if result == Result.IMPORTED:
            self.summary.imported += 1
        else:
            self.summary.already_there += 1
        if image is not None:
            self._checker.remember(row, image)

    def _beat(self) -> None:
        """Show that this run is alive, and how far it is. Raises ImportTakenOver if another worker runs it now."""
        if self.dry_run:
            return
        now = timezone.now()
        still_ours = ImportBatch.objects.filter(
            pk=self.batch.pk, status=ImportStatus.RUNNING, heartbeat_at=self.batch.heartbeat_at
        ).update(
            heartbeat_at=now,
            row_count=self.summary.row_count,
            imported_count=self.summary.imported,
            already_there_count=self.summary.already_there,
            failed_count=self.summary.failed,
        )
        if not still_ours:
            raise ImportTakenOver(f"Import {self.batch.pk} is being run by another worker")
        self.batch.heartbeat_at = now
