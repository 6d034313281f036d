"""What is in an archive of images: names, manifest, checksums, samples."""

import csv
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from contextlib import closing

import pytest

from imagedb.archives import ArchivedPrediction, ArchiveType, plan_archive
from imagedb.archives.readme import readme
from imagedb.manifest import COLUMNS
from tests.imagedb.archives.made import Contents, clean, image, samples, whole

CAT = "5abcdef0-0000-4000-8000-000000000000"
STORED = Contents({"original/5a/5abc.webp": b"cat", "original/aa/1.png": b"changed cat", "original/bb/2.jpg": b"dog"})
IMAGES = [
    clean(0, STORED.stored("original/5a/5abc.webp"), id=CAT),
    image(1, STORED.stored("original/aa/1.png")),
    image(2, STORED.stored("original/bb/2.jpg"), target_model="", predictions=(), source_id="", source_file_name=""),
]
FIRST, SECOND = (f"{number:08}-0000-4000-8000-000000000000" for number in (1, 2))


def unpacked(archive_type: ArchiveType, images=IMAGES, **options) -> dict[str, bytes]:
    with closing(plan_archive(iter(images), archive_type, readme=lambda count: f"{count} images", **options)) as layout:
        content = io.BytesIO(whole(layout, STORED))
    if archive_type == ArchiveType.ZIP:
        with zipfile.ZipFile(content) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(fileobj=content, mode="r:") as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


def manifest_rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


class TestZip:
    def test_files_lie_in_folders(self):
        assert (
            unpacked(ArchiveType.ZIP).items()
            >= {
                f"clean/n02123045/{CAT}.webp": b"cat",
                f"modified/cadv/resnet-50/{FIRST}.png": b"changed cat",
                f"modified/cadv/no-target-model/{SECOND}.jpg": b"dog",
                "README.txt": b"3 images",
            }.items()
        )

    def test_a_row_of_the_manifest_in_full(self):
        first, second, third = manifest_rows(unpacked(ArchiveType.ZIP)["manifest.csv"])
        predictions = json.loads(second.pop("predictions"))
        assert second == {
            "filename": f"modified/cadv/resnet-50/{FIRST}.png",
            "kind": "modified",
            "class_index": "281",
            "synset": "n02123045",
            "source_filename": f"clean/n02123045/{CAT}.webp",
            "attack": "cadv",
            "target_model": "resnet-50",
            "predicted_class_index": "282",
            "confidence": "0.5",
            "id": FIRST,
            "source_id": CAT,
            "original_filename": "cadv/cat.png",
            "sha256": hashlib.sha256(b"changed cat").hexdigest(),
            "bytes": "11",
            "width": "64",
            "height": "48",
            "comparison": "same_size",
            "linf": "8",
            "l2": "1.5",
            "changed_share": "0.25",
            "ssim": "0.875",
            "ciede2000": "0.0",  # no difference is a difference too
            "licence": "CC0-1.0",
            "attribution": "Somebody",
        }
        assert predictions == [
            {"target_model": "resnet-50", "predicted_class_index": 282, "confidence": 0.5},
            {"target_model": "vit", "predicted_class_index": 281, "confidence": None},
        ]
        assert list(first)[: len(COLUMNS)] == list(COLUMNS)
        assert (first["attack"], first["linf"], first["source_filename"], first["predictions"]) == ("", "", "", "")
        assert (third["target_model"], third["source_filename"], third["source_id"]) == ("", "", "")

    @pytest.mark.parametrize(("preferred", "expected"), [("vit", "vit"), ("", "resnet-50"), ("other", "resnet-50")])
    def test_a_clean_image_names_the_preferred_models_prediction(self, preferred, expected):
        answers = tuple(ArchivedPrediction(name, 281, 0.0) for name in ("resnet-50", "vit"))
        images = [clean(1, STORED.stored("original/bb/2.jpg"), predictions=answers)]
        (row,) = manifest_rows(unpacked(ArchiveType.ZIP, images, preferred_model=preferred)["manifest.csv"])
        assert (row["target_model"], row["predicted_class_index"], row["confidence"]) == (expected, "281", "0.0")

    def test_a_modified_image_names_no_other_models_prediction(self):
        answers = (ArchivedPrediction("vit", 282, 0.5),)
        images = [image(1, STORED.stored("original/bb/2.jpg"), predictions=answers)]
        (row,) = manifest_rows(unpacked(ArchiveType.ZIP, images, preferred_model="vit")["manifest.csv"])
        assert (row["target_model"], row["predicted_class_index"], row["confidence"]) == ("resnet-50", "", "")

    def test_free_text_is_no_formula_and_numbers_stay_numbers(self):
        values = {"licence": "=1+1", "attribution": '@me, "and"\nothers', "original_filename": "-1.png", "l2": -0.5}
        (row,) = manifest_rows(
            unpacked(ArchiveType.ZIP, [image(1, STORED.stored("original/bb/2.jpg"), **values)])["manifest.csv"]
        )
        assert (row["licence"], row["attribution"]) == ("'=1+1", '\'@me, "and"\nothers')
        assert (row["original_filename"], row["l2"]) == ("'-1.png", "-0.5")

    def test_the_same_images_give_the_same_archive_and_others_another(self):
        def tag(images) -> str:
            with closing(plan_archive(images, ArchiveType.ZIP, readme=str)) as layout:
                return layout.tag

        assert tag(IMAGES) == tag(IMAGES)
        assert tag(IMAGES) != tag(IMAGES[:2])
        assert tag(IMAGES) != tag([IMAGES[0]._replace(attribution="Somebody else"), *IMAGES[1:]])


