"""What is in an archive of images: the files, a manifest that can be imported again, and checksums.

A ZIP sorts the files into folders; a WebDataset tar has one sample per image: ``<id>.<ending>``, ``<id>.json`` and
``<id>.cls``. What describes the whole comes last, since it is known when all images are.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterable
from enum import StrEnum
from posixpath import splitext
from typing import Any, NamedTuple

from imagedb.archives.layout import Layout, StoredFile, WrittenFile
from imagedb.archives.tar import TarWriter
from imagedb.archives.zip import ZipWriter
from imagedb.manifest import COLUMNS

FURTHER_COLUMNS = (
    "id",
    "source_id",
    "original_filename",
    "sha256",
    "bytes",
    "width",
    "height",
    "comparison",
    "linf",
    "l2",
    "changed_share",
    "ssim",
    "ciede2000",
    "predictions",
    "licence",
    "attribution",
)
PREDICTIONS = len(COLUMNS) + FURTHER_COLUMNS.index("predictions")
FREE_TEXT = [len(COLUMNS) + FURTHER_COLUMNS.index(name) for name in ("original_filename", "licence", "attribution")]
_encode = json.JSONEncoder(ensure_ascii=False).encode
# Readers of WebDataset skip what is in a folder of such a name (webdataset: tariterators.py, skip_meta); without it
# they would take the manifest for one more sample.
WEBDATASET_META_FOLDER = "__archive__/"
# A spreadsheet would take a cell that begins so for a formula.
FORMULA_BEGINNINGS = tuple("=+-@\t\r")


class ArchiveType(StrEnum):
    """The two kinds of archives."""

    ZIP = "zip"
    WEBDATASET = "webdataset"


class ArchivedPrediction(NamedTuple):
    """What a target model says about an image."""

    target_model: str
    predicted_class_index: int
    confidence: float | None


class ArchivedImage(NamedTuple):
    """An image as an archive shows it. ``file`` is its original or its rendition, whichever the archive is of."""

    id: str
    kind: str
    class_index: int
    synset: str
    attack: str  # empty: none, as with the other texts
    target_model: str
    file: StoredFile
    source_id: str
    source_file_name: str  # in the storage; known if source_id is
    original_filename: str
    width: int
    height: int
    comparison: str
    linf: int | None
    l2: float | None
    changed_share: float | None
    ssim: float | None
    ciede2000: float | None
    licence: str
    attribution: str
    predictions: tuple[ArchivedPrediction, ...]


def plan_archive(
    images: Iterable[ArchivedImage],
    archive_type: ArchiveType,
    *,
    readme: Callable[[int], str],
    preferred_model: str = "",
) -> Layout:
    """Lay out an archive of images, which are gone through once.

    ``readme`` gives the text of README.txt for so many images. A manifest has room for one prediction of an image:
    that of its own target model, else of ``preferred_model`` (a slug), else of the first that is asked.
    """
    has_samples = archive_type == ArchiveType.WEBDATASET
    writer = TarWriter() if has_samples else ZipWriter()
    folder = WEBDATASET_META_FOLDER if has_samples else ""
    try:
        with WrittenFile() as manifest, WrittenFile() as checksums:
            rows = csv.writer(_Lines(manifest), lineterminator="\n")
            rows.writerow(COLUMNS + FURTHER_COLUMNS)
            count = 0
            for image in images:
                count += 1
                name, source_name = _sample_names(image) if has_samples else _names_in_folders(image)
                values = _values(image, name, source_name, preferred_model)
                writer.add_stored(name, image.file)
                lines = _checksum_line(image.file.sha256, name)
                if has_samples:
                    for sample_name, content in _sample_descriptions(image, values):
                        writer.add_bytes(sample_name, content)
                        lines += _checksum_line(hashlib.sha256(content).hexdigest(), sample_name)
                checksums.write(lines)
                rows.writerow(_as_cells(values))
            about = readme(count).encode()
            writer.add_bytes(f"{folder}README.txt", about)
            checksums.write(_checksum_line(hashlib.sha256(about).hexdigest(), f"{folder}README.txt"))
            writer.add_written(f"{folder}manifest.csv", manifest)
            checksums.write(_checksum_line(manifest.sha256, f"{folder}manifest.csv"))
            writer.add_written(f"{folder}SHA256SUMS", checksums)
        return writer.finish()
    except BaseException:
        writer.close()
        raise


class _Lines:
    """Takes the lines of a CSV file as text."""

    def __init__(self, written: WrittenFile) -> None:
        self._written = written

    def write(self, line: str) -> None:
        self._written.write(line.encode())


def _checksum_line(sha256: str, name: str) -> bytes:
    """As ``sha256sum`` writes and checks it."""
    return f"{sha256}  {name}\n".encode()


def _names_in_folders(image: ArchivedImage) -> tuple[str, str]:
    """The file's name in a ZIP, and that of its source (empty: none), whether it is in the archive or not."""
    clean_folder = f"clean/{image.synset}/"
    source_name = f"{clean_folder}{image.source_id}{splitext(image.source_file_name)[1]}" if image.source_id else ""
    # The source of a modified image is of the same class.
    folder = f"modified/{image.attack}/{image.target_model or 'no-target-model'}/" if image.attack else clean_folder
    return f"{folder}{image.id}{splitext(image.file.name)[1]}", source_name


