"""The demonstration's collection: two frozen versions, made by the services that researchers use."""

from django.db.models import QuerySet

from imagedb.models import Collection, CollectionVersion, Image
from imagedb.services.collections import add_images, change_draft, create_collection, freeze, new_version, remove_images

SLUG = "demo-photographs"
NAME = "Demo: photographs and recolourings"
DESCRIPTION = (
    "The demonstration’s photographs and their recoloured versions, so that there is a collection to look at. No "
    "classifier was asked, and the photographs are not from ImageNet: it is no data set for research."
)
LICENCE = "CC0 1.0 or public domain, as each image says"
CITATION = (
    "Not meant to be cited. The photographs come with scikit-image (van der Walt et al., 2014, PeerJ 2:e453); each "
    "image names its author."
)
FIRST, SECOND = "1.0", "1.1"
CHANGELOGS = {
    FIRST: "First version: all photographs of the demonstration, clean and recoloured.",
    SECOND: "Without the portrait, as an example of how a later version differs.",
}
PORTRAIT = "astronaut-01.png"
WHY_REMOVED = "Shows a person who can be recognised."


def is_loaded() -> bool:
    """Whether both versions are frozen."""
    frozen = CollectionVersion.objects.filter(
        collection__slug=SLUG, collection__is_demo=True, frozen_at__isnull=False, version__in=[FIRST, SECOND]
    )
    return frozen.count() == len(CHANGELOGS)


def taken() -> Collection | None:
    """A collection of one's own that has the name or address that the demonstration's needs."""
    own = Collection.objects.filter(is_demo=False)
    return own.filter(slug=SLUG).first() or own.filter(name=NAME).first()


def load(images: QuerySet[Image]) -> None:
    """Make the collection of the images, or go on where an interrupted loading stopped."""
    first = CollectionVersion.objects.filter(collection__slug=SLUG, version=FIRST).first()
    if first is None:
        first = create_collection(
            None, first_version=FIRST, name=NAME, slug=SLUG, description=DESCRIPTION, is_demo=True
        )
    if not first.is_frozen:
        add_images(first, images, "All images of the demonstration.", None)
        first = _finish(first)
    second = first.collection.versions.filter(version=SECOND).first() or new_version(first.collection, SECOND)
    if not second.is_frozen:
        portraits = images.filter(original_filename__endswith=PORTRAIT)
        remove_images(second, portraits, WHY_REMOVED, None)
        _finish(second)


def _finish(draft: CollectionVersion) -> CollectionVersion:
    change_draft(draft, licence=LICENCE, citation=CITATION, changelog=CHANGELOGS[draft.version])
    return freeze(draft, None)
