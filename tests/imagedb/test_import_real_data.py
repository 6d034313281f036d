"""Imports of real photographs and published adversarial examples."""

import csv
import io

import numpy as np
import pytest
from PIL import Image as PillowImage

from imagedb.models import Attack, Image, ImageClass
from tests.imagedb import pictures
from tests.imagedb.manifests import clean, modified, stored, stored_files

pytestmark = pytest.mark.django_db


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
