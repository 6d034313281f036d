"""Imports: what goes in, what does not and why, and that nothing goes in twice."""

import csv
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.db import IntegrityError
from PIL import Image as PillowImage

from imagedb import pixels
from imagedb.models import Attack, Image, ImageClass, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.models.imports import ImportStatus
from imagedb.services import import_store
from imagedb.services.import_summary import ImportSummary
from imagedb.services.importing import ImportFailed, import_manifest
from tests import factories
from tests.factories import png_bytes
from tests.imagedb import pictures
from tests.imagedb.manifests import Folder, clean, modified, stored, zip_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


def stored_files() -> set[Path]:
    return {path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()}


def failures(summary: ImportSummary) -> list[tuple[int, str]]:
    return [(error.row_number, error.column) for error in summary.errors]


class TestGoodRows:
    def test_clean_and_modified(self, folder):
        folder.add("clean.png", "modified.png")
        summary = folder.run(
            clean(target_model="ResNet-50", predicted_class_index=281, confidence=0.9),
            modified(predicted_class_index=282, confidence=0),
            batch=ImportBatch(visibility="private", licence="CC0-1.0", attribution="Somebody"),
        )
        assert (summary.row_count, summary.imported, summary.already_there, summary.failed) == (2, 2, 0, 0)
        source, image = Image.objects.order_by("kind")
        content = (folder.images / "modified.png").read_bytes()
        assert stored(image.original) == content
        assert image.original_sha256 == hashlib.sha256(content).hexdigest()
        assert image.original_bytes == len(content)
        assert (image.original_format, image.original_mode, image.width, image.height) == ("PNG", "RGB", 64, 48)
        assert (image.source, image.attack.name, image.target_model.name) == (source, "cAdv", "ResNet-50")
        assert (image.visibility, image.licence, image.attribution) == ("private", "CC0-1.0", "Somebody")
        rendition = stored(image.rendition)
        assert hashlib.sha256(rendition).hexdigest() == image.rendition_sha256
        assert np.array_equal(
            PillowImage.open(io.BytesIO(rendition)), PillowImage.open(io.BytesIO(content)).convert("RGB")
        )
        assert PillowImage.open(io.BytesIO(stored(image.thumbnail))).format == "JPEG"
        predictions = {prediction.image: prediction for prediction in Prediction.objects.all()}
        assert (predictions[source].predicted_class.index, predictions[source].confidence) == (281, 0.9)
        assert (predictions[image].predicted_class.index, predictions[image].confidence) == (282, 0.0)
        for row in Image.objects.all():
            row.full_clean()

    def test_sources_resolve_whatever_the_order(self, folder):
        folder.add("clean.png", "modified.png")
        assert folder.run(modified(), clean()).failed == 0
        assert Image.objects.get(kind="modified").source.original_filename == "clean.png"

    def test_source_in_the_catalogue(self, folder):
        folder.add("clean.png", "modified.png")
        folder.run(clean())
        assert folder.run(modified()).failed == 0
        assert Image.objects.get(kind="modified").source.original_filename == "clean.png"

    def test_class_by_synset(self, folder):
        folder.add("clean.png")
        folder.run({"filename": "clean.png", "kind": "clean", "synset": "n02123045"})
        assert Image.objects.get().image_class.index == 281

    def test_batch_and_rows_are_recorded(self, folder):
        folder.add("clean.png")
        folder.run(clean(), modified())
        batch = ImportBatch.objects.get()
        assert (batch.status, batch.source_name) == (ImportStatus.DONE, "manifest.csv")
        assert (batch.row_count, batch.imported_count, batch.already_there_count, batch.failed_count) == (2, 1, 0, 1)
        assert batch.finished_at >= batch.started_at
        first, second = batch.rows.all()
        assert (first.row_number, first.filename, first.result, first.image.original_filename) == (
            2,
            "clean.png",
            "imported",
            "clean.png",
        )
        assert (second.row_number, second.result, second.image) == (3, "failed", None)
        assert "no such file" in second.message

    def test_stored_names_tell_nothing_and_end_as_the_content_is(self, folder):
        folder.add("secret name.png", content=pictures.encoded(pictures.noise(), "JPEG"))
        folder.run(clean("secret name.png"))
        image = Image.objects.get()
        assert image.original_format == "JPEG"
        assert image.original.name.endswith(".jpg")
        assert "secret" not in image.original.name
        assert image.original_filename == "secret name.png"

    def test_what_was_changed_is_said(self, folder):
        folder.add("clean.png", content=pictures.encoded(pictures.noise().convert("RGBA").rotate(9)))
        summary = folder.run(clean())
        assert summary.notes == ["1 image(s): transparency was flattened on white."]
        assert ImportRow.objects.get().message == "transparency was flattened on white"

    def test_from_a_zip(self, folder, tmp_path):
        archive = tmp_path / "images.zip"
        archive.write_bytes(
            zip_of(
                {
                    "set/clean.png": png_bytes(1),
                    "set/m/modified.png": png_bytes(2),
                    "set/spare.png": png_bytes(3),
                    "__MACOSX/set/._clean.png": b"x",
                    "../evil.png": png_bytes(4),
                }
            )
        )
        summary = folder.run(clean(), modified(), images=archive)
        assert summary.imported == 2
        notes = "\n".join(summary.notes)
        assert "1 file(s) are in no row: set/spare.png" in notes
        assert "1 file(s) of the operating system" in notes
        assert "1 file(s) were refused: '../evil.png' leads out" in notes
        assert ImportBatch.objects.get().notes == notes

    def test_same_basename_in_two_folders_stays_apart(self, folder):
        folder.add("a/1.png", "b/1.png", "clean.png")
        summary = folder.run(
            clean(), modified("a/1.png", attack="A"), modified("b/1.png", attack="B"), modified("1.png", attack="C")
        )
        assert (summary.imported, failures(summary)) == (3, [(5, "filename")])
        assert "a/1.png, b/1.png" in summary.errors[0].message
        for attack in "AB":
            image = Image.objects.get(attack__name=attack)
            assert stored(image.original) == (folder.images / f"{attack.lower()}/1.png").read_bytes()

    def test_one_file_cannot_be_two_images(self, folder):
        folder.add("1.png")
        summary = folder.run(clean("train/1.png"), clean("val/1.png"))
        assert failures(summary) == [(2, "filename"), (3, "filename")]

    def test_progress(self, folder):
        seen = []
        folder.add("clean.png").run(clean(), clean("b.png"), progress=lambda done, total: seen.append((done, total)))
        assert seen == [(1, 2), (2, 2)]


