"""What goes into a draft of a collection and what comes out of it, each time with a reason in the curation log."""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from django.contrib.auth.models import AnonymousUser, User
from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from imagedb import pixels
from imagedb.models import (
    CollectionImage,
    CollectionVersion,
    CurationAction,
    CurationLogEntry,
    Image,
    ImageKind,
    Prediction,
)
from imagedb.selectors.visibility import visible_images
from imagedb.services.collection_drafts import (
    ROWS_AT_A_TIME,
    CollectionError,
    add_members,
    checked_reason,
    locked_draft,
    log,
    misplaced,
    unrecognised,
)

EXAMPLES_NAMED = 3
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Refusal:
    """Images that were not added, and why: ``reason`` goes on after "they"."""

    reason: str
    count: int
    examples: list[str]

    def __str__(self) -> str:
        images = "1 image was" if self.count == 1 else f"{self.count:,} images were"
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{images} not added, because they {self.reason}: {', '.join(self.examples)}{more}"


@dataclass(frozen=True)
class AddReport:
    """What became of images that were to be added."""

    added: int
    already_there: int
    refusals: list[Refusal] = field(default_factory=list)


def add_images(version: CollectionVersion, images: QuerySet[Image], reason: str, user: User | None) -> AddReport:
    """Add those of the images that the user may see and that fit the collection; the report says what was refused.

    Without a user nobody in particular did it, as in the demonstration, and only public images are seen.
    """
    reason = checked_reason(reason)
    with locked_draft(version) as draft:
        there = Exists(CollectionImage.objects.filter(version=draft, image=OuterRef("pk")))
        wanted = visible_images(user or AnonymousUser()).filter(pk__in=images.order_by().values("pk"))
        already_there = wanted.filter(there).count()
        left = wanted.exclude(there)
        refusals = []
        for why, is_refused in misplaced(draft.collection) + unrecognised(draft.collection):
            refused = left.filter(is_refused)
            if count := refused.count():
                names = refused.order_by("pk").values_list("original_filename", flat=True)
                refusals.append(Refusal(why, count, list(names[:EXAMPLES_NAMED])))
                left = left.exclude(is_refused)
        chosen = list(left.order_by("pk").values_list("pk", flat=True))
        if chosen:
            add_members(draft, chosen)
            only = Image.objects.get(pk=chosen[0]) if len(chosen) == 1 else None
            log(draft, CurationAction.ADDED, only, reason, user, count=len(chosen))
        return AddReport(len(chosen), already_there, refusals)


def remove_images(version: CollectionVersion, images: QuerySet[Image], reason: str, user: User | None) -> int:
    """Take images that the user sees out of a draft, each with an entry in the log; how many there were."""
    reason = checked_reason(reason)
    with locked_draft(version) as draft:
        seen = visible_images(user or AnonymousUser()).filter(pk__in=images.order_by().values("pk"))
        members = CollectionImage.objects.filter(version=draft, image__in=seen.values("pk"))
        gone = list(members.order_by("pk").values_list("pk", "image__public_id", "image__original_filename"))
        CurationLogEntry.objects.bulk_create(
            [
                CurationLogEntry(
                    version=draft,
                    action=CurationAction.REMOVED,
                    image_public_id=public_id,
                    image_filename=filename,
                    reason=reason,
                    decided_by=user,
                )
                for _, public_id, filename in gone
            ],
            batch_size=ROWS_AT_A_TIME,
        )
        members.delete()
        return len(gone)


def replace_image(version: CollectionVersion, image: Image, replacement: Image, reason: str, user: User) -> list[Image]:
    """Put another image of the catalogue, of the same kind and class, in the place of one.

    Gives ``modified_versions_in``. Raises CollectionError if the new one does not fit.
    """
    reason = checked_reason(reason)
    with locked_draft(version) as draft:
        if not visible_images(user).filter(pk=replacement.pk).exists():
            raise CollectionError("There is no such image to take its place, or you may not see it.")
        if (replacement.kind, replacement.image_class_id) != (image.kind, image.image_class_id):
            raise CollectionError(
                f"{replacement.original_filename} ({replacement.kind}, {replacement.image_class}) cannot take the "
                f"place of {image.original_filename} ({image.kind}, {image.image_class}): kind and class must be the "
                "same. Remove the one and add the other instead."
            )
        _exchange(draft, CurationAction.REPLACED, image, replacement, reason, user)
        return modified_versions_in(draft, image)


def crop_image(
    version: CollectionVersion,
    image: Image,
    box: Box,
    reason: str,
    user: User,
    *,
    confidence: float | None = None,
) -> tuple[Image, list[Image]]:
    """Put a crop of a clean image in its place: a new image of the catalogue, made from the original's pixels.

    ``box`` is (left, top, right, bottom) in pixels of the upright image, right and bottom not included. ``confidence``
    is how sure the collection's target model is of the right class of the crop, where the collection has a threshold.
    Gives the crop and ``modified_versions_in``: these were made of the whole image. Raises CollectionError.
    """
    reason = checked_reason(reason)
    _refuse_crop(image, box)
    stored: list[Callable[[], None]] = []
    try:
        with locked_draft(version) as draft:
            _refuse_without_confidence(draft, confidence)
            model = draft.collection.target_model
            crop = _crop(image, box, user, stored)
            if model is not None and confidence is not None:
                Prediction.objects.get_or_create(
                    image=crop,
                    target_model=model,
                    defaults={"predicted_class": crop.image_class, "confidence": confidence},
                )
            _exchange(draft, CurationAction.CROPPED, image, crop, reason, user)
            return crop, modified_versions_in(draft, image)
    except BaseException:
        for delete in stored:
            delete()
        raise


