"""Uploaded archives: run by a worker, run once, resumed when the worker was lost."""

from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from imagedb import tasks
from imagedb.models import Image, ImportBatch
from imagedb.models.imports import ImportStatus
from imagedb.services import import_store, importing
from imagedb.services.import_run import ImportRun, ImportTakenOver
from imagedb.services.uploads import request_import
from tests.factories import png_bytes
from tests.imagedb.manifests import clean, manifest_text, modified, zip_of

pytestmark = pytest.mark.django_db

ROWS = [clean(), modified()]
GOOD = {"manifest.csv": manifest_text(ROWS), "clean.png": png_bytes(1), "modified.png": png_bytes(2)}


def upload(members: dict[str, bytes | str], **fields) -> ImportBatch:
    batch = ImportBatch(source_name="upload.zip", **fields)
    batch.archive.save("upload.zip", ContentFile(zip_of(members)), save=False)
    batch.save()
    return batch


def later(batch: ImportBatch, **fields) -> None:
    ImportBatch.objects.filter(pk=batch.pk).update(**fields)


class TestRequest:
    def test_a_worker_runs_it_after_the_commit(self, django_capture_on_commit_callbacks):
        batch = upload(GOOD, visibility="private")
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
            assert not Image.objects.exists()
        batch.refresh_from_db()
        assert (batch.status, batch.imported_count, batch.failed_count) == (ImportStatus.DONE, 2, 0)
        assert set(Image.objects.values_list("visibility", flat=True)) == {"private"}

    def test_again_tries_only_what_failed(self, django_capture_on_commit_callbacks):
        batch = upload({**GOOD, "modified.png": b"no image"})
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                request_import(batch)
            batch.refresh_from_db()
            assert (batch.status, batch.imported_count, batch.failed_count) == (ImportStatus.DONE, 1, 1)
            assert [row.result for row in batch.rows.all()] == ["imported", "failed"]

    @pytest.mark.parametrize(
        ("members", "words"),
        [
            ({"clean.png": png_bytes(1)}, "has no manifest"),
            ({**GOOD, "b/manifest.csv": "x"}, "several manifests"),
            ({**GOOD, "manifest.csv": "nothing,useful\n1,2\n"}, "lacks the columns"),
        ],
    )
    def test_archives_that_cannot_be_used(self, members, words, django_capture_on_commit_callbacks):
        batch = upload(members)
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
        batch.refresh_from_db()
        assert batch.status == ImportStatus.FAILED
        assert words in batch.error

    def test_no_archive_at_all(self):
        batch = ImportBatch(source_name="upload.zip")
        batch.archive.save("upload.zip", ContentFile(b"no archive"), save=False)
        batch.save()
        tasks.run_import(batch.pk)
        batch.refresh_from_db()
        assert batch.status == ImportStatus.FAILED
        assert "not a ZIP archive" in batch.error

    def test_manifest_in_a_folder(self):
        batch = upload({f"set/{name}": content for name, content in GOOD.items()})
        assert importing.run_import(batch.pk).imported == 2

    def test_the_only_csv_is_the_manifest(self):
        members = {name: content for name, content in GOOD.items() if name != "manifest.csv"}
        summary = importing.run_import(upload({**members, "images.csv": GOOD["manifest.csv"]}).pk)
        assert (summary.imported, [note for note in summary.notes if "in no row" in note]) == (2, [])