class TestAttacksAndModels:
    def test_unknown_ones_are_created_and_listed(self, folder):
        folder.add("clean.png", "modified.png")
        summary = folder.run(clean(), modified(attack="Diff Attack", target_model="ResNet-50 (Salman)"))
        assert (Attack.objects.get().name, Attack.objects.get().slug) == ("Diff Attack", "diff-attack")
        assert TargetModel.objects.get().slug == "resnet-50-salman"
        assert "Created attack Diff Attack (diff-attack)." in summary.notes
        assert "Created target model ResNet-50 (Salman) (resnet-50-salman)." in summary.notes

    @pytest.mark.parametrize("name", ["DiffAttack", "DIFFATTACK", "diff-attack-2023", "Diff-Attack-2023"])
    def test_known_ones_are_found_by_name_or_slug(self, folder, name):
        attack = factories.attack(name="DiffAttack", slug="diff-attack-2023")
        folder.add("clean.png", "modified.png").run(clean(), modified(attack=name))
        assert Image.objects.get(kind="modified").attack == attack

    def test_one_of_each_for_many_rows(self, folder):
        rows = [modified(f"{number}.png", attack=name) for number, name in enumerate(["cAdv", "CADV", "cadv"])]
        summary = folder.add("clean.png").add_all(rows).run(clean(), *rows)
        assert summary.imported == 4
        assert Attack.objects.count() == 1

    def test_a_failed_row_creates_none(self, folder):
        folder.add("clean.png").add("modified.png", content=b"no image")
        summary = folder.run(clean(), modified())
        assert summary.failed == 1
        assert not Attack.objects.exists()
        assert not TargetModel.objects.exists()
        assert summary.notes == []

    def test_ambiguous_name(self, folder):
        factories.attack(name="cAdv", slug="cadv-2020")
        factories.attack(name="Other", slug="cadv")
        summary = folder.add("clean.png", "modified.png").run(clean(), modified())
        assert failures(summary) == [(3, "attack")]
        assert "cadv-2020" in summary.errors[0].message

    @pytest.mark.parametrize("name", ["攻击", "x" * 101])
    def test_names_without_an_address(self, folder, name):
        summary = folder.add("clean.png", "modified.png").run(clean(), modified(attack=name))
        assert failures(summary) == [(3, "attack")]

    def test_target_model_may_come_later(self, folder):
        folder.add("clean.png", "modified.png")
        summary = folder.run(clean(), modified(target_model=""))
        assert any("can be used in no study" in note for note in summary.notes)
        again = folder.run(clean(), modified(predicted_class_index=3))
        assert (again.imported, again.already_there) == (0, 2)
        image = Image.objects.get(kind="modified")
        assert image.target_model.name == "ResNet-50"
        assert image.predictions.get().predicted_class.index == 3
        # And a row that leaves it out again finds the image.
        assert folder.run(clean(), modified(target_model="")).already_there == 2
        assert Image.objects.count() == 2


