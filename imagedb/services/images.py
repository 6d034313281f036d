"""Changes to images that are in the catalogue."""

from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from imagedb.models import Image, Visibility

EXAMPLES_NAMED = 5
IDENTITY = ("original_sha256", "kind", "of_attack", "of_target_model")


class ImageConflict(ValueError):
    """A change would make two images the same; the message names them."""


def set_visibility(images: QuerySet[Image], visibility: Visibility, *, group: Group | None = None) -> int:
    """Say who may see the images, and with ``group``, whom they belong to from now on; how many were changed.

    Raises ImageConflict, and changes nothing, if the group has an identical image already.
    """
    images = Image.objects.filter(pk__in=images.order_by().values("pk"))
    if group is None:
        return images.exclude(visibility=visibility).update(visibility=visibility)
    if twins := twins_in_group(images, group):
        raise ImageConflict(_conflict(twins, group))
    try:
        with transaction.atomic():
            return images.exclude(visibility=visibility, group=group).update(visibility=visibility, group=group)
    except IntegrityError as error:  # somebody imported the same images for the group at this moment
        raise ImageConflict(_conflict([], group)) from error


def twins_in_group(images: QuerySet[Image], group: Group | None) -> list[str]:
    """File names of images that the group would have twice if ``images`` belonged to it."""
    same = _with_pair(Image.objects.filter(group=group)).filter(**{field: OuterRef(field) for field in IDENTITY})
    there = _with_pair(images).filter(Exists(same.exclude(pk__in=images.values("pk"))))
    among_themselves = _with_pair(images).order_by().values(*IDENTITY).annotate(count=Count("pk")).filter(count__gt=1)
    twice = images.filter(original_sha256__in=among_themselves.values("original_sha256"))
    names = {*there.values_list("original_filename", flat=True), *twice.values_list("original_filename", flat=True)}
    return sorted(names)


def _with_pair(images: QuerySet[Image]) -> QuerySet[Any]:
    """Adds the attack and the target model, 0 being none: what the constraint image_once_per_group compares."""
    return images.annotate(of_attack=Coalesce("attack_id", 0), of_target_model=Coalesce("target_model_id", 0))


def delete_images(images: QuerySet[Image]) -> None:
    """Delete images, and with them their files. Raises ProtectedError, and deletes nothing, if one is in use."""
    with transaction.atomic():
        images.delete()


def _conflict(names: list[str], group: Group | None) -> str:
    named = ", ".join(names[:EXAMPLES_NAMED])
    if len(names) > EXAMPLES_NAMED:
        named += f" and {len(names) - EXAMPLES_NAMED:,} more"
    owner = f"The group {group} has" if group else "Among the images of no group there are"
    return (
        f"{owner} identical images already{f': {named}' if named else ''}. Each group has one copy of an image: leave "
        "these out, or delete one of the copies. Nothing was changed."
    )
