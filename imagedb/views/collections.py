"""Collections and their versions."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from imagedb.downloads import manifest_address, version_downloads
from imagedb.models import CollectionVersion, CurationLogEntry, Image, Visibility
from imagedb.selectors.collections import images_of_version, visible_collections, visible_versions
from imagedb.selectors.composition import changes_since, composition, images_of_version_after_terms, sample
from imagedb.selectors.figures import extent
from imagedb.selectors.visibility import visible_images
from imagedb.views.filter_form import address
from scooter_site.common.page_meta import page_meta

SAMPLE_ON_CARD = 4
SAMPLE_ON_PAGE = 12
LOG_ENTRIES_SHOWN = 100


@require_safe
def collections(request: HttpRequest) -> HttpResponse:
    """All collections that the visitor may know of, each with its newest version; the demonstration's comes last."""
    newest: dict[int, CollectionVersion] = {}
    for version in visible_versions(request.user).order_by("pk"):
        # A draft only where nothing is frozen yet.
        if version.is_frozen or version.collection_id not in newest:
            newest[version.collection_id] = version
    found = sorted(visible_collections(request.user), key=lambda each: (each.is_demo, each.pk not in newest))
    cards = [
        (each, newest.get(each.pk), sample(newest[each.pk], request.user, SAMPLE_ON_CARD) if each.pk in newest else [])
        for each in found
    ]
    description = "Named, versioned sets of clean images and adversarial examples, frozen so that they can be cited."
    context = {"page": "collections", "cards": cards, **page_meta(request, "Collections", description)}
    return render(request, "imagedb/collections.html", context)


@require_safe
def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """One collection: what it is for, and its versions, the newest first."""
    collection = get_object_or_404(visible_collections(request.user).select_related("target_model"), slug=slug)
    versions = list(visible_versions(request.user).filter(collection=collection).order_by("-pk"))
    newest = next((version for version in versions if version.is_frozen), versions[0] if versions else None)
    images = sample(newest, request.user, SAMPLE_ON_PAGE) if newest else []
    context = {
        "page": "collections",
        "collection": collection,
        "versions": versions,
        "newest": newest,
        "images": images,
        **page_meta(
            request, collection.name, collection.description or f"The collection {collection}.", **_public(images)
        ),
    }
    return render(request, "imagedb/collection.html", context)


@require_safe
def collection_version(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """One version: what is in it, how to cite it, how to check it, how it came to be, and how to have it."""
    versions = visible_versions(request.user).filter(collection__slug=slug)
    shown = get_object_or_404(versions, version=version)
    images = sample(shown, request.user, SAMPLE_ON_PAGE)
    log = shown.curation_log.select_related("decided_by", "replacement").order_by("pk")
    entries = list(log[:LOG_ENTRIES_SHOWN])
    parameters = {"collection": slug, "version": version}
    context: dict[str, Any] = {
        "page": "collections",
        "collection": shown.collection,
        "version": shown,
        "composition": composition(shown),
        "images": images,
        "log": entries,
        "visible_ids": _visible_ids(request, entries),
        "log_count": log.count(),
        "extent": extent(images_of_version(shown, request.user)),
        "after_terms": extent(images_of_version_after_terms(shown, request.user)),
        "downloads": version_downloads(shown),
        "how_to_check": _how_to_check(shown, request.build_absolute_uri(manifest_address(shown))),
        "gallery_url": address(reverse("imagedb:gallery"), list(parameters.items())),
        **page_meta(request, str(shown), _description(shown), **_public(images)),
    }
    before = versions.filter(pk__lt=shown.pk, frozen_at__isnull=False).order_by("-pk").first()
    if before is not None:
        context |= {"before": before, "changes": changes_since(before, shown)}
    return render(request, "imagedb/collection_version.html", context)


def _how_to_check(version: CollectionVersion, manifest: str) -> str:
    """Shell commands that compute the digest of the manifest; on a Mac the second is "shasum -a 256"."""
    filename = f"{version.collection.slug}-{version.version}-manifest.jsonl"
    return f"curl -o {filename} '{manifest}'\nsha256sum {filename}"


def _description(version: CollectionVersion) -> str:
    state = f"frozen on {version.frozen_at:%Y-%m-%d}" if version.frozen_at else "a draft"
    count = version.total_count  # type: ignore[attr-defined]  # annotated by the selector
    return f"{version}: {count:,} images, {state}. {version.collection.description}".strip()


def _visible_ids(request: HttpRequest, entries: list[CurationLogEntry]) -> set[str]:
    """Public ids of the images that the entries name and the visitor may see."""
    named = {entry.image_public_id for entry in entries if entry.image_public_id}
    named |= {entry.replacement.public_id for entry in entries if entry.replacement}
    found = visible_images(request.user).filter(public_id__in=named)
    return {str(public_id) for public_id in found.values_list("public_id", flat=True)}


def _public(images: list[Image]) -> dict[str, str]:
    """The first image that anybody may see, as ``page_meta`` takes it."""
    for image in images:
        if image.visibility == Visibility.PUBLIC:
            file = reverse("imagedb:image-file", args=[image.public_id])
            return {"image": file, "image_description": f"An image of the class {image.image_class.name}"}
    return {}