class TestTwice:
    def test_running_twice_does_nothing_the_second_time(self):
        batch = upload(GOOD)
        assert importing.run_import(batch.pk).imported == 2
        assert importing.run_import(batch.pk) is None
        batch.refresh_from_db()
        assert (batch.imported_count, batch.rows.count(), Image.objects.count()) == (2, 2, 2)

    def test_a_run_that_is_alive_is_left_alone(self):
        batch = upload(GOOD, status=ImportStatus.RUNNING, heartbeat_at=timezone.now() - timedelta(minutes=9))
        assert importing.run_import(batch.pk) is None
        assert not Image.objects.exists()

    def test_a_run_whose_worker_was_lost_goes_on_where_it_was(self, monkeypatch):
        batch = upload(GOOD)
        put_in = ImportRun._put_in

        def lose_the_worker(self, candidate):
            if candidate.row.kind == "modified":
                raise SystemExit
            return put_in(self, candidate)

        monkeypatch.setattr(ImportRun, "_put_in", lose_the_worker)
        with pytest.raises(SystemExit):
            importing.run_import(batch.pk)
        monkeypatch.undo()
        # As a kill would have left it: nobody had the time to say that it stopped.
        later(batch, status=ImportStatus.RUNNING, heartbeat_at=timezone.now() - timedelta(minutes=11))
        summary = importing.run_import(batch.pk)
        assert (summary.imported, summary.already_there, summary.failed) == (2, 0, 0)
        assert Image.objects.filter(import_batch=batch).count() == 2
        batch.refresh_from_db()
        assert (batch.status, batch.imported_count) == (ImportStatus.DONE, 2)

    def test_a_second_try_that_stops_still_counts_what_the_first_put_in(self, monkeypatch):
        rows = [clean("absent.png"), clean(), modified()]
        batch = upload({**GOOD, "manifest.csv": manifest_text(rows)})
        assert importing.run_import(batch.pk).imported == 2
        later(batch, status=ImportStatus.WAITING)

        def stop(self, row):
            raise RuntimeError("stopped")

        monkeypatch.setattr(ImportRun, "_import_row", stop)
        with pytest.raises(RuntimeError):
            importing.run_import(batch.pk)
        batch.refresh_from_db()
        assert (batch.status, batch.imported_count) == (ImportStatus.FAILED, 2)

    def test_a_run_that_was_taken_over_stops(self, monkeypatch):
        batch = upload(GOOD)
        put_in = ImportRun._put_in

        def be_taken_over(self, candidate):
            later(batch, heartbeat_at=timezone.now() + timedelta(seconds=1))
            return put_in(self, candidate)

        monkeypatch.setattr(ImportRun, "_put_in", be_taken_over)
        with pytest.raises(ImportTakenOver):
            importing.run_import(batch.pk)
        batch.refresh_from_db()
        assert batch.status == ImportStatus.RUNNING  # the other one's

    def test_what_a_later_try_can_mend_waits_for_it(self, monkeypatch):
        batch = upload(GOOD)

        def storage_is_away(*arguments):
            raise ConnectionError("away")

        monkeypatch.setattr(import_store, "store", storage_is_away)
        with pytest.raises(ConnectionError):
            importing.run_import(batch.pk)
        batch.refresh_from_db()
        assert (batch.status, batch.finished_at) == (ImportStatus.WAITING, None)
        monkeypatch.undo()
        assert importing.run_import(batch.pk).imported == 2


class TestReconciling:
    @pytest.mark.parametrize(
        ("status", "heartbeat_minutes", "created_minutes", "is_resumed"),
        [
            (ImportStatus.WAITING, None, 3, True),
            (ImportStatus.WAITING, None, 1, False),
            (ImportStatus.RUNNING, 11, 20, True),
            (ImportStatus.RUNNING, 9, 20, False),
            (ImportStatus.RUNNING, None, 20, True),
            (ImportStatus.DONE, 11, 20, False),
            (ImportStatus.FAILED, 11, 20, False),
        ],
    )
    def test_lost_imports_are_handed_out_again(
        self, status, heartbeat_minutes, created_minutes, is_resumed, django_capture_on_commit_callbacks
    ):
        now = timezone.now()
        batch = upload(GOOD)
        heartbeat = None if heartbeat_minutes is None else now - timedelta(minutes=heartbeat_minutes)
        later(batch, status=status, heartbeat_at=heartbeat, created_at=now - timedelta(minutes=created_minutes))
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                tasks.resume_interrupted_imports()
        assert Image.objects.exists() == is_resumed

    def test_a_stopped_command_is_marked(self):
        batch = ImportBatch.objects.create(
            status=ImportStatus.RUNNING, heartbeat_at=timezone.now() - timedelta(minutes=11)
        )
        tasks.resume_interrupted_imports()
        batch.refresh_from_db()
        assert batch.status == ImportStatus.FAILED
        assert "run it again" in batch.error
