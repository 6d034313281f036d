"""One run over the rows of a manifest.

Clean images go first, so that sources resolve whatever the order of the rows. Each row is a transaction of its own:
a good row goes in even if its neighbours fail. Running an import again imports nothing twice, because an image is
known by the digest of its bytes.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.text import slugify

from imagedb import pixels
from imagedb.image_files import FileFinder, FileProblem, ImageFiles, NoSuchFile
from imagedb.manifest import Manifest, ManifestRow, RowError
from imagedb.models import Attack, Image, ImageClass, ImageKind, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.models.imports import ImportStatus

Result = ImportRow.Result
Progress = Callable[[int, int], None]
Named = TypeVar("Named", Attack, TargetModel)
NAMES_SHOWN = 5
IMAGE_RELATIONS = ("image_class", "attack", "target_model", "source")


class ImportTakenOver(Exception):
    """Another worker runs this import now, because this one showed no heartbeat for too long."""


class RowProblem(ValueError):
    """One row cannot go in; the message says why and what to do."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


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


@dataclass
class _Candidate:
    """A checked row: what it describes, resolved against the catalogue. New attacks and models are not saved yet."""

    row: ManifestRow
    content: bytes
    digest: str
    image_class: ImageClass
    predicted_class: ImageClass | None
    source: Image | None
    attack: Attack | None
    target_model: TargetModel | None


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
        self._classes = list(ImageClass.objects.order_by("index"))
        self._class_of_synset = {image_class.synset: image_class for image_class in self._classes}
        self._file_of, self._unclear_file = self._match_files(manifest_folder)
        self._clean_names = FileFinder(row.filename for row in manifest.rows if row.kind == ImageKind.CLEAN)
        self._modified_names = {row.filename for row in manifest.rows if row.kind == ImageKind.MODIFIED}
        self._clean_of_filename: dict[str, Image] = {}
        self._planned: dict[str, list[Image]] = defaultdict(list)  # by digest: what a dry run would have made
        self._created: list[str] = []
        self._image_notes: Counter[str] = Counter()

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
        self.summary.notes = self._notes()
        if not self.dry_run:
            self.batch.notes = "\n".join(self.summary.notes)
            self.batch.save(update_fields=["notes"])
            self._beat()
        return self.summary

    # --- One row ----------------------------------------------------------------------------------------------

    def _import_row(self, row: ManifestRow) -> None:
        try:
            candidate = self._check(row)
            try:
                result, image = self._put_in(candidate)
            except IntegrityError:
                # Another import put the same image in at the same moment: the second look finds it.
                result, image = self._put_in(candidate)
        except RowProblem as problem:
            self._record_failure([RowError(row.number, row.filename, problem.column, problem.message)])
        else:
            self._count(row, result, image)

    def _check(self, row: ManifestRow) -> _Candidate:
        """Hold a row against the catalogue. Raises RowProblem."""
        image_class = self._image_class(row)
        predicted_class = self._predicted_class(row, image_class)
        source = self._source(row, image_class) if row.kind == ImageKind.MODIFIED else None
        content = self._content(row)
        return _Candidate(
            row=row,
            content=content,
            digest=hashlib.sha256(content).hexdigest(),
            image_class=image_class,
            predicted_class=predicted_class,
            source=source,
            attack=self._find_or_plan(Attack, "attack", row.attack),
            target_model=self._find_or_plan(TargetModel, "target_model", row.target_model),
        )

    def _image_class(self, row: ManifestRow) -> ImageClass:
        of_index = None if row.class_index is None else self._classes[row.class_index]
        if not row.synset:
            assert of_index is not None  # noqa: S101 - the parser lets no row without either through
            return of_index
        of_synset = self._class_of_synset.get(row.synset)
        if of_synset is None:
            raise RowProblem("synset", f"{row.synset} is none of the 1,000 ImageNet classes")
        if of_index is not None and of_index != of_synset:
            raise RowProblem(
                "class_index",
                f"{of_index} and {of_synset.synset} ({of_synset}) are different classes; correct one of them",
            )
        return of_synset

    def _predicted_class(self, row: ManifestRow, image_class: ImageClass) -> ImageClass | None:
        if row.predicted_class_index is None:
            return None
        predicted = self._classes[row.predicted_class_index]
        if row.kind == ImageKind.CLEAN and predicted != image_class:
            raise RowProblem(
                "predicted_class_index",
                f"the model takes this clean image for {predicted}, but it is {image_class}; "
                "a clean image must be classified correctly",
            )
        if row.kind == ImageKind.MODIFIED and predicted == image_class:
            raise RowProblem(
                "predicted_class_index",
                f"the model still sees {image_class}, the image's own class; an adversarial example must be "
                "misclassified",
            )
        return predicted

    def _source(self, row: ManifestRow, image_class: ImageClass) -> Image:
        source = self._source_in_manifest(row.source_filename) or self._source_in_catalogue(row.source_filename)
        if source.image_class != image_class:
            raise RowProblem(
                "class_index",
                f"is {image_class}, but its source {row.source_filename} is {source.image_class}; "
                "give the true class, not the predicted one",
            )
        return source

    def _source_in_manifest(self, filename: str) -> Image | None:
        try:
            name = self._clean_names.find(filename)
        except NoSuchFile:
            if filename in self._modified_names:
                raise RowProblem("source_filename", f"{filename} is itself a modified image") from None
            return None
        except FileProblem as problem:
            raise RowProblem("source_filename", f"{filename} {problem}") from problem
        if name not in self._clean_of_filename:
            raise RowProblem("source_filename", f"{name} could not be imported itself; mend its row first")
        return self._clean_of_filename[name]

    def _source_in_catalogue(self, filename: str) -> Image:
        named = list(
            Image.objects.filter(original_filename=filename).select_related(*IMAGE_RELATIONS).order_by("kind", "id")
        )
        clean = [image for image in named if image.kind == ImageKind.CLEAN]
        if len(clean) > 1:
            ids = ", ".join(str(image.public_id) for image in clean)
            raise RowProblem(
                "source_filename",
                f"the catalogue has {len(clean)} clean images named {filename} ({ids}); put the one that is meant "
                "into this manifest",
            )
        if not clean:
            raise RowProblem(
                "source_filename",
                f"{filename} is itself a modified image"
                if named
                else f"{filename} is neither a clean image of this manifest nor of the catalogue; import it first",
            )
        return clean[0]

    def _content(self, row: ManifestRow) -> bytes:
        if row.filename in self._unclear_file:
            raise RowProblem("filename", self._unclear_file[row.filename])
        try:
            return self.files.read(self._file_of[row.filename])
        except FileProblem as problem:
            raise RowProblem("filename", str(problem)) from problem

    def _find_or_plan(self, model: type[Named], column: str, name: str) -> Named | None:
        """The attack or target model of that name or slug; one not yet saved if there is none."""
        if not name:
            return None
        slug = slugify(name)
        found = list(model._default_manager.filter(Q(name__iexact=name) | Q(slug=slug)))
        if len(found) > 1:
            slugs = ", ".join(candidate.slug for candidate in found)
            raise RowProblem(column, f"{name!r} may be any of {slugs}; write one of these")
        if found:
            return found[0]
        longest = 100
        if not slug or len(name) > longest:
            raise RowProblem(
                column,
                f"{name!r} cannot be made into an address: it has no Latin letter or digit, or over {longest} "
                "characters; create it in the admin and give its slug here",
            )
        return model(name=name, slug=slug, is_demo=self.is_demo)

    # --- Into the catalogue -----------------------------------------------------------------------------------

    def _put_in(self, candidate: _Candidate) -> tuple[str, Image]:
        existing = self._existing(candidate)
        if existing is not None:
            messages = self._check_existing(candidate, existing)
            if not self.dry_run:
                with transaction.atomic():
                    messages += self._complete(candidate, existing)
                    self._record(candidate.row, Result.ALREADY_THERE, existing, messages)
            return Result.ALREADY_THERE, existing

        try:
            decoded = pixels.decode(candidate.content)
        except pixels.UnreadableImage as error:
            raise RowProblem("filename", error.reason) from error
        rendition = pixels.rendition_png(decoded.image)
        image = self._new_image(candidate, decoded, rendition)
        if candidate.source is not None and image.rendition_sha256 == candidate.source.rendition_sha256:
            raise RowProblem("filename", f"no pixel differs from its source {candidate.source.original_filename}")
        if self.dry_run:
            self._planned[candidate.digest].append(image)
            for named in (candidate.attack, candidate.target_model):
                self._note_if_new(named)
        else:
            self._store(candidate, image, decoded, rendition)
        self._image_notes.update(decoded.notes)
        return Result.IMPORTED, image

    def _existing(self, candidate: _Candidate) -> Image | None:
        """The image of the catalogue that this row describes, if it is there. Raises RowProblem on contradictions."""
        same_bytes = list(
            Image.objects.filter(original_sha256=candidate.digest).select_related(*IMAGE_RELATIONS).order_by("id")
        )
        same_bytes += self._planned[candidate.digest]
        other_kind = [image for image in same_bytes if image.kind != candidate.row.kind]
        if other_kind:
            raise RowProblem(
                "kind",
                f"the same file is in the catalogue as the {other_kind[0].kind} image "
                f"{other_kind[0].original_filename}; correct the kind or the filename",
            )
        if candidate.attack is None:
            return same_bytes[0] if same_bytes else None
        of_attack = [image for image in same_bytes if image.attack and image.attack.slug == candidate.attack.slug]
        if candidate.target_model is None:
            return of_attack[0] if of_attack else None
        slug = candidate.target_model.slug
        of_pair = [image for image in of_attack if image.target_model and image.target_model.slug == slug]
        # An image imported before its target model was known gets it now.
        of_no_model = [image for image in of_attack if image.target_model is None]
        return next(iter(of_pair + of_no_model), None)

    def _check_existing(self, candidate: _Candidate, existing: Image) -> list[str]:
        if existing.image_class != candidate.image_class:
            raise RowProblem(
                "class_index", f"is {candidate.image_class}, but the catalogue has it as {existing.image_class}"
            )
        if candidate.source and existing.source and candidate.source.original_sha256 != existing.source.original_sha256:
            raise RowProblem(
                "source_filename",
                f"is {candidate.source.original_filename}, but the catalogue has it as made from "
                f"{existing.source.original_filename}",
            )
        if existing.original_filename != candidate.row.filename:
            return [f"it is in the catalogue as {existing.original_filename}"]
        return []

    def _complete(self, candidate: _Candidate, existing: Image) -> list[str]:
        """Add to an image that is there what the row knows more: its target model, a new or changed prediction."""
        messages = []
        target_model = self._saved(candidate.target_model)
        if target_model and existing.kind == ImageKind.MODIFIED and existing.target_model is None:
            existing.target_model = target_model
            existing.save(update_fields=["target_model"])
            messages.append(f"its target model was set to {target_model}")
        if target_model and candidate.predicted_class:
            prediction = Prediction.objects.filter(image=existing, target_model=target_model).first()
            if prediction is None:
                self._predict(existing, target_model, candidate.predicted_class, candidate.row.confidence)
                messages.append("its prediction was added")
            elif self._differs(prediction, candidate):
                prediction.predicted_class = candidate.predicted_class
                prediction.confidence = candidate.row.confidence
                prediction.save(update_fields=["predicted_class", "confidence"])
                messages.append("its prediction was updated")
        return messages

    def _new_image(self, candidate: _Candidate, decoded: pixels.DecodedImage, rendition: bytes) -> Image:
        return Image(
            kind=candidate.row.kind,
            image_class=candidate.image_class,
            source=candidate.source,
            attack=candidate.attack,
            target_model=candidate.target_model if candidate.row.kind == ImageKind.MODIFIED else None,
            original_filename=candidate.row.filename,
            original_sha256=candidate.digest,
            original_bytes=len(candidate.content),
            original_format=decoded.format,
            original_mode=decoded.mode,
            rendition_sha256=hashlib.sha256(rendition).hexdigest(),
            width=decoded.width,
            height=decoded.height,
            visibility=self.batch.visibility,
            licence=self.batch.licence,
            attribution=self.batch.attribution,
            is_demo=self.is_demo,
            uploaded_by=self.batch.created_by,
        )

    def _store(self, candidate: _Candidate, image: Image, decoded: pixels.DecodedImage, rendition: bytes) -> None:
        """Write the files, then the rows in one transaction; if that fails, remove the files again."""
        contents = (
            (image.original, f"original{pixels.ENDINGS[decoded.format]}", candidate.content),
            (image.rendition, "rendition.png", rendition),
            (image.thumbnail, "thumbnail.jpg", pixels.thumbnail(decoded.image)),
        )
        stored: list[tuple[Storage, str]] = []
        try:
            for field_file, name, content in contents:
                field_file.save(name, ContentFile(content), save=False)
                stored.append((field_file.storage, str(field_file.name)))
            with transaction.atomic():
                image.attack = self._saved(candidate.attack)
                target_model = self._saved(candidate.target_model)
                image.target_model = target_model if image.kind == ImageKind.MODIFIED else None
                image.import_batch = self.batch
                image.save()
                if target_model and candidate.predicted_class:
                    self._predict(image, target_model, candidate.predicted_class, candidate.row.confidence)
                self._record(candidate.row, Result.IMPORTED, image, list(decoded.notes))
        except BaseException:
            for storage, stored_name in stored:
                storage.delete(stored_name)
            raise
        for named in (candidate.attack, candidate.target_model):
            self._note_if_new(named)

    @staticmethod
    def _differs(prediction: Prediction, candidate: _Candidate) -> bool:
        """Whether the row says something else than the catalogue. A row without a confidence says nothing of it."""
        confidence = candidate.row.confidence
        return prediction.predicted_class != candidate.predicted_class or (
            confidence is not None and confidence != prediction.confidence
        )

    @staticmethod
    def _predict(image: Image, target_model: TargetModel, predicted: ImageClass, confidence: float | None) -> None:
        Prediction.objects.create(
            image=image, target_model=target_model, predicted_class=predicted, confidence=confidence
        )

    @staticmethod
    def _saved(named: Named | None) -> Named | None:
        """The saved row of an attack or target model; ``named`` itself stays as it was, in case of a roll-back."""
        if named is None or named.pk is not None:
            return named
        values = {"name": named.name, "is_demo": named.is_demo}
        return type(named)._default_manager.get_or_create(slug=named.slug, defaults=values)[0]

    def _note_if_new(self, named: Attack | TargetModel | None) -> None:
        if named is not None and named.pk is None:
            note = f"{named._meta.verbose_name} {named.name} ({named.slug})"
            if note not in self._created:
                self._created.append(note)

    # --- Records ----------------------------------------------------------------------------------------------

    def _rows_of_an_interrupted_run(self) -> dict[int, ImportRow]:
        """Rows of this very batch that are in already; those that failed are tried again."""
        if self.dry_run:
            return {}
        rows = self.batch.rows.exclude(result=Result.FAILED).exclude(image=None)
        self.batch.rows.exclude(pk__in=rows.values("pk")).delete()
        relations = [f"image__{relation}" for relation in IMAGE_RELATIONS]
        return {row.row_number: row for row in rows.select_related("image", *relations)}

    def _record(
        self, row: ManifestRow | RowError, result: str, image: Image | None = None, messages: list[str] | None = None
    ) -> None:
        ImportRow.objects.update_or_create(
            batch=self.batch,
            row_number=row.number if isinstance(row, ManifestRow) else row.row_number,
            defaults={
                "filename": row.filename[:255],
                "result": result,
                "image": image,
                "message": "; ".join(messages or []),
            },
        )

    def _record_failure(self, errors: list[RowError]) -> None:
        self.summary.errors.extend(errors)
        if not self.dry_run:
            self._record(errors[0], Result.FAILED, messages=[error.text for error in errors])

    def _count(self, row: ManifestRow, result: str, image: Image | None) -> None:
        if result == Result.IMPORTED:
            self.summary.imported += 1
        else:
            self.summary.already_there += 1
        if image is not None and row.kind == ImageKind.CLEAN:
            self._clean_of_filename[row.filename] = image

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

    def _match_files(self, manifest_folder: str) -> tuple[dict[str, str], dict[str, str]]:
        """The file of each filename of the manifest, and what is unclear about the others."""
        finder = FileFinder(self.files.names, manifest_folder)
        file_of: dict[str, str] = {}
        unclear: dict[str, str] = {}
        filenames_of: dict[str, set[str]] = defaultdict(set)
        for row in self.manifest.rows:
            try:
                file_of[row.filename] = finder.find(row.filename)
                filenames_of[file_of[row.filename]].add(row.filename)
            except FileProblem as problem:
                unclear[row.filename] = f"{row.filename} in {self.files.label}: {problem}"
        for file, filenames in filenames_of.items():
            # Two folders of the manifest, one file of that basename: it can belong to one of them only.
            if len(filenames) > 1:
                for filename in filenames - {file}:
                    others = ", ".join(sorted(filenames - {filename}))
                    unclear[filename] = f"only {file} has that name, and {others} means it too; write the whole path"
        return file_of, unclear

    def _notes(self) -> list[str]:
        verb = "Would create" if self.dry_run else "Created"
        notes = [f"{verb} {created}." for created in self._created]
        notes += [f"{count} image(s): {note}." for note, count in self._image_notes.most_common()]
        without_model = sum(row.kind == ImageKind.MODIFIED and not row.target_model for row in self.manifest.rows)
        if without_model:
            notes.append(
                f"{without_model} modified image(s) have no target model and can be used in no study until one is set."
            )
        if self.manifest.ignored_columns:
            notes.append(f"Columns not read: {', '.join(self.manifest.ignored_columns)}.")
        unused = sorted(set(self.files.names) - set(self._file_of.values()))
        if unused:
            notes.append(f"{len(unused)} file(s) are in no row: {_first_of(unused)}.")
        if self.files.junk_count:
            notes.append(f"{self.files.junk_count} file(s) of the operating system were skipped (such as .DS_Store).")
        if self.files.refused:
            notes.append(f"{len(self.files.refused)} file(s) were refused: {_first_of(self.files.refused)}.")
        return notes


def _first_of(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