class TestRules:
    @pytest.mark.parametrize(
        ("rows", "failed", "words"),
        [
            ([clean(), modified(class_index=282)], (3, "class_index"), "its source clean.png is 281"),
            ([clean(), modified(predicted_class_index=281)], (3, "predicted_class_index"), "must be misclassified"),
            (
                [clean(target_model="m", predicted_class_index=282)],
                (2, "predicted_class_index"),
                "must be classified correctly",
            ),
            ([clean(kind="cleen")], (2, "kind"), "'cleen'"),
            ([clean(class_index=1000)], (2, "class_index"), "0 to 999"),
            ([clean(synset="n02123159")], (2, "class_index"), "different classes"),
            ([clean(synset="n99999999")], (2, "synset"), "none of the 1,000"),
            ([clean(target_model="m", predicted_class_index=281, confidence=1.5)], (2, "confidence"), "0 to 1"),
            (
                [clean(), modified(), modified("m2.png", source_filename="modified.png")],
                (4, "source_filename"),
                "is itself a modified image",
            ),
            ([clean(), modified(source_filename="other.png")], (3, "source_filename"), "neither a clean image"),
            ([clean("../clean.png")], (2, "filename"), "leads out"),
        ],
    )
    def test_row_errors(self, folder, rows, failed, words):
        folder.add("clean.png", "modified.png", "m2.png")
        summary = folder.run(*rows)
        assert failures(summary) == [failed]
        assert words in summary.errors[0].message
        assert summary.imported == len(rows) - 1
        assert ImportRow.objects.get(result="failed").row_number == failed[0]

    def test_control_characters_reach_no_text_of_the_database(self, folder):
        """SQLite would take them; PostgreSQL would stop the whole import."""
        columns = "filename,kind,class_index,source_filename,attack,target_model,no\0te"
        lines = [
            columns,
            "clean.png,clean,281,,,,x",
            "modified\0.png,modified,281,clean.png,cAdv,m,x",
            "modified.png,modified,281,cle\0an.png,cAdv,m,x",
            "modified.png,modified,281,clean.png,c\0Adv,m,x",
            "modified.png,modified,281,clean.png,cAdv,\0m,x",
            "modified\0.png,modified,281,clean.png,cAdv,m,x,more",
        ]
        (folder.path / "manifest.csv").write_text("\n".join(lines))
        folder.add("clean.png", "modified.png")
        batch = ImportBatch()
        summary = import_manifest(manifest=folder.path / "manifest.csv", images=folder.images, batch=batch)
        assert summary.imported == 1
        assert failures(summary) == [
            (3, "filename"),
            (4, "source_filename"),
            (5, "attack"),
            (6, "target_model"),
            (7, ""),
        ]
        batch.refresh_from_db()
        assert "Columns not read: note." in batch.notes
        texts = [batch.notes, *(text for row in batch.rows.all() for text in (row.filename, row.message))]
        assert not [text for text in texts if "\0" in text]
        assert [row.filename for row in batch.rows.all()] == ["clean.png", *["modified.png"] * 5]

    def test_a_manifest_of_control_characters_is_refused(self, folder):
        (folder.path / "manifest.csv").write_bytes("filename,kind\na.png,clean\n".encode("utf-16-le"))
        batch = ImportBatch()
        with pytest.raises(ImportFailed, match="lacks the column class_index"):
            import_manifest(manifest=folder.path / "manifest.csv", images=folder.images, batch=batch)
        batch.refresh_from_db()
        assert batch.status == ImportStatus.FAILED
        assert "\0" not in batch.error

    def test_absent_file(self, folder):
        summary = folder.add("clean.png").run(clean(), modified("absent.png"))
        assert failures(summary) == [(3, "filename")]
        assert str(summary.errors[0]).startswith("row 3 (absent.png): filename: absent.png in the folder")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "empty"),
            (png_bytes(1)[:300], "damaged"),
            (b"<html><script>alert(1)</script>", "not an image"),
            (pictures.png(50_000, 50_000, 1, 0), "pixels"),
            (pictures.animation("GIF"), "several frames"),
            (pictures.encoded(PillowImage.new("CMYK", (9, 9)), "JPEG"), "CMYK"),
        ],
    )
    def test_unreadable_images_do_not_stop_the_others(self, folder, content, words):
        folder.add("bad.png", content=content).add("good.png")
        summary = folder.run(clean("bad.png"), clean("good.png"))
        assert (summary.imported, failures(summary)) == (1, [(2, "filename")])
        assert words in summary.errors[0].message

    def test_a_damaged_member_does_not_stop_the_others(self, folder, tmp_path):
        members = {"bad.png": png_bytes(1), "good.png": png_bytes(2)}
        content = bytearray(zip_of(members, zipfile.ZIP_DEFLATED))
        content[len(b"bad.png") + 30] ^= 0xFF  # the first compressed byte: an unknown type of block
        (tmp_path / "images.zip").write_bytes(content)
        summary = folder.run(clean("bad.png"), clean("good.png"), images=tmp_path / "images.zip")
        assert (summary.imported, failures(summary)) == (1, [(2, "filename")])
        assert "bad.png cannot be unpacked" in ImportRow.objects.get(result="failed").message

    def test_source_whose_own_row_failed(self, folder):
        folder.add("modified.png").add("clean.png", content=b"")
        summary = folder.run(modified(), clean())
        assert failures(summary) == [(2, "source_filename"), (3, "filename")]
        assert "mend its row first" in summary.errors[0].message

    def test_source_that_is_modified_in_the_catalogue(self, folder):
        folder.add("clean.png", "modified.png", "m2.png").run(clean(), modified())
        summary = folder.run(modified("m2.png", source_filename="modified.png"))
        assert "is itself a modified image" in summary.errors[0].message

    def test_source_with_a_name_that_two_images_have(self, folder):
        for _ in range(2):
            folder.add("clean.png").run(clean())
        summary = folder.add("modified.png").run(modified())
        assert "2 clean images named clean.png" in summary.errors[0].message

    def test_modified_image_that_is_its_source(self, folder):
        folder.add("clean.png", "modified.png", content=png_bytes(7))
        summary = folder.run(clean(), modified())
        assert failures(summary) == [(3, "kind")]

    def test_modified_image_with_the_pixels_of_its_source(self, folder):
        image = pictures.noise()
        folder.add("clean.png", content=pictures.encoded(image)).add(
            "modified.png", content=pictures.encoded(image, "BMP")
        )
        summary = folder.run(clean(), modified())
        assert "no pixel differs" in summary.errors[0].message

    def test_contradictions_with_the_catalogue(self, folder):
        folder.add("clean.png", "other.png", "modified.png")
        folder.run(clean(), clean("other.png"), modified())
        summary = folder.run(clean(class_index=3), clean("other.png"), modified(source_filename="other.png"))
        assert failures(summary) == [(2, "class_index"), (4, "source_filename")]
        assert Image.objects.get(original_filename="clean.png").image_class.index == 281


