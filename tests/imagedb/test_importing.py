"""Imports: what goes in, and that nothing goes in twice."""

import hashlib
import io

import numpy as np
import pytest
from PIL import Image as PillowImage

from imagedb import pixels
from imagedb.models import Attack, Image, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.models.imports import ImportStatus
from tests import factories
from tests.factories import png_bytes
from tests.imagedb import pictures
from tests.imagedb.manifests import clean, failures, modified, stored, stored_files, zip_of

pytestmark = pytest.mark.django_db


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
