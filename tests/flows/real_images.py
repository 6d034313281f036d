"""A ZIP of the 130 real photographs and modified versions of them, with its manifest."""

import csv
import io
import zipfile
from pathlib import Path

from PIL import Image as PillowImage

from studies.stimuli import modify

ATTACK = "recolouring"
TARGET_MODEL = "resnet-50"


def write_archive(shared_data: Path, archive: Path) -> int:
    """Write ``archive`` from shared/data/images; return its number of manifest rows (clean and modified)."""
    with (shared_data / "images" / "imagenet.csv").open(newline="", encoding="utf-8") as file:
        photographs = list(csv.DictReader(file))
    rows = []
    with zipfile.ZipFile(archive, "w") as target:
        for number, photograph in enumerate(photographs):
            clean_name = f"clean/{photograph['filename']}"
            path = shared_data / "images" / "imagenet" / photograph["filename"]
            target.write(path, clean_name)
            rows.append({"filename": clean_name, "kind": "clean", "class_index": photograph["class_index"]})

            modified_name = f"modified/{number:03d}.jpg"
            buffer = io.BytesIO()
            modify("colour", PillowImage.open(path).convert("RGB"), seed=number).save(buffer, "JPEG", quality=95)
            target.writestr(modified_name, buffer.getvalue())
            rows.append(
                {
                    "filename": modified_name,
                    "kind": "modified",
                    "class_index": photograph["class_index"],
                    "source_filename": clean_name,
                    "attack": ATTACK,
                    "target_model": TARGET_MODEL,
                }
            )
        manifest = io.StringIO()
        writer = csv.DictWriter(
            manifest, ["filename", "kind", "class_index", "source_filename", "attack", "target_model"]
        )
        writer.writeheader()
        writer.writerows(rows)
        target.writestr("manifest.csv", manifest.getvalue())
    return len(rows)
