"""Rows for tests: small, valid, and made with real image bytes."""

import functools
import hashlib
import io
import itertools
import zlib
from importlib import import_module
from typing import Any

import numpy as np
from django.apps import apps
from django.core.files.base import ContentFile
from PIL import Image as PillowImage

from imagedb.models import Attack, Image, ImageClass, ImageKind, TargetModel, Visibility
from imagedb.pixels import rendition_png
from studies.models import ColourPlate, Study
from studies.plates import SMALLEST_SIZE, make_plate
from studies.services import life
from studies.services.plate_pool import PLATE_POOL

_numbers = itertools.count(1)


def png_bytes(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    """A PNG of soft random colours; another one for every seed. ``size`` is (width, height)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PillowImage.fromarray(coarse).resize(size, PillowImage.Resampling.BICUBIC).save(buffer, "PNG")
    return buffer.getvalue()


def image_class(index: int = 281) -> ImageClass:
    if not ImageClass.objects.exists():
        # A test with transactions of its own leaves an empty database behind, without what migrations put there.
        import_module("imagedb.migrations.0002_imagenet_classes").load(apps, None)
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
        "original_crc32": zlib.crc32(content),
        "rendition_sha256": digest,
        "rendition_bytes": len(content),
        "rendition_crc32": zlib.crc32(content),
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


# A whole protocol in miniature: every step has something to do, and none takes long.
SMALL_STUDY = {
    "dataset_count": 2,
    "clean_per_dataset": 3,
    "modified_per_dataset": 3,
    "participants_per_dataset": 2,
    "buffer_percent": 0,
    "plate_count": 3,
    "plates_required": 3,
    "comprehension_pair_count": 3,
    "comprehension_required": 3,
    "corrupted_check_count": 1,
    "instructed_check_count": 1,
    "attention_failures_allowed": 0,
    "contact_email": "study@example.org",
    "seed": 1,
}


def study(preset: str = "paper", **fields: Any) -> Study:
    """A draft of 2 datasets x (3 clean + 3 modified) without images; ``fields`` override settings."""
    number = next(_numbers)
    return life.create_study_from_preset(
        **{
            "preset": preset,
            "title": f"Study {number}",
            "slug": f"study-{number}",
            "attack": fields.pop("attack", None) or attack(),
            "target_model": fields.pop("target_model", None) or target_model(),
            **SMALL_STUDY,
            **fields,
        }
    )


def images_for(study: Study) -> None:
    """As many clean and modified images as the study needs."""
    clean = [clean_image() for _ in range(study.dataset_count * study.clean_per_dataset + study.check_source_count)]
    # Images for checks are made from clean images that have no modified version here. With a single dataset, the
    # sources of the modified images must be others than the clean images shown.
    sources = clean[: study.dataset_count * study.clean_per_dataset]
    for number in range(study.dataset_count * study.modified_per_dataset):
        source = None if study.dataset_count == 1 else sources[number % len(sources)]
        modified_image(source, attack=study.attack, target_model=study.target_model)


@functools.cache
def _plate_png(kind: str, digit: int | None, seed: int) -> bytes:
    return rendition_png(make_plate(kind, digit, seed, size=SMALLEST_SIZE))


def plate_pool() -> None:
    """The whole pool in real but small plates, drawn once per test run."""
    plates = [ColourPlate(kind=kind, digit=digit, seed=seed) for kind, digit, seed in PLATE_POOL]
    for plate in plates:
        plate.file.save("plate.png", ContentFile(_plate_png(plate.kind, plate.digit, plate.seed)), save=False)
    ColourPlate.objects.bulk_create(plates)


def ready_study(preset: str = "paper", **fields: Any) -> Study:
    """A study with images, plates, datasets and check images, as the worker makes them."""
    made = study(preset, **fields)
    images_for(made)
    if not ColourPlate.objects.exists():
        plate_pool()
    life.build_materials(made.pk)
    made.refresh_from_db()
    assert not made.materials_error, made.materials_error
    return made


def running_study(preset: str = "paper", **fields: Any) -> Study:
    """A launched study."""
    return life.launch(ready_study(preset, **fields))
