"""Changes to images that are in the catalogue."""

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.fields.files import FieldFile

from imagedb.models import Image, Visibility


def set_visibility(images: QuerySet[Image], visibility: Visibility) -> int:
    """Say who may see the images; how many were changed."""
    return images.exclude(visibility=visibility).update(visibility=visibility)


def delete_images(images: QuerySet[Image]) -> None:
    """Delete images with their files. Raises ProtectedError, and deletes nothing, if one is in use."""
    with transaction.atomic():
        files: list[FieldFile] = [
            file for image in images for file in (image.original, image.rendition, image.thumbnail)
        ]
        images.delete()
        # Only when the rows are surely gone: a row without its file is worse than a file without its row.
        transaction.on_commit(lambda: _delete_files(files))


def _delete_files(files: list[FieldFile]) -> None:
    for file in files:
        file.storage.delete(str(file.name))
