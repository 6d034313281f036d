"""Images as archives of them show them: one query, read once, so that a whole archive is of one moment."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import CharField, Exists, OuterRef, QuerySet
from django.db.models.functions import Cast

from imagedb.archives import ArchivedImage, ArchivedPrediction, StoredFile
from imagedb.models import Image
from imagedb.selectors.visibility import visible_images

ROWS_AT_A_TIME = 2000
DESCRIPTION = (
    "original_filename",
    "width",
    "height",
    "comparison",
    "linf",
    "l2",
    "changed_share",
    "ssim",
    "ciede2000",
    "licence",
    "attribution",
)


def images_and_sources(images: QuerySet[Image], user: AbstractUser | AnonymousUser) -> QuerySet[Image]:
    """Some images, and the clean images they were made from as far as the user may see these."""
    chosen = images.order_by()
    return visible_images(user).filter(pk__in=chosen.values("pk").union(chosen.values("source_id")))


def archived_images(
    images: QuerySet[Image], user: AbstractUser | AnonymousUser, *, part: str
) -> Iterator[ArchivedImage]:
    """Some images in the order of their ids, with their ``part``: ``original`` or ``rendition``.

    Read row by row, never held as a whole. A source that the user may not see is not named.
    """
    rows = (
        Image.objects.filter(pk__in=images.order_by().values("pk"))
        .annotate(
            source_is_visible=Exists(visible_images(user).filter(pk=OuterRef("source_id"))),
            # As text: making a UUID of each takes half the time of the whole query.
            id_text=Cast("public_id", CharField()),
            source_id_text=Cast("source__public_id", CharField()),
        )
        .order_by("pk")
        .values_list(
            "pk",
            "id_text",
            "kind",
            "image_class__index",
            "image_class__synset",
            "attack__slug",
            "target_model__slug",
            part,
            f"{part}_bytes",
            f"{part}_crc32",
            f"{part}_sha256",
            "source_is_visible",
            "source_id_text",
            f"source__{part}",
            *DESCRIPTION,
            # An image comes as often as it has predictions, at least once.
            "predictions__target_model__slug",
            "predictions__predicted_class__index",
            "predictions__confidence",
        )
    )
    for _, rows_of_image in groupby(rows.iterator(chunk_size=ROWS_AT_A_TIME), key=itemgetter(0)):
        yield _archived_image(list(rows_of_image))


def _archived_image(rows: list[tuple]) -> ArchivedImage:
    first = rows[0]
    _, public_id, kind, class_index, synset, attack, target_model, *file, source_is_visible, source_id, source_name = (
        first[:14]
    )
    described = first[14:-3]
    predictions = tuple(sorted(ArchivedPrediction._make(row[-3:]) for row in rows)) if first[-3] else ()
    return ArchivedImage._make(
        (
            _with_hyphens(public_id),
            kind,
            class_index,
            synset,
            attack or "",
            target_model or "",
            StoredFile._make(file),
            _with_hyphens(source_id) if source_is_visible else "",
            source_name if source_is_visible else "",
            *described,
            predictions,
        )
    )


def _with_hyphens(public_id: str) -> str:
    """A UUID as everybody writes it; SQLite keeps it without hyphens."""
    if len(public_id) == 36:
        return public_id
    return f"{public_id[:8]}-{public_id[8:12]}-{public_id[12:16]}-{public_id[16:20]}-{public_id[20:]}"
