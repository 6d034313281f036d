"""Manifests and folders of small real images for tests of the import."""

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

from django.db.models.fields.files import FieldFile

from imagedb.models import ImportBatch, Visibility
from imagedb.services.import_summary import ImportSummary
from imagedb.services.importing import import_manifest
from tests.factories import png_bytes

COLUMNS = [
    "filename",
    "kind",
    "class_index",
    "synset",
    "source_filename",
    "attack",
    "target_model",
    "predicted_class_index",
    "confidence",
]


def stored(field_file: FieldFile) -> bytes:
    """The content of a stored file."""
    with field_file.storage.open(field_file.name, "rb") as file:
        return file.read()


def manifest_text(rows: list[dict[str, Any]]) -> str:
    columns = [column for column in COLUMNS if any(column in row for row in rows)]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def clean(filename: str = "clean.png", **values: Any) -> dict[str, Any]:
    return {"filename": filename, "kind": "clean", "class_index": 281, **values}


def modified(filename: str = "modified.png", **values: Any) -> dict[str, Any]:
    return {
        "filename": filename,
        "kind": "modified",
        "class_index": 281,
        "source_filename": "clean.png",
        "attack": "cAdv",
        "target_model": "ResNet-50",
        **values,
    }


class Folder:
    """A folder with a manifest and images; each image differs from every other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.images = path / "images"
        self.images.mkdir(exist_ok=True)
        self._seed = 1000

    def add(self, *names: str, content: bytes | None = None) -> "Folder":
        for name in names:
            self._seed += 1
            file = self.images / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png_bytes(self._seed) if content is None else content)
        return self

    def add_all(self, rows: list[dict[str, Any]]) -> "Folder":
        return self.add(*[row["filename"] for row in rows if not (self.images / row["filename"]).exists()])

    def run(self, *rows: dict[str, Any], images: Path | None = None, **options: Any) -> ImportSummary:
        manifest = self.path / "manifest.csv"
        manifest.write_text(manifest_text(list(rows)))
        batch = options.pop("batch", None) or ImportBatch(visibility=Visibility.PUBLIC)
        return import_manifest(manifest=manifest, images=images or self.images, batch=batch, **options)


def zip_of(members: dict[str, bytes | str], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()
