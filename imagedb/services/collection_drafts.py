"""What all changes of a collection's version have in common: the lock, the log, and which images fit the collection."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from imagedb.models import (
    Collection,
    CollectionImage,
    CollectionVersion,
    CurationAction,
    CurationLogEntry,
    Image,
    ImageKind,
    Prediction,
    Visibility,
)
from imagedb.triggers import broken_rule

ROWS_AT_A_TIME = 5000


class CollectionError(ValueError):
    """A collection cannot be changed like that; the message says why and what to do. Nothing was changed."""


@contextmanager
def locked_draft(version: CollectionVersion) -> Iterator[CollectionVersion]:
    """The version's row, locked, in a transaction. Raises CollectionError if it is frozen, or if a rule is broken."""
    try:
        with transaction.atomic():
            locked = CollectionVersion.objects.select_for_update(of=("self",), no_key=True)
            draft = locked.select_related("collection").get(pk=version.pk)
            if draft.is_frozen:
                raise CollectionError(f"{draft} is frozen and never changes. Make a new version.")
            yield draft
    except IntegrityError as error:
        if rule := broken_rule(error):
            raise CollectionError(rule.message) from error
        raise


def checked_reason(reason: str) -> str:
    """The reason without space around it. Raises CollectionError if there is none."""
    if not reason.strip():
        raise CollectionError("Give a reason: the curation log tells others why the collection is as it is.")
    return reason.strip()


def add_members(draft: CollectionVersion, image_ids: Iterable[int]) -> int:
    """Put images into a locked draft; how many there were."""
    count, left = 0, iter(image_ids)
    while ids := list(islice(left, ROWS_AT_A_TIME)):
        CollectionImage.objects.bulk_create(CollectionImage(version=draft, image_id=image_id) for image_id in ids)
        count += len(ids)
    return count


def log(
    draft: CollectionVersion,
    action: CurationAction,
    image: Image | None,
    reason: str,
    user: User | None,
    *,
    replacement: Image | None = None,
    count: int = 1,
) -> None:
    """Write an entry into the curation log; without an image it is about ``count`` of them."""
    CurationLogEntry.objects.create(
        version=draft,
        action=action,
        image_public_id=image.public_id if image else None,
        image_filename=image.original_filename if image else "",
        replacement=replacement,
        count=count,
        reason=reason,
        decided_by=user,
    )


def misplaced(collection: Collection) -> list[tuple[str, Q]]:
    """Images that do not belong into a collection of this kind: what is wrong with them, and the condition for it."""
    too_private = Q(visibility=Visibility.PRIVATE)
    if collection.visibility == Visibility.PRIVATE:
        # Whoever sees the collection sees these images, too: the members of its group, or its creator alone.
        if collection.group_id:
            too_private &= ~Q(group=collection.group_id) | Q(group__isnull=True)
        else:
            too_private &= ~Q(uploaded_by=collection.created_by_id) | Q(uploaded_by__isnull=True)
    return [
        (
            "are not demonstration material, as the collection is"
            if collection.is_demo
            else "are demonstration material, and the collection is not",
            ~Q(is_demo=collection.is_demo),
        ),
        (
            "are private, and the collection is open to others, who would see them in its manifest; make them public "
            "or registered, or the collection private to the same group",
            too_private,
        ),
    ]


def unrecognised(collection: Collection) -> list[tuple[str, Q]]:
    """Clean images that the collection's target model does not recognise as it should, likewise."""
    if collection.target_model is None:
        return []
    model = collection.target_model
    answers = Prediction.objects.filter(image=OuterRef("pk"), target_model=model)
    own_class = Q(predicted_class=OuterRef("image_class"))
    clean = Q(kind=ImageKind.CLEAN)
    found = [(f"are clean, and {model} takes them for another class", clean & Q(Exists(answers.exclude(own_class))))]
    if collection.min_confidence is not None:
        sure = answers.filter(own_class, confidence__gte=collection.min_confidence)
        found += [
            (
                f"are clean, and no prediction of {model} is known for them; import its predictions first",
                clean & ~Q(Exists(answers)),
            ),
            (
                f"are clean, and {model} is less than {collection.min_confidence:g} sure of them",
                clean & ~Q(Exists(sure)),
            ),
        ]
    return found
