"""Changes to images that are in the catalogue."""

from django.db import transaction
from django.db.models import QuerySet

from imagedb.models import Image, Visibility
from scooter_site.common.storage import delete_files_after_commit


def set_visibility(images: QuerySet[Image], visibility: Visibility) -> int:
    """Say who may see the images; how many were changed."""
    return images.exclude(visibility=visibility).update(visibility=visibility)


def delete_images(images: QuerySet[Image]) -> None:
    """Delete images with their files. Raises ProtectedError, and deletes nothing, if one is in use."""
    with transaction.atomic():
        delete_files_after_commit(
            file for image in images for file in (image.original, image.rendition, image.thumbnail)
        )
        images.delete()
