"""Make the files of an image again from what is left of it."""

import hashlib
from collections.abc import Iterable
from typing import Any

from django.core.files.base import ContentFile

from imagedb import pixels
from imagedb.models import Image
from scooter_site.common.stored_files import Owner


class CannotRepair(Exception):
    """The file cannot be made again; the message says why and what to do."""


def mend(storage: Any, name: str, owners: Iterable[Owner]) -> str:
    """Write a missing or damaged file once more, and say from what. Raises CannotRepair.

    A rendition and a thumbnail follow from the original. An original can only come from an identical one, which
    another group may have. No digest is ever changed: what the catalogue says of an image was measured on it.
    """
    owner = next((owner for owner in owners if owner.column.model is Image), None)
    image = Image.objects.filter(pk=owner.pk).first() if owner else None
    if owner is None or image is None:
        raise CannotRepair("put it back from a backup")
    if owner.column.name == "original":
        content, source = _twin(storage, image), "from an identical image"
    elif owner.column.name == "rendition":
        content, source = _rendition(storage, image), "from the original"
    else:
        content, source = pixels.thumbnail(_decoded(storage, image).image), "from the original"
    storage.save(name, ContentFile(content))
    return f"made again {source}"


def _twin(storage: Any, image: Image) -> bytes:
    twins = Image.objects.filter(original_sha256=image.original_sha256).exclude(pk=image.pk)
    for twin in twins:
        content = _read(storage, str(twin.original.name))
        if content is not None and _digest(content) == image.original_sha256:
            return content
    raise CannotRepair(f"put it back from a backup; its SHA-256 is {image.original_sha256}")


def _rendition(storage: Any, image: Image) -> bytes:
    content = pixels.rendition_png(_decoded(storage, image).image)
    if _digest(content) != image.rendition_sha256:
        raise CannotRepair(
            "put it back from a backup: what this version of the software makes of the original has another digest"
        )
    return content


def _decoded(storage: Any, image: Image) -> pixels.DecodedImage:
    content = _read(storage, str(image.original.name))
    if content is None or _digest(content) != image.original_sha256:
        raise CannotRepair("put its original back from a backup first: that is missing or damaged too")
    try:
        return pixels.decode(content)
    except pixels.UnreadableImage as error:
        raise CannotRepair(f"put it back from a backup: the original cannot be decoded ({error.reason})") from error


def _read(storage: Any, name: str) -> bytes | None:
    try:
        with storage.open(name) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
