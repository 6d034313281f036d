"""The pixel work of an import and nothing else: one process, no database, no storage. For bench/import_images.py."""

import csv
import hashlib
import sys
from pathlib import Path

import numpy as np

from imagedb import differences, pixels


def main(folder: Path) -> None:
    """Decode, make rendition and thumbnail, take the digests, and measure distances with each source decoded once."""
    with (folder / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    of_source: dict[str, list[str]] = {row["filename"]: [] for row in rows if row["kind"] == "clean"}
    for row in rows:
        if row["kind"] == "modified":
            of_source[row["source_filename"]].append(row["filename"])
    for name, modified in of_source.items():
        source = handle(folder / name)
        for modified_name in modified:
            differences.measure(handle(folder / modified_name), source)


def handle(path: Path) -> differences.Pixels:
    """All the work on one image but its distances; gives its pixels."""
    content = path.read_bytes()
    hashlib.sha256(content).hexdigest()
    image = pixels.decode(content).image
    hashlib.sha256(pixels.rendition_png(image)).hexdigest()
    pixels.thumbnail(image)
    return np.asarray(image)


main(Path(sys.argv[1]))
