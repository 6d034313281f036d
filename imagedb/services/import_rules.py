"""The rules of a row: what it must say, held against the catalogue.

Nothing is written here. What a row breaks is raised as a RowProblem.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Q, QuerySet
from django.utils.text import slugify

from imagedb.manifest import ManifestRow
from imagedb.models import Attack, Image, ImageClass, ImageKind, ImportBatch, TargetModel
from imagedb.selectors import visible_images

Named = TypeVar("Named", Attack, TargetModel)
IMAGE_RELATIONS = ("image_class", "attack", "target_model", "source")
LONGEST_NAME = 100


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
    digest: str  # SHA-256 of the file
    image_class: ImageClass
    predicted_class: ImageClass | None
    source: Image | None
    attack: Attack | None
    target_model: TargetModel | None


class RowRules:
    """Holds rows of one import against the classes, attacks, target models and images of the catalogue."""

    def __init__(self, batch: ImportBatch) -> None:
        self._batch = batch
        self._classes = list(ImageClass.objects.order_by("index"))
        self._class_of_synset = {image_class.synset: image_class for image_class in self._classes}
        self._named: dict[tuple[type, str], Attack | TargetModel] = {}

    def forget_unsaved(self) -> None:
        """Look attacks and target models up anew that were not in the catalogue: they may be by now."""
        self._named = {key: named for key, named in self._named.items() if named.pk is not None}

    def image_class(self, row: ManifestRow) -> ImageClass:
        """The true class. Raises RowProblem if index and synset contradict each other, or the synset is unknown."""
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

    def predicted_class(self, row: ManifestRow, image_class: ImageClass) -> ImageClass | None:
        """What the target model says. Raises RowProblem if it is wrong of a clean image, or right of a modified one."""
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

    def attack(self, row: ManifestRow) -> Attack | None:
        """The attack of that name or slug; one not yet saved if there is none. Raises RowProblem."""
        return self._find_or_plan(Attack, "attack", row.attack)

    def target_model(self, row: ManifestRow) -> TargetModel | None:
        """The target model of that name or slug; one not yet saved if there is none. Raises RowProblem."""
        return self._find_or_plan(TargetModel, "target_model", row.target_model)

    def _find_or_plan(self, model: type[Named], column: str, name: str) -> Named | None:
        if not name:
            return None
        slug = slugify(name)
        known = self._named.get((model, name))
        if isinstance(known, model):
            return known
        found = list(model._default_manager.filter(Q(name__iexact=name) | Q(slug=slug)))
        if len(found) > 1:
            slugs = ", ".join(candidate.slug for candidate in found)
            raise RowProblem(column, f"{name!r} may be any of {slugs}; write one of these")
        if not found and (not slug or len(name) > LONGEST_NAME):
            raise RowProblem(
                column,
                f"{name!r} cannot be made into an address: it has no Latin letter or digit, or over {LONGEST_NAME} "
                "characters; create it in the admin and give its slug here",
            )
        named = found[0] if found else self._planned(model, name, slug)
        self._named[model, name] = named
        return named

    def _planned(self, model: type[Named], name: str, slug: str) -> Named:
        for planned in self._named.values():
            if isinstance(planned, model) and planned.slug == slug:
                return planned
        return model(name=name, slug=slug, is_demo=self._batch.is_demo)

    def sources_in_catalogue(self, filenames: Iterable[str]) -> dict[str, list[Image]]:
        """The images that the importing account may see, of the import's own group, by each of the file names."""
        named: dict[str, list[Image]] = {filename: [] for filename in filenames}
        images = (
            self._open_to_account()
            .filter(original_filename__in=list(named), group=self._batch.group)
            .select_related(*IMAGE_RELATIONS)
            .order_by("kind", "id")
        )
        for image in images if named else ():
            named[image.original_filename].append(image)
        return named

    def images_of_digest(self, digest: str) -> list[Image]:
        """The images of the import's group that have these bytes.

        Raises RowProblem if one of them is not open to the importing account: each group has an image only once.
        """
        images = list(
            Image.objects.filter(original_sha256=digest, group=self._batch.group)
            .select_related(*IMAGE_RELATIONS)
            .order_by("id")
        )
        if images and self._batch.created_by is not None:
            visible = set(
                self._open_to_account().filter(pk__in=[image.pk for image in images]).values_list("pk", flat=True)
            )
            if len(visible) < len(images):
                raise RowProblem(
                    "filename",
                    "the same file is in the catalogue already and not open to your account; import it for a group of "
                    "yours, or ask an administrator",
                )
        return images

    def _open_to_account(self) -> QuerySet[Image]:
        account = self._batch.created_by
        return Image.objects.all() if account is None else visible_images(account)


def only_clean(filename: str, named: list[Image]) -> Image:
    """The one image of that name that can be a source. Raises RowProblem."""
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
            else f"{filename} is neither a clean image of this manifest nor one of the catalogue that you may use; "
            "import it first",
        )
    return clean[0]


def check_source_class(row: ManifestRow, image_class: ImageClass, source: Image) -> None:
    """Raises RowProblem if a modified image has another class than its source."""
    if source.image_class != image_class:
        raise RowProblem(
            "class_index",
            f"is {image_class}, but its source {row.source_filename} is {source.image_class}; "
            "give the true class, not the predicted one",
        )


def image_already_there(candidate: Candidate, same_bytes: list[Image]) -> Image | None:
    """Which of the images with the same bytes a row describes, if any. Raises RowProblem if it has another kind."""
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