class TestAgain:
    def test_nothing_goes_in_twice(self, folder):
        rows = [clean(target_model="m", predicted_class_index=281, confidence=0.5), modified(predicted_class_index=1)]
        folder.add_all(rows).run(*rows)
        before = (stored_files(), list(Image.objects.values()), list(Prediction.objects.values()))
        summary = folder.run(*rows)
        assert (summary.imported, summary.already_there, summary.failed) == (0, 2, 0)
        assert (stored_files(), list(Image.objects.values()), list(Prediction.objects.values())) == before

    def test_under_another_name(self, folder):
        folder.add("clean.png").run(clean())
        (folder.images / "clean.png").rename(folder.images / "renamed.png")
        assert folder.run(clean("renamed.png")).already_there == 1
        assert ImportRow.objects.get(result="already_there").message == "it is in the catalogue as clean.png"

    def test_one_file_for_two_target_models_is_two_images(self, folder):
        folder.add("clean.png", "modified.png")
        summary = folder.run(clean(), modified(), modified(target_model="ViT"))
        assert summary.imported == 3
        assert folder.run(clean(), modified(), modified(target_model="ViT")).already_there == 3

    def test_the_same_row_twice_in_one_manifest(self, folder):
        summary = folder.add("clean.png").run(clean(), clean())
        assert (summary.imported, summary.already_there) == (1, 1)

    def test_predictions_are_added_and_updated(self, folder):
        folder.add("clean.png").run(clean())
        for confidence, expected in ((0.25, 0.25), (0.5, 0.5), ("", 0.5), (0, 0.0)):
            folder.run(clean(target_model="m", predicted_class_index=281, confidence=confidence))
            assert Prediction.objects.get().confidence == expected

    def test_what_has_failed_goes_in_once_it_is_mended(self, folder):
        folder.add("clean.png").run(clean(), modified())
        summary = folder.add("modified.png").run(clean(), modified())
        assert (summary.imported, summary.already_there) == (1, 1)

    def test_two_imports_at_the_same_moment(self, folder, monkeypatch):
        """The other import puts the image in while this one is still decoding it."""
        folder.add("clean.png")
        decode, others = pixels.decode, []

        def decode_while_another_import_runs(content):
            if not others:
                others.append(None)
                others[0] = folder.run(clean())
            return decode(content)

        monkeypatch.setattr(pixels, "decode", decode_while_another_import_runs)
        summary = folder.run(clean())
        assert (others[0].imported, summary.imported, summary.already_there, summary.failed) == (1, 0, 1, 0)
        assert Image.objects.count() == 1


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