class TestWebDataset:
    def test_one_sample_per_image_and_nothing_else(self):
        names = list(unpacked(ArchiveType.WEBDATASET))
        assert samples(names) == {
            f"/{CAT}": ["webp", "json", "cls"],
            f"/{FIRST}": ["png", "json", "cls"],
            f"/{SECOND}": ["jpg", "json", "cls"],
        }
        assert names[-3:] == ["__archive__/README.txt", "__archive__/manifest.csv", "__archive__/SHA256SUMS"]

    def test_a_sample(self):
        files = unpacked(ArchiveType.WEBDATASET)
        assert files[f"{FIRST}.png"] == b"changed cat"
        assert files[f"{FIRST}.cls"] == b"281"
        record = json.loads(files[f"{FIRST}.json"])
        assert record["source_filename"] == f"{CAT}.webp"
        assert (record["linf"], record["ciede2000"], record["confidence"]) == (8, 0.0, 0.5)
        assert record["predictions"][1] == {"target_model": "vit", "predicted_class_index": 281, "confidence": None}
        (_, row, _) = manifest_rows(files["__archive__/manifest.csv"])
        assert list(row) == list(record)
        assert row["filename"] == f"{FIRST}.png"


@pytest.mark.parametrize("archive_type", ArchiveType)
class TestBoth:
    def test_every_file_has_its_digest(self, archive_type):
        files = unpacked(archive_type)
        sums = next(name for name in files if name.endswith("SHA256SUMS"))
        listed = dict(reversed(line.split("  ", 1)) for line in files.pop(sums).decode().splitlines())
        assert listed == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}

    @pytest.mark.skipif(not shutil.which("sha256sum"), reason="there is no sha256sum")
    def test_sha256sum_checks_it(self, archive_type, tmp_path):
        files = unpacked(archive_type)
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
        sums = next(name for name in files if name.endswith("SHA256SUMS"))
        check = ["sha256sum", "--check", "--strict", "--quiet", sums]
        subprocess.run(check, cwd=tmp_path, check=True)
        next(tmp_path.rglob(f"{FIRST}.png")).write_bytes(b"other")
        assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 1

    def test_no_images(self, archive_type):
        files = unpacked(archive_type, [])
        assert manifest_rows(next(content for name, content in files.items() if name.endswith("manifest.csv"))) == []

    def test_what_goes_wrong_is_raised_and_leaves_no_file_open(self, archive_type):
        def images():
            yield IMAGES[0]
            raise RuntimeError("the database is gone")

        with pytest.raises(RuntimeError, match="the database is gone"):
            plan_archive(images(), archive_type, readme=str)

    def test_the_readme_explains_what_is_there(self, archive_type):
        text = readme("A title", ["Licence: CC0"], "3", archive_type, "rendition")
        assert text.startswith("A title\n=======\n\nImages: 3. The files are renditions")
        assert "\n\nLicence: CC0\n\n" in text
        for name in unpacked(archive_type):
            if name.endswith((".csv", "SUMS")):
                assert f"\n{name}\n" in text
