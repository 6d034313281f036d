"""Everything known of one image."""

from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from imagedb.measures import MEASURES
from imagedb.models import CollectionVersion, Image, ImageKind, Visibility
from imagedb.selectors.collections import visible_versions
from imagedb.selectors.examples import Example, with_sources
from imagedb.selectors.figures import extent
from imagedb.selectors.visibility import images_after_terms, visible_images
from scooter_site.common.page_meta import page_meta

RELATIVES_SHOWN = 12


@require_safe
def image(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """One image: the picture beside its source, facts, predictions, distances, relatives, downloads, citation."""
    visible, hidden_by_terms = visible_images(request.user), images_after_terms(request.user)
    image = get_object_or_404(visible.select_related("image_class", "attack", "target_model"), public_id=public_id)
    [example] = with_sources(visible, [image])
    # Of a clean image what was made from it; of a modified one what else was made from its source, if that is shown.
    root = image if image.kind == ImageKind.CLEAN else example.source
    relatives = visible.filter(source=root).exclude(pk=image.pk) if root else Image.objects.none()
    hidden = hidden_by_terms.filter(source=root) if root else Image.objects.none()
    predictions = image.predictions.select_related("predicted_class", "target_model").order_by("target_model__slug")
    versions = CollectionVersion.objects.filter(
        pk__in=visible_versions(request.user).values("pk"), memberships__image=image
    )
    versions = versions.select_related("collection").order_by("collection__slug", "pk")
    address = request.build_absolute_uri(request.path)
    context = {
        "page": "gallery",
        "image": image,
        "example": example,
        "distances": [(measure, measure.text(getattr(image, measure.name))) for measure in MEASURES],
        "predictions": [(each, each.predicted_class_id == image.image_class_id) for each in predictions],
        "versions": versions,
        "relatives": relatives.select_related("attack", "target_model", "image_class").order_by("pk")[:RELATIVES_SHOWN],
        "relatives_extent": extent(relatives),
        "after_terms": extent(hidden),
        "source_after_terms": _source_after_terms(hidden_by_terms, example),
        "relatives_address": f"{reverse('imagedb:gallery')}?source={root.public_id}" if root else "",
        "citation": citation_of(image, address),
        # Of each collection the newest version.
        "cited_versions": {version.collection_id: version for version in versions}.values(),
        **page_meta(request, title_of(image), description_of(image), **_public_image(image)),
    }
    return render(request, "imagedb/image.html", context)


def title_of(image: Image) -> str:
    """For example "Modified image: tabby cat, by cAdv"."""
    made_by = f", by {image.attack.name}" if image.attack else ""
    return f"{image.get_kind_display()} image: {image.image_class.name}{made_by}"


def description_of(image: Image) -> str:
    """One sentence for search engines and shared links."""
    if image.kind == ImageKind.CLEAN:
        return f"A clean image of the class {image.image_class.name}, with its facts and what was made from it."
    against = f" against {image.target_model.name}" if image.target_model else ""
    return (
        f"An image of the class {image.image_class.name}, modified by {image.attack}{against}: beside its source, with "
        "the difference amplified and measured."
    )


def citation_of(image: Image, address: str) -> str:
    """How to name the image in a paper, exactly enough to find it again."""
    identity = f"image {image.public_id}, SHA-256 {image.original_sha256}"
    return f"{title_of(image)}. Scooter image catalogue, {identity}. {address}"


def _source_after_terms(hidden_by_terms: QuerySet[Image], example: Example) -> bool:
    if example.source is not None or example.modified.source_id is None:
        return False
    return hidden_by_terms.filter(pk=example.modified.source_id).exists()


def _public_image(image: Image) -> dict[str, str]:
    if image.visibility != Visibility.PUBLIC:
        return {}
    return {"image": reverse("imagedb:image-file", args=[image.public_id]), "image_description": title_of(image)}
