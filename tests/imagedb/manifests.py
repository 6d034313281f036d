"""Manifests and folders of small real images for tests of the import."""

import csv
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.core.files.base import ContentFile
from django.db.models.fields.files import FieldFile

from imagedb.models import Image, ImportBatch, ImportRow, Visibility
from imagedb.services import import_state
from imagedb.services.import_plan import plan_import
from imagedb.services.import_run import Outcome, work
from imagedb.services.importing import ImportSummary, import_manifest
from scooter_site.common.storage import protected_storage
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


def stored_files() -> set[Path]:
    """Every file in the storages."""
    return {path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()}


def failures(summary: ImportSummary) -> list[tuple[int, str]]:
    """Row and column of every error."""
    return [(error.row_number, error.column) for error in summary.errors]


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


def uploaded(members: dict[str, bytes | str], **fields: Any) -> ImportBatch:
    """An import that waits for a worker, with a ZIP of these files."""
    batch = ImportBatch(source_name="upload.zip", **fields)
    batch.archive.save("upload.zip", ContentFile(zip_of(members)), save=False)
    batch.save()
    return batch


def planned(
    rows: list[dict[str, Any]], *, contents: dict[str, bytes | str] | None = None, **fields: Any
) -> ImportBatch:
    """An import that has been planned, with an image of its own for each row unless ``contents`` has one."""
    members = {row["filename"]: png_bytes(number) for number, row in enumerate(rows, start=5000)}
    batch = uploaded({**members, **(contents or {}), "manifest.csv": manifest_text(rows)}, **fields)
    planned_batch = plan_import(batch.pk)
    assert planned_batch is not None
    return import_state.load(batch.pk)


def work_on(batch: ImportBatch, worker: UUID | None = None, **options: Any) -> Outcome:
    """One worker's turn at an import."""
    return work(batch.pk, ImportBatch.objects.get(pk=batch.pk).handout, worker or uuid4(), **options)


def assert_sound() -> None:
    """No half rows and no file too many: every row that was imported has its image, and every image its files."""
    assert not ImportRow.objects.filter(result="imported", image=None, batch__is_dry_run=False).exists()
    images = Image.objects.all()
    assert images.count() == ImportRow.objects.filter(result="imported", batch__is_dry_run=False).count()
    named = {str(file) for image in images for file in (image.original, image.rendition, image.thumbnail)}
    storage = protected_storage()
    there = {file.name for file in storage.listing()}
    assert there == named
    for image in images:
        assert hashlib.sha256(stored(image.original)).hexdigest() == image.original_sha256
        assert hashlib.sha256(stored(image.rendition)).hexdigest() == image.rendition_sha256
