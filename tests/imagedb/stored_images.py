"""Images with the files that an import gives them, so that renditions and thumbnails follow from originals."""

import hashlib
import zlib

from django.core.files.base import ContentFile

from imagedb import pixels
from imagedb.models import Image
from tests import factories


def image(seed: int = 1) -> Image:
    """A clean image; another one for every seed."""
    content = factories.png_bytes(seed, (300, 200))
    decoded = pixels.decode(content)
    rendition = pixels.rendition_png(decoded.image)
    made = factories.clean_image()
    old = [made.original.name, made.rendition.name, made.thumbnail.name]
    made.original.save("image.png", ContentFile(content), save=False)
    made.rendition.save("image.png", ContentFile(rendition), save=False)
    made.thumbnail.save("image.jpg", ContentFile(pixels.thumbnail(decoded.image)), save=False)
    made.original_sha256, made.original_bytes = hashlib.sha256(content).hexdigest(), len(content)
    made.rendition_sha256, made.rendition_bytes = hashlib.sha256(rendition).hexdigest(), len(rendition)
    made.original_crc32, made.rendition_crc32 = zlib.crc32(content), zlib.crc32(rendition)
    made.save()
    for name in old:
        made.original.storage.delete(name)
    return made
