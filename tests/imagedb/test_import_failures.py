"""Imports that fail leave nothing half done, and dry runs leave nothing at all."""

import pytest
from django.db import IntegrityError

from imagedb.models import Attack, Image, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.models.imports import ImportStatus
from imagedb.services import import_store
from imagedb.services.importing import ImportFailed, import_manifest
from tests.imagedb.import_results import failures, stored_files
from tests.imagedb.manifests import Folder, clean, modified

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


class TestFailuresLeaveNothing:
    @pytest.mark.parametrize("error", [IntegrityError, RuntimeError, KeyboardInterrupt])
    def test_files_of_a_row_that_failed_are_removed(self, folder, monkeypatch, error):
        def fail(*arguments, **options):
            raise error("now")

        folder.add("clean.png")
        before = stored_files()
        monkeypatch.setattr(import_store, "record_row", fail)
        with pytest.raises(error):
            folder.run(clean())
        assert stored_files() == before
        assert not Image.objects.exists()
        batch = ImportBatch.objects.get()
        assert batch.status == ImportStatus.FAILED
        assert error.__name__ in batch.error

    def test_rows_before_the_failure_stay(self, folder, monkeypatch):
        folder.add("a.png", "b.png")
        record_row = import_store.record_row

        def fail_at_the_second(batch, row_number, filename, *arguments, **options):
            if filename == "b.png":
                raise RuntimeError("now")
            return record_row(batch, row_number, filename, *arguments, **options)

        monkeypatch.setattr(import_store, "record_row", fail_at_the_second)
        with pytest.raises(RuntimeError):
            folder.run(clean("a.png"), clean("b.png"))
        assert Image.objects.get().original_filename == "a.png"

    @pytest.mark.parametrize(
        ("manifest", "images", "words"),
        [
            ("absent.csv", "images", "no manifest"),
            ("manifest.csv", "absent", "no folder or ZIP archive"),
            ("manifest.csv", "manifest.csv", "not a ZIP archive"),
        ],
    )
    def test_nothing_to_read(self, folder, manifest, images, words):
        (folder.path / "manifest.csv").write_text("filename,kind,class_index\na.png,clean,1\n")
        with pytest.raises(ImportFailed, match=words):
            import_manifest(manifest=folder.path / manifest, images=folder.path / images, batch=ImportBatch())

    def test_unreadable_manifest(self, folder):
        (folder.path / "manifest.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ImportFailed, match="lacks the columns"):
            import_manifest(manifest=folder.path / "manifest.csv", images=folder.images, batch=ImportBatch())
        assert ImportBatch.objects.get().status == ImportStatus.FAILED


class TestDryRun:
    def test_says_what_would_happen_and_writes_nothing(self, folder):
        folder.add("clean.png", "modified.png", "m2.png").add("bad.png", content=b"x")
        rows = [
            modified(predicted_class_index=3),
            clean(),
            clean("bad.png"),
            modified("m2.png", class_index=3),
            modified(predicted_class_index=3),
        ]
        before = stored_files()
        summary = folder.run(*rows, dry_run=True)
        assert (summary.imported, summary.already_there) == (2, 1)
        assert failures(summary) == [(4, "filename"), (5, "class_index")]
        assert "Would create attack cAdv (cadv)." in summary.notes
        assert stored_files() == before
        for model in (Image, Attack, TargetModel, Prediction, ImportBatch, ImportRow):
            assert not model.objects.exists()
        real = folder.run(*rows)
        assert (real.imported, real.already_there, failures(real)) == (2, 1, failures(summary))
