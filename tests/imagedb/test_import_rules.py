"""What a row must say, and what is told of one that does not."""

import zipfile

import pytest
from PIL import Image as PillowImage

from imagedb.models import Image, ImportBatch, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services.importing import ImportFailed, import_manifest
from tests.factories import png_bytes
from tests.imagedb import pictures
from tests.imagedb.manifests import clean, failures, modified, zip_of

pytestmark = pytest.mark.django_db


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
            (png_bytes(1)[:300], "cut short"),
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
