"""The rules of a row: what it must say, held against the manifest's other rows and the catalogue.

Nothing is written here. What a row breaks is raised as a RowProblem.
"""

import hashlib
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Q
from django.utils.text import slugify

from imagedb.image_files import FileFinder, FileProblem, NoSuchFile, RowFiles
from imagedb.manifest import Manifest, ManifestRow
from imagedb.models import Attack, Image, ImageClass, ImageKind, TargetModel

Named = TypeVar("Named", Attack, TargetModel)
IMAGE_RELATIONS = ("image_class", "attack", "target_model", "source")


class RowProblem(ValueError):
    """One row cannot go in; the message says why and what to do."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


@dataclass
class Candidate:
    """A checked row: what it describes, resolved against the catalogue. New attacks and models are not saved yet."""

    row: ManifestRow
    content: bytes
    digest: str
    image_class: ImageClass
    predicted_class: ImageClass | None
    source: Image | None
    attack: Attack | None
    target_model: TargetModel | None


class RowChecker:
    """Checks the rows of one manifest. Sources must have been checked, and told to it, before what is made of them."""

    def __init__(self, manifest: Manifest, row_files: RowFiles, *, is_demo: bool) -> None:
        self._row_files = row_files
        self._is_demo = is_demo
        self._classes = list(ImageClass.objects.order_by("index"))
        self._class_of_synset = {image_class.synset: image_class for image_class in self._classes}
        self._clean_names = FileFinder(row.filename for row in manifest.rows if row.kind == ImageKind.CLEAN)
        self._modified_names = {row.filename for row in manifest.rows if row.kind == ImageKind.MODIFIED}
        self._clean_of_filename: dict[str, Image] = {}

    def remember(self, row: ManifestRow, image: Image) -> None:
        """Tell what image a row has become: a clean one may be the source of others."""
        if row.kind == ImageKind.CLEAN:
            self._clean_of_filename[row.filename] = image

    def check(self, row: ManifestRow) -> Candidate:
        """Hold a row against the catalogue. Raises RowProblem."""
        image_class = self._image_class(row)
        predicted_class = self._predicted_class(row, image_class)
        source = self._source(row, image_class) if row.kind == ImageKind.MODIFIED else None
        content = self._content(row)
        return Candidate(
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
        try:
            return self._row_files.read(row.filename)
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
        return model(name=name, slug=slug, is_demo=self._is_demo)


def image_already_there(candidate: Candidate, planned: list[Image]) -> Image | None:
    """The image of the catalogue that a row describes, if it is there. Raises RowProblem if it has another kind.

    ``planned`` are images of the same bytes that are taken to be there (by a dry run).
    """
    same_bytes = list(
        Image.objects.filter(original_sha256=candidate.digest).select_related(*IMAGE_RELATIONS).order_by("id")
    )
    same_bytes += planned
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


def compare_with_existing(candidate: Candidate, existing: Image) -> list[str]:
    """What to know of a row whose image is there. Raises RowProblem if the two contradict each other."""
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
