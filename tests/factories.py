"""Rows for tests: small, valid, and made with real image bytes."""

import hashlib
import io
import itertools
from typing import Any

import numpy as np
from django.core.files.base import ContentFile
from PIL import Image as PillowImage

from imagedb.models import Attack, Image, ImageClass, ImageKind, TargetModel, Visibility

_numbers = itertools.count(1)


def png_bytes(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    """A PNG of soft random colours; another one for every seed. ``size`` is (width, height)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PillowImage.fromarray(coarse).resize(size, PillowImage.Resampling.BICUBIC).save(buffer, "PNG")
    return buffer.getvalue()


def image_class(index: int = 281) -> ImageClass:
    return ImageClass.objects.get(index=index)


def attack(**fields: Any) -> Attack:
    number = next(_numbers)
    return Attack.objects.create(**{"name": f"Attack {number}", "slug": f"attack-{number}", **fields})


def target_model(**fields: Any) -> TargetModel:
    number = next(_numbers)
    return TargetModel.objects.create(**{"name": f"Model {number}", "slug": f"model-{number}", **fields})


def _image(content: bytes, **fields: Any) -> Image:
    digest = hashlib.sha256(content).hexdigest()
    pillow = PillowImage.open(io.BytesIO(content))
    values = {
        "image_class": fields.pop("image_class", None) or image_class(),
        "original_filename": f"{digest[:8]}.png",
        "original_sha256": digest,
        "original_bytes": len(content),
        "original_format": "PNG",
        "original_mode": "RGB",
        "rendition_sha256": digest,
        "width": pillow.width,
        "height": pillow.height,
        "visibility": Visibility.PUBLIC,
        **fields,
    }
    image = Image(**values)
    for field in (image.original, image.rendition, image.thumbnail):
        field.save("image.png", ContentFile(content), save=False)
    image.save()
    return image


def clean_image(**fields: Any) -> Image:
    return _image(png_bytes(next(_numbers)), kind=ImageKind.CLEAN, **fields)


def modified_image(
    source: Image | None = None, *, attack: Attack, target_model: TargetModel | None, **fields: Any
) -> Image:
    source = source or clean_image()
    return _image(
        png_bytes(next(_numbers)),
        kind=ImageKind.MODIFIED,
        image_class=source.image_class,
        source=source,
        attack=attack,
        target_model=target_model,
        **fields,
    )
