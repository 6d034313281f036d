"""Imports that are cut off by an error, that can read nothing, or that are dry: what they leave, and what they say."""

import pytest
from django.db import IntegrityError

from imagedb.models import Attack, Image, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.models.imports import ImportStatus
from imagedb.services import import_plan, import_state
from imagedb.services.importing import ImportFailed, import_manifest
from tests.imagedb.manifests import assert_sound, clean, failures, manifest_text, modified, stored_files

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_storage")]


class TestFailuresLeaveNothing:
    @pytest.mark.parametrize("error", [IntegrityError, RuntimeError, KeyboardInterrupt])
    def test_files_of_a_chunk_that_failed_are_removed(self, folder, monkeypatch, error):
        def fail(*arguments, **options):
            raise error("now")

        folder.add("clean.png", "modified.png")
        before = stored_files()
        monkeypatch.setattr(import_state, "mark_done", fail)
        with pytest.raises(error):
            folder.run(clean(), modified())
        assert stored_files() == before
        assert not Image.objects.exists()
        assert not Attack.objects.exists()
        batch = ImportBatch.objects.get()
        assert batch.status == ImportStatus.FAILED
        assert error.__name__ in batch.error

    def test_chunks_before_the_failure_stay(self, folder, monkeypatch):
        folder.add("a.png", "b.png")
        mark_done = import_state.mark_done

        def fail_at_the_second(claim, *arguments):
            if claim.chunk.number == 1:
                raise RuntimeError("now")
            return mark_done(claim, *arguments)

        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 1)
        monkeypatch.setattr(import_state, "mark_done", fail_at_the_second)
        with pytest.raises(RuntimeError):
            folder.run(clean("a.png"), clean("b.png"))
        assert Image.objects.get().original_filename == "a.png"
        assert [row.result for row in ImportRow.objects.all()] == ["imported", "waiting"]
        assert_sound()
        monkeypatch.undo()
        assert folder.run(clean("a.png"), clean("b.png")).already_there == 1
        assert_sound()

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

    def test_too_many_rows(self, folder, monkeypatch):
        monkeypatch.setattr(import_plan, "MAX_ROWS", 2)
        (folder.path / "manifest.csv").write_text(manifest_text([clean(f"{n}.png") for n in range(3)]))
        with pytest.raises(ImportFailed, match="more than 2 rows"):
            import_manifest(manifest=folder.path / "manifest.csv", images=folder.images, batch=ImportBatch())
        assert not ImportRow.objects.exists()

    def test_the_storage_has_lost_the_source(self, folder):
        folder.add("clean.png", "modified.png").run(clean())
        source = Image.objects.get()
        source.rendition.storage.delete(source.rendition.name)
        summary = folder.run(modified())
        assert failures(summary) == [(2, "source_filename")]
        assert f"lost the file of clean.png ({source.public_id})" in summary.errors[0].message


class TestDryRun:
    def test_says_what_would_happen_and_imports_nothing(self, folder):
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
        for model in (Image, Attack, TargetModel, Prediction):
            assert not model.objects.exists()
        results = ["imported", "imported", "failed", "failed", "already_there"]
        batch = ImportBatch.objects.get()
        assert (batch.is_dry_run, batch.status) == (True, ImportStatus.DONE)
        assert [row.result for row in batch.rows.all()] == results
        real = folder.run(*rows)
        assert (real.imported, real.already_there, failures(real)) == (2, 1, failures(summary))
        assert [row.result for row in ImportRow.objects.exclude(batch=batch)] == results

    @pytest.mark.parametrize("chunk_rows", [1, 2, 32])
    def test_says_the_same_however_rows_are_put_into_chunks(self, folder, monkeypatch, chunk_rows):
        """The same bytes in different chunks, and modified images in another chunk than their source."""
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", chunk_rows)
        rows = [
            clean(),
            clean("same.png"),
            clean("other.png"),
            modified("m1.png"),
            modified("m1 again.png"),
            modified("m1 against another.png", target_model="ViT"),
            modified("source.png"),
        ]
        folder.add("clean.png", "other.png", "m1.png")
        copies = [("same", "clean"), ("m1 again", "m1"), ("m1 against another", "m1"), ("source", "clean")]
        for copy, original in copies:
            folder.add(f"{copy}.png", content=(folder.images / f"{original}.png").read_bytes())
        dry = folder.run(*rows, dry_run=True)
        real = folder.run(*rows)
        for summary in (dry, real):
            # The last one is its source, by its bytes and so by its pixels too: either is reason enough.
            assert [number for number, _ in failures(summary)] == [8]
            assert (summary.imported, summary.already_there) == (4, 2)

    def test_of_what_is_there(self, folder):
        folder.add("clean.png", "modified.png").run(clean())
        rows = [clean(target_model="m", predicted_class_index=281), modified()]
        summary = folder.run(*rows, dry_run=True)
        assert (summary.imported, summary.already_there) == (1, 1)
        assert not Prediction.objects.exists()
        assert not TargetModel.objects.exists()
