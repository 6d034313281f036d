"""Pages of images by a cursor: an image's public id, since internal ids never leave the site."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from imagedb.models import Image


@dataclass(frozen=True)
class ImagePage:
    """Some images in the order of the catalogue, and the cursors of the pages beside it; None where there is none."""

    images: list[Image]
    before: UUID | None
    after: UUID | None


def image_page(
    images: QuerySet[Image], size: int, *, after: Image | None = None, before: Image | None = None
) -> ImagePage:
    """The page that begins after an image, or ends before one; the first if neither is given.

    New images change no page but the last. The neighbour that one comes from is there without a look.
    """
    if before is not None:
        found = list(images.filter(pk__lt=before.pk).order_by("-pk")[: size + 1])
        shown = found[:size][::-1]
        return ImagePage(shown, _first(shown) if len(found) > size else None, _last(shown))
    if after is not None:
        images = images.filter(pk__gt=after.pk)
    found = list(images.order_by("pk")[: size + 1])
    shown = found[:size]
    return ImagePage(shown, _first(shown) if after is not None else None, _last(shown) if len(found) > size else None)


def _first(images: list[Image]) -> UUID | None:
    return images[0].public_id if images else None


def _last(images: list[Image]) -> UUID | None:
    return images[-1].public_id if images else None
