"""The memory of an import's worker stays small, whatever the size of the archive."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.factories import png_bytes
from tests.imagedb.manifests import clean, manifest_text, modified
from tests.services.site import PROJECT

pytestmark = pytest.mark.services

LIMIT_MB = 400
MEBIBYTE = 1024 * 1024

RUN = """
import json, sys
from pathlib import Path
import django
django.setup()
from imagedb.models import ImportBatch
from imagedb.services.importing import import_manifest
def mebibytes(key):
    # Of this process only: getrusage would also count what it was before exec, a copy of this test's.
    return int(Path("/proc/self/status").read_text().partition(key + ":")[2].split()[0]) / 1024
def imported(manifest, images):
    return import_manifest(manifest=Path(manifest), images=Path(images), batch=ImportBatch())
imported(*sys.argv[1:3])  # after which all of the program is in memory
program = mebibytes("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # starts the peak anew: see proc_pid_clear_refs(5)
summary = imported(*sys.argv[3:5])
print(json.dumps([summary.imported, summary.failed, mebibytes("VmHWM"), program]))
"""


def imported(folder: Path, archive: Path) -> tuple[int, int, float, float]:
    """Import in a process of its own: rows that are in, rows that failed, and MB of memory.

    The memory is the process's largest while it imported, and what it was before, of the program itself.
    """
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "scooter_site.settings",
        "DEBUG": "off",  # or Django would keep all queries
        "ALLOW_SQLITE": "on",
        "DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
        "MEDIA_ROOT": str(folder / "media"),
    }

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=PROJECT, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    first = folder / "first"
    first.mkdir()
    (first / "first.png").write_bytes(png_bytes(1_000))
    (first / "manifest.csv").write_text(manifest_text([clean("first.png")]))
    run("manage.py", "migrate", "-v0")
    answer = run("-c", RUN, str(first / "manifest.csv"), str(first), str(folder / "manifest.csv"), str(archive))
    return tuple(json.loads(answer.splitlines()[-1]))


def test_an_archive_of_gigabytes(tmp_path):
    """With files as large as are read at all, and as many of them as would fill the memory several times over."""
    rows = [clean(f"{number}.png") for number in range(20)]
    rows += [modified(f"m{number}.png", source_filename=f"{number}.png") for number in range(20)]
    large = [f"large{number}.png" for number in range(24)]
    block = np.random.default_rng(0).bytes(MEBIBYTE)
    archive = tmp_path / "images.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in large:
            with file.open(name, "w") as member:
                for _ in range(60):
                    member.write(block)
        for seed, row in enumerate(rows):
            file.writestr(row["filename"], png_bytes(seed))
    assert archive.stat().st_size > 1.4 * 1024 * MEBIBYTE
    (tmp_path / "manifest.csv").write_text(manifest_text([*rows, *[clean(name) for name in large]]))
    is_in, failed, peak, _ = imported(tmp_path, archive)
    assert (is_in, failed) == (len(rows), len(large))
    assert peak < LIMIT_MB


def test_images_as_large_as_any_may_be(tmp_path):
    """Three of a source's modified versions, each with as many pixels as are decoded at all."""
    size = (4096, 3072)
    rows = [clean("clean.png"), *[modified(f"{number}.png") for number in range(3)]]
    archive = tmp_path / "images.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for seed, row in enumerate(rows):
            file.writestr(row["filename"], png_bytes(seed, size))
    (tmp_path / "manifest.csv").write_text(manifest_text(rows))
    is_in, failed, peak, _ = imported(tmp_path, archive)
    assert (is_in, failed) == (4, 0)
    assert peak < LIMIT_MB


def test_a_manifest_of_very_many_rows(tmp_path):
    count = 10_000
    archive = tmp_path / "images.zip"
    rows = [clean(f"folder-of-a-set/image-with-a-usual-name-{number:06d}.png") for number in range(count)]
    with zipfile.ZipFile(archive, "w") as file:
        for row in rows:
            file.writestr(row["filename"], b"")
    (tmp_path / "manifest.csv").write_text(manifest_text(rows))
    is_in, failed, peak, program = imported(tmp_path, archive)
    assert (is_in, failed) == (0, count)
    # A manifest may have ten times as many.
    assert peak - program < (LIMIT_MB - program) / 10
