"""Images as plain rows, as the API shows them: a page of a list in a few queries, without a model instance per row."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import OuterRef, QuerySet, Subquery

from imagedb.models import CollectionImage, Image, Prediction
from imagedb.selectors.collections import visible_versions

# Columns that are shown as they are.
COLUMNS = (
    "kind",
    "verified",
    "comparison",
    "linf",
    "l2",
    "changed_share",
    "ssim",
    "ciede2000",
    "width",
    "height",
    "original_filename",
    "original_sha256",
    "original_bytes",
    "original_format",
    "original_mode",
    "original_profile",
    "rendition_sha256",
    "rendition_bytes",
    "visibility",
    "licence",
    "attribution",
    "is_demo",
)


def image_rows(
    user: AbstractUser | AnonymousUser, visible: QuerySet[Image], keys: Iterable[int]
) -> list[dict[str, Any]]:
    """The images with these keys, in that order, with all that describes them. Three queries.

    ``visible`` are the images that the user may see (``visible_images``). What else is hidden from the user is left
    out: a source is None, and a version of a collection is not among ``collections``.
    """
    keys = list(keys)
    predictions, collections = _predictions(keys), _collections(user, keys)
    source = visible.filter(pk=OuterRef("source_id")).order_by().values("public_id")
    found = {}
    for key, public_id, source_id, index, synset, name, attack, target_model, created_at, *values in (
        visible.filter(pk__in=keys)
        .order_by()
        .values_list(
            "pk",
            "public_id",
            Subquery(source),
            "image_class__index",
            "image_class__synset",
            "image_class__name",
            "attack__slug",
            "target_model__slug",
            "created_at",
            *COLUMNS,
        )
    ):
        found[key] = {
            "id": str(public_id),
            "class": {"index": index, "synset": synset, "name": name},
            "source": str(source_id) if source_id else None,
            "attack": attack,
            "target_model": target_model,
            "predictions": predictions[key],
            "collections": collections[key],
            "created_at": created_at.isoformat().replace("+00:00", "Z"),
            **dict(zip(COLUMNS, values, strict=True)),
        }
    return [found[key] for key in keys if key in found]


def _predictions(keys: list[int]) -> dict[int, list[dict[str, Any]]]:
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for key, target_model, index, synset, name, confidence in (
        Prediction.objects.filter(image__in=keys)
        .order_by("target_model__slug")
        .values_list(
            "image_id",
            "target_model__slug",
            "predicted_class__index",
            "predicted_class__synset",
            "predicted_class__name",
            "confidence",
        )
    ):
        predicted = {"index": index, "synset": synset, "name": name}
        rows[key].append({"target_model": target_model, "predicted_class": predicted, "confidence": confidence})
    return rows


def _collections(user: AbstractUser | AnonymousUser, keys: list[int]) -> dict[int, list[dict[str, Any]]]:
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for key, collection, version in (
        CollectionImage.objects.filter(image__in=keys, version__in=visible_versions(user).order_by().values("pk"))
        .order_by("version__collection__slug", "version")
        .values_list("image_id", "version__collection__slug", "version__version")
    ):
        rows[key].append({"collection": collection, "version": version})
    return rows
