"""What was downloaded as an archive can be imported again, here and elsewhere."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from imagedb.models import Image, Prediction
from tests import factories
from tests.imagedb.api_clients import body

pytestmark = pytest.mark.django_db


def facts() -> set[tuple]:
    """What must be the same afterwards."""
    return set(
        Image.objects.values_list(
            "original_sha256",
            "kind",
            "image_class__index",
            "source__original_sha256",
            "attack__slug",
            "target_model__slug",
            "predictions__target_model__slug",
            "predictions__predicted_class__index",
            "predictions__confidence",
        )
    )


@pytest.fixture
def images() -> set[tuple]:
    model = factories.target_model(name="ResNet-50", slug="resnet-50")
    attack = factories.attack(name="cAdv", slug="cadv")
    for index, model_of_image in ((0, model), (281, None)):
        source = factories.clean_image(image_class=factories.image_class(index), original_filename='cat, "the" one.png')
        image = factories.modified_image(source, attack=attack, target_model=model_of_image)
        answers = [(source, index, 1.0)] + ([(image, 7, 0.0)] if model_of_image else [])
        for about, answer, confidence in answers:
            predicted_class = factories.image_class(answer)
            Prediction.objects.create(
                image=about, target_model=model, predicted_class=predicted_class, confidence=confidence
            )
    return facts()


def downloaded(folder: Path, **parameters) -> tuple[Path, Path]:
    """An archive of all modified images and their sources: manifest, and where the images are."""
    parameters |= {"kind": "modified", "sources": "true"}
    content = body(APIClient().get("/api/v1/images/archive/", parameters))
    if parameters["archive_type"] == "zip":
        (folder / "images.zip").write_bytes(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extract("manifest.csv", folder)
        return folder / "manifest.csv", folder / "images.zip"
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        archive.extractall(folder / "images", filter="data")
    return folder / "images" / "__archive__" / "manifest.csv", folder / "images"


@pytest.mark.parametrize("archive_type", ["zip", "webdataset"])
def test_elsewhere(images, tmp_path, archive_type, capsys):
    manifest, files = downloaded(tmp_path, archive_type=archive_type)
    Image.objects.filter(kind="modified").delete()
    Image.objects.all().delete()
    call_command("import_images", manifest, images=files, visibility="public")
    assert "4 imported" in capsys.readouterr().out
    assert facts() == images


def test_here_where_all_are_there_already(images, tmp_path, capsys):
    manifest, files = downloaded(tmp_path, archive_type="zip")
    call_command("import_images", manifest, images=files, visibility="public")
    assert "4 already there" in capsys.readouterr().out
    assert facts() == images
