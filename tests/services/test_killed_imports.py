"""Imports whose workers are killed: all rows are done in the end, none twice or by half, and no file is left over."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.services.site import PROJECT, wait_until
from tests.services.valkey import Workplace, kill_group, migrated_database, workplace

pytestmark = pytest.mark.services

# Forty clean images with a modified version each: three chunks.
ROWS = """
from tests.factories import png_bytes
from tests.imagedb.manifests import assert_sound, clean, manifest_text, modified, uploaded
rows = []
for number in range(40):
    rows.append(clean(f"{number}.png"))
    rows.append(modified(f"m{number}.png", source_filename=f"{number}.png"))
contents = {row["filename"]: png_bytes(seed, (160, 120)) for seed, row in enumerate(rows)}
"""
REQUEST = (
    ROWS
    + """
from imagedb.services.importing import request_import
request_import(uploaded({**contents, "manifest.csv": manifest_text(rows)}))
"""
)
RESUME = "from imagedb.tasks import resume_interrupted_imports\nresume_interrupted_imports()"
LONG_AGO = """
from datetime import timedelta
from django.utils import timezone
from imagedb.models import ImportBatch, ImportChunk
ImportBatch.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=11))
ImportChunk.objects.exclude(claimed_at=None).update(claimed_at=timezone.now() - timedelta(minutes=11))
"""
BATCH = "SELECT status, imported_count, already_there_count, failed_count FROM imagedb_importbatch ORDER BY id"
DONE = ("done", 80, 0, 0)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return migrated_database(tmp_path_factory.mktemp("database"))


@pytest.fixture
def place(tmp_path, database):
    with workplace(tmp_path, database) as place:
        place.environment.update(GATE=str(tmp_path / "gate"), GATE_AT="commit")
        yield place


def wait_for_the_gate(place: Workplace) -> int:
    """The process that stopped at the gate."""
    gate = place.folder / "gate"
    wait_until(lambda: gate.exists() and gate.read_text(), "a worker is in the middle", 120)
    return int(gate.read_text())


def assert_whole(place: Workplace) -> None:
    assert place.query(BATCH)[-1] == DONE
    assert place.query("SELECT count(*) FROM imagedb_image") == [(80,)]
    assert place.query("SELECT count(*) FROM imagedb_image WHERE kind = 'modified' AND linf IS NULL") == [(0,)]
    assert place.query("SELECT result, count(*) FROM imagedb_importrow GROUP BY result") == [("imported", 80)]
    place.run("from tests.imagedb.manifests import assert_sound\nassert_sound()")


def stored_file_count(place: Workplace) -> int:
    return len([path for path in (place.folder / "media" / "protected").rglob("*") if path.is_file()])


def test_a_killed_process_leaves_its_chunk_to_be_done_again(place):
    place.run(REQUEST)
    with place.worker("tests.services.gated_import_worker"):
        os.kill(wait_for_the_gate(place), signal.SIGKILL)
        wait_until(lambda: place.query(BATCH) == [DONE], "all rows are in", 180)
    assert_whole(place)


def test_a_killed_worker_leaves_its_chunk_to_the_next_one(place):
    place.run(REQUEST)
    with place.worker("tests.services.gated_import_worker") as worker:
        wait_for_the_gate(place)
        kill_group(worker)
    # Files of the chunk are there, rows are not.
    assert stored_file_count(place) == 3 * 32
    assert place.query("SELECT count(*) FROM imagedb_image") == [(0,)]
    place.run(LONG_AGO)
    with place.worker():
        place.run("from imagedb.tasks import resume_interrupted_imports\nresume_interrupted_imports.delay()")
        wait_until(lambda: place.query(BATCH) == [DONE], "all rows are in", 180)
    assert_whole(place)


def test_a_plan_that_was_cut_off_is_made_anew(place):
    place.environment["GATE_AT"] = "plan"
    place.run(REQUEST)
    with place.worker("tests.services.gated_import_worker"):
        os.kill(wait_for_the_gate(place), signal.SIGKILL)
        assert place.query("SELECT status FROM imagedb_importbatch") == [("planning",)]
        place.run(LONG_AGO)
        place.run(RESUME)  # once it waits again, and once it has waited
        place.run("from imagedb.models import ImportBatch as B\nB.objects.update(created_at='2020-01-01T00:00Z')")
        place.run(RESUME)
        wait_until(lambda: place.query(BATCH) == [DONE], "all rows are in", 180)
    assert place.query("SELECT count(*) FROM imagedb_importchunk") == [(3,)]
    assert_whole(place)


def test_one_that_is_cancelled_stops_and_leaves_no_files(place):
    place.run(REQUEST)
    with place.worker("tests.services.gated_import_worker"):
        process = wait_for_the_gate(place)
        place.run(
            "from imagedb.services.importing import cancel_import\nfrom imagedb.models import ImportBatch\n"
            "cancel_import(ImportBatch.objects.get())"
        )
        os.kill(process, signal.SIGKILL)
        # The task is delivered again, and finds that it is not to go on.
        place.run(LONG_AGO)
        place.run(RESUME)
        wait_until(lambda: place.query(BATCH) == [("cancelled", 0, 0, 0)], "it is cancelled", 180)
    assert stored_file_count(place) == 0
    place.run("from tests.imagedb.manifests import assert_sound\nassert_sound()")


def test_a_killed_command_goes_on_when_it_is_run_again(place):
    images = place.folder / "images"
    place.run(
        ROWS
        + f"""
from pathlib import Path
folder = Path({str(images)!r})
folder.mkdir()
for name, content in contents.items():
    (folder / name).write_bytes(content)
(folder / "manifest.csv").write_text(manifest_text(rows))
"""
    )
    command = [
        sys.executable,
        "manage.py",
        "import_images",
        str(images / "manifest.csv"),
        str(images),
        "--workers",
        "2",
    ]
    process = subprocess.Popen(command, cwd=PROJECT, env=place.environment, start_new_session=True)
    deadline = time.monotonic() + 180
    while not place.query("SELECT 1 FROM imagedb_image LIMIT 1") and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    ((status, imported, _, _),) = place.query(BATCH)
    assert status == "running"
    assert 0 < imported < 80
    again = subprocess.run(command, cwd=PROJECT, env=place.environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"80 rows: {80 - imported} imported, {imported} already there, 0 failed." in again.stdout
    place.run(LONG_AGO)
    place.run(RESUME)
    assert place.query(BATCH) == [("failed", imported, 0, 0), ("done", 80 - imported, imported, 0)]
    assert place.query("SELECT count(*), count(DISTINCT original_sha256) FROM imagedb_image") == [(80, 80)]
    place.run("from tests.imagedb.manifests import assert_sound\nassert_sound()")
