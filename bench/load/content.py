"""The study that is taken under load: generated images of about 100 KB, imported and launched as a researcher does it.

python -m bench.load.content PLACES     # in the site's environment; prints the study's slug
"""

import csv
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Picture

SLUG = "load"
DATASETS = 2
IMAGES_PER_KIND = 50
CLEAN_IMAGES = DATASETS * IMAGES_PER_KIND + 20  # the twenty: for pairs, examples and corrupted images
SYNSETS = ("n02123045", "n02099601", "n03594945", "n07747607", "n02690373", "n04146614", "n02504458", "n01882714")
PIXELS = 224
COLUMNS = ("filename", "kind", "synset", "source_filename", "attack", "target_model")


def main(places: int) -> None:
    """Import the images and launch a study with room for so many participants."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")
    import django

    django.setup()
    from studies.services.life import build_materials, create_study_from_preset, launch

    attack, target_model = import_images()
    study = create_study_from_preset(
        preset="paper",
        title="Load",
        slug=SLUG,
        attack=attack,
        target_model=target_model,
        contact_email="load@example.org",
        dataset_count=DATASETS,
        clean_per_dataset=IMAGES_PER_KIND,
        modified_per_dataset=IMAGES_PER_KIND,
        participants_per_dataset=-(-places // DATASETS),
        buffer_percent=0,
        seed=1,
    )
    build_materials(study.pk)
    study.refresh_from_db()
    if study.materials_error:
        sys.exit(study.materials_error)
    launch(study)
    print(study.slug)


def import_images() -> tuple[Any, Any]:
    """Bring them in with a manifest. Returns the attack and the target model they are of."""
    from imagedb.models import Attack, ImportBatch, TargetModel, Visibility
    from imagedb.services.importing import import_manifest

    attack = Attack.objects.create(name="Attack", slug="attack")
    target_model = TargetModel.objects.create(name="Model", slug="model")
    batch = ImportBatch(visibility=Visibility.PUBLIC, licence="CC0-1.0", attribution="Noise")
    with tempfile.TemporaryDirectory(prefix="bench-load-") as name:
        folder = Path(name)
        rows = []
        for number in range(CLEAN_IMAGES):
            synset = SYNSETS[number % len(SYNSETS)]
            clean, modified = pictures(number)
            (folder / f"clean-{number}.png").write_bytes(clean)
            rows.append({"filename": f"clean-{number}.png", "kind": "clean", "synset": synset})
            if number < DATASETS * IMAGES_PER_KIND:
                (folder / f"modified-{number}.png").write_bytes(modified)
                rows.append(
                    {
                        "filename": f"modified-{number}.png",
                        "kind": "modified",
                        "synset": synset,
                        "source_filename": f"clean-{number}.png",
                        "attack": attack.slug,
                        "target_model": target_model.slug,
                    }
                )
        manifest = folder / "manifest.csv"
        with manifest.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        summary = import_manifest(manifest=manifest, images=folder, batch=batch)
    if summary.errors:
        sys.exit(f"The images could not be imported: {summary.errors[0]}")
    return attack, target_model


def pictures(seed: int) -> tuple[bytes, bytes]:
    """A soft picture with as much noise as makes a PNG of about 100 KB, and the same with some more of it."""
    random = np.random.default_rng(seed)
    coarse = Picture.fromarray(random.integers(40, 216, (7, 7, 3), dtype=np.uint8))
    soft = np.asarray(coarse.resize((PIXELS, PIXELS), Picture.Resampling.BICUBIC), dtype=np.int16)
    clean = soft + random.integers(-12, 13, soft.shape, dtype=np.int16)
    modified = clean + random.integers(-3, 4, soft.shape, dtype=np.int16)
    return png(clean), png(modified)


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Picture.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


if __name__ == "__main__":
    main(int(sys.argv[1]))