class TestRealData:
    def test_all_photographs(self, shared_data, folder):
        with (shared_data / "images" / "imagenet.csv").open(newline="") as file:
            table = list(csv.DictReader(file))
        rows = [clean(row["filename"], class_index=row["class_index"], synset=row["synset"]) for row in table]
        images = shared_data / "images" / "imagenet"
        summary = folder.run(*rows, images=images)
        assert (summary.imported, summary.failed, len(rows)) == (130, 0, 130)
        for image in Image.objects.select_related("image_class"):
            content = (images / image.original_filename).read_bytes()
            assert stored(image.original) == content
            assert image.original_filename.startswith(image.image_class.synset)
            rendition = PillowImage.open(io.BytesIO(stored(image.rendition)))
            assert (rendition.format, rendition.mode, rendition.info) == ("PNG", "RGB", {})
            assert rendition.size == (image.width, image.height)
        files = stored_files()
        assert folder.run(*rows, images=images).already_there == 130
        assert stored_files() == files

    def test_six_adversarial_examples_of_one_source(self, shared_data, folder):
        # "140" in the published names is the class index.
        assert ImageClass.objects.get(index=140).name == "red-backed sandpiper"
        attacks = {
            "semadv_140.JPEG": "SemanticAdv",
            "cadv_140.png": "cAdv",
            "ncf_140.JPEG": "NCF",
            "diffattack_140.JPEG": "DiffAttack",
            "advpp_140.png": "AdvPP",
            "aca_140.JPEG": "ACA",
        }
        rows = [
            modified(name, class_index=140, source_filename="real_140.JPEG", attack=attack)
            for name, attack in attacks.items()
        ]
        summary = folder.run(
            *rows, clean("real_140.JPEG", class_index=140), images=shared_data / "images" / "attacks_140"
        )
        assert (summary.imported, summary.failed) == (7, 0)
        assert set(Attack.objects.values_list("name", flat=True)) == set(attacks.values())
        source = Image.objects.get(kind="clean")
        assert source.modified_versions.count() == 6
        # Named .JPEG, but a PNG: the format is that of the content.
        assert Image.objects.get(original_filename="aca_140.JPEG").original_format == "PNG"
        for image in Image.objects.all():
            rendition = stored(image.rendition)
            assert set(pictures.png_chunks(rendition)) == {"IHDR", "IDAT", "IEND"}
            assert image.rendition.name.endswith(".png")
            plain = PillowImage.open(io.BytesIO(stored(image.original))).convert("RGB")
            assert np.array_equal(PillowImage.open(io.BytesIO(rendition)), plain)
