"""The stored files of an imported image, under names that follow from its row.

A worker that was killed may have written some of them before its rows were stored. Whoever does the row again writes
over them, or removes them if no image comes of it.
"""

from collections.abc import Iterable

from django.core.files.base import ContentFile
from django.core.files.storage import Storage

from imagedb import pixels
from imagedb.models import Image, ImportRow
from scooter_site.common.storage import LocalStorage, protected_storage

ORIGINAL, RENDITION, THUMBNAIL = "original", "rendition", "thumbnail"
RENDITION_ENDING, THUMBNAIL_ENDING = ".png", ".jpg"


def write_files(
    row: ImportRow, image: Image, *, image_format: str, original: bytes, rendition: bytes, thumbnail: bytes
) -> None:
    """Write the three files of a row's image, and name them in it."""
    storage = protected_storage()
    image.original = _write(storage, _name(ORIGINAL, row, pixels.ENDINGS[image_format]), original)
    image.rendition = _write(storage, _name(RENDITION, row, RENDITION_ENDING), rendition)
    image.thumbnail = _write(storage, _name(THUMBNAIL, row, THUMBNAIL_ENDING), thumbnail)


def discard_files(rows: Iterable[ImportRow]) -> None:
    """Remove whatever files rows may have left that have become no image of their own."""
    storage = protected_storage()
    for row in rows:
        for ending in pixels.ENDINGS.values():
            storage.delete(_name(ORIGINAL, row, ending))
        storage.delete(_name(RENDITION, row, RENDITION_ENDING))
        storage.delete(_name(THUMBNAIL, row, THUMBNAIL_ENDING))


def discard_unfinished(rows: Iterable[ImportRow]) -> None:
    """Remove what a worker killed in the middle of writing left of rows' files. A bucket has an object or has not."""
    storage = protected_storage()
    if isinstance(storage, LocalStorage):
        for row in rows:
            for folder in (ORIGINAL, RENDITION, THUMBNAIL):
                storage.delete_unfinished(_name(folder, row, ending=""))


def _name(folder: str, row: ImportRow, ending: str) -> str:
    token = row.file_token.hex
    return f"{folder}/{token[:2]}/{token}{ending}"


def _write(storage: Storage, name: str, content: bytes) -> str:
    stored_as = storage.save(name, ContentFile(content))
    if stored_as != name:
        raise RuntimeError(f"The storage must write over a file of the same name, but made {stored_as} of {name}")
    return stored_as