def _sample_names(image: ArchivedImage) -> tuple[str, str]:
    """The same in a WebDataset tar, where all names before the first dot are keys of samples."""
    source_name = image.source_id + splitext(image.source_file_name)[1] if image.source_id else ""
    return image.id + splitext(image.file.name)[1], source_name


def _sample_descriptions(image: ArchivedImage, values: tuple[Any, ...]) -> list[tuple[str, bytes]]:
    """The files of a sample beside the image."""
    record = dict(zip(COLUMNS + FURTHER_COLUMNS, values, strict=True))
    record["predictions"] = [prediction._asdict() for prediction in image.predictions]
    return [
        (f"{image.id}.json", _encode(record).encode()),
        (f"{image.id}.cls", str(image.class_index).encode()),
    ]


def _values(image: ArchivedImage, name: str, source_name: str, preferred_model: str) -> tuple[Any, ...]:
    """What the manifest says of an image, in the order of its columns."""
    prediction = _prediction_of_row(image, preferred_model)
    return (
        name,
        image.kind,
        image.class_index,
        image.synset,
        source_name,
        image.attack,
        image.target_model or (prediction.target_model if prediction else ""),
        prediction.predicted_class_index if prediction else None,
        prediction.confidence if prediction else None,
        image.id,
        image.source_id,
        image.original_filename,
        image.file.sha256,
        image.file.size,
        image.width,
        image.height,
        image.comparison,
        image.linf,
        image.l2,
        image.changed_share,
        image.ssim,
        image.ciede2000,
        image.predictions,
        image.licence,
        image.attribution,
    )


def _prediction_of_row(image: ArchivedImage, preferred_model: str) -> ArchivedPrediction | None:
    if image.attack:
        # The model that a modified image was made against is the one its row names.
        return next((answer for answer in image.predictions if answer.target_model == image.target_model), None)
    preferred = (answer for answer in image.predictions if answer.target_model == preferred_model)
    return next(preferred, next(iter(image.predictions), None))


def _as_cells(values: tuple[Any, ...]) -> list[Any]:
    """Values as cells of a CSV file. Only free text can begin as a formula does; numbers stay numbers."""
    cells = list(values)
    cells[PREDICTIONS] = _predictions_as_json(values[PREDICTIONS])
    for position in FREE_TEXT:
        if cells[position].startswith(FORMULA_BEGINNINGS):
            cells[position] = f"'{cells[position]}"
    return cells


def _predictions_as_json(predictions: tuple[ArchivedPrediction, ...]) -> str:
    """As ``json.dumps`` writes a list of objects, in a third of the time; empty for none.

    A slug has no character that JSON would escape.
    """
    if not predictions:
        return ""
    objects = [
        f'{{"target_model": "{answer.target_model}", "predicted_class_index": {answer.predicted_class_index}, '
        f'"confidence": {"null" if answer.confidence is None else answer.confidence}}}'
        for answer in predictions
    ]
    return f"[{', '.join(objects)}]"