def modified_versions_in(version: CollectionVersion, image: Image) -> list[Image]:
    """Modified images of a version that were made from ``image``: when that goes, somebody must look at them."""
    made_of_it = Image.objects.filter(source=image, collection_memberships__version=version)
    return list(made_of_it.select_related("attack", "target_model").order_by("pk"))


def _exchange(
    draft: CollectionVersion, action: CurationAction, image: Image, replacement: Image, reason: str, user: User
) -> None:
    if CollectionImage.objects.filter(version=draft, image=replacement).exists():
        raise CollectionError(f"{replacement.original_filename} is in {draft} already. Remove the other one instead.")
    for why, is_refused in misplaced(draft.collection) + unrecognised(draft.collection):
        if Image.objects.filter(is_refused, pk=replacement.pk).exists():
            raise CollectionError(f"{replacement.original_filename} does not fit: images like it {why}.")
    if not CollectionImage.objects.filter(version=draft, image=image).delete()[0]:
        raise CollectionError(f"{image.original_filename} is not in {draft}.")
    CollectionImage.objects.create(version=draft, image=replacement)
    log(draft, action, image, reason, user, replacement=replacement)


def _refuse_without_confidence(draft: CollectionVersion, confidence: float | None) -> None:
    collection = draft.collection
    if collection.min_confidence is not None and confidence is None:
        raise CollectionError(
            f"{collection} takes clean images that {collection.target_model} recognises with a confidence of at least "
            f"{collection.min_confidence:g}: ask it about the crop, and state its confidence."
        )


def _refuse_crop(image: Image, box: Box) -> None:
    left, top, right, bottom = box
    if image.kind != ImageKind.CLEAN:
        raise CollectionError(
            f"{image.original_filename} is a modified image: cropped, it is no longer what misled the target model. "
            "Crop its source, run the attack on that, import the result, and replace this one by it."
        )
    if not (0 <= left < right <= image.width and 0 <= top < bottom <= image.height):
        raise CollectionError(
            f"The box from ({left}, {top}) to ({right}, {bottom}) is not within the image of {image.width} x "
            f"{image.height} pixels."
        )
    if (right - left, bottom - top) == (image.width, image.height):
        raise CollectionError("The box is the whole image: nothing would be cropped.")


def _crop(image: Image, box: Box, user: User, stored: list[Callable[[], None]]) -> Image:
    """The crop as an image of the catalogue, made if it is not there. ``stored`` is told how to delete its files."""
    try:
        with image.original.open("rb") as file:
            whole = pixels.decode(file.read()).image
    except (FileNotFoundError, pixels.UnreadableImage) as error:
        raise CollectionError(f"The file of {image.original_filename} cannot be read: {error}") from error
    part = whole.crop(box)
    content = pixels.rendition_png(part)
    digest = hashlib.sha256(content).hexdigest()
    same = Image.objects.filter(original_sha256=digest, kind=ImageKind.CLEAN, group=image.group).first()
    if same is not None:
        return same
    crc32 = zlib.crc32(content)
    crop = Image(
        kind=ImageKind.CLEAN,
        image_class=image.image_class,
        original_filename=_cropped_name(image.original_filename, box),
        original_sha256=digest,
        original_bytes=len(content),
        original_format="PNG",
        original_mode="RGB",
        original_crc32=crc32,
        rendition_sha256=digest,
        rendition_bytes=len(content),
        rendition_crc32=crc32,
        width=part.width,
        height=part.height,
        visibility=image.visibility,
        group=image.group,
        licence=image.licence,
        attribution=_cropped_attribution(image.attribution),
        is_demo=image.is_demo,
        uploaded_by=user,
    )
    files = (
        (crop.original, "original.png", content),
        (crop.rendition, "rendition.png", content),
        (crop.thumbnail, "thumbnail.jpg", pixels.thumbnail(part)),
    )
    for field_file, name, of_file in files:
        field_file.save(name, ContentFile(of_file), save=False)
        stored.append(_deletion(field_file.storage.delete, str(field_file.name)))
    with transaction.atomic():
        crop.save()
    return crop


def _deletion(delete: Callable[[str], None], name: str) -> Callable[[], None]:
    return lambda: delete(name)


def _cropped_name(filename: str, box: Box) -> str:
    ending = f"-crop-{'-'.join(map(str, box))}.png"
    path = PurePosixPath(filename)
    return str(path.with_name(path.stem))[: 255 - len(ending)] + ending


def _cropped_attribution(attribution: str) -> str:
    """Licences that ask for attribution ask to say what was changed, too."""
    note = " (cropped)"
    longest = Image._meta.get_field("attribution").max_length or 0
    return f"{attribution}{note}" if attribution and len(attribution) + len(note) <= longest else attribution
