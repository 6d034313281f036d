"""The picture of what was changed in a modified image."""

import io
import logging

import numpy as np
import pytest
from django.urls import reverse
from PIL import Image as PillowImage

from imagedb.differences import amplified
from imagedb.models import Comparison, Image, Visibility
from tests import factories
from tests.imagedb.catalogue_pages import SEES, measured, pair_of_each_visibility, visitors

pytestmark = pytest.mark.django_db


def address(image: Image, factor: object = None) -> str:
    path = reverse("imagedb:difference", args=[image.public_id])
    return path if factor is None else f"{path}?factor={factor}"


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(PillowImage.open(io.BytesIO(content)).convert("RGB"))


def stored(field_file) -> np.ndarray:
    with field_file.storage.open(field_file.name) as file:
        return pixels(file.read())


@pytest.fixture
def modified():
    return measured(attack=factories.attack(), target_model=factories.target_model())


@pytest.mark.parametrize(("factor", "expected"), [(None, 10), (1, 1), (5, 5), (50, 50)])
def test_is_the_amplified_difference_of_the_two_renditions(client, modified, factor, expected):
    response = client.get(address(modified, factor))
    assert response.status_code == 200
    assert response["Content-Type"] == "image/png"
    truth = amplified(stored(modified.rendition), stored(modified.source.rendition), expected)
    assert np.array_equal(pixels(response.content), np.asarray(truth))
    assert f"difference-x{expected}.png" in response["Content-Disposition"]


@pytest.mark.parametrize("factor", ["0", "3", "-1", "1e9", "", "many", "10.0", "٥"])
def test_other_factors_are_refused(client, modified, factor):
    response = client.get(address(modified, factor))
    assert response.status_code == 400
    assert "factor must be one of 1, 2, 5, 10, 20, 50" in response.content.decode()


def test_a_client_that_has_it_gets_no_content_and_no_file_is_opened(client, modified, monkeypatch):
    first = client.get(address(modified))
    monkeypatch.setattr("imagedb.views.files._pixels", lambda file: pytest.fail("a file was opened"))
    again = client.get(address(modified), headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    assert not again.content
    assert again["ETag"] == first["ETag"]
    assert again["Cache-Control"] == first["Cache-Control"] == "public, max-age=3600"


def test_the_tag_is_of_both_digests_and_the_factor(client, modified):
    tags = {client.get(address(modified, factor))["ETag"] for factor in (5, 10)}
    for image in (modified, modified.source):
        Image.objects.filter(pk=image.pk).update(rendition_sha256="f" * 64)
        tags.add(client.get(address(modified))["ETag"])
    assert len(tags) == 4


@pytest.mark.parametrize("comparison", ["", Comparison.NOT_COMPARABLE])
def test_nothing_where_there_is_nothing_to_compare(client, modified, comparison):
    Image.objects.filter(pk=modified.pk).update(comparison=comparison)
    assert client.get(address(modified)).status_code == 404
    assert client.get(address(modified.source)).status_code == 404


@pytest.mark.parametrize("which", [0, 1], ids=["clean", "modified"])
def test_nothing_if_only_one_of_the_two_may_be_seen(client, modified, which):
    hidden = (modified.source, modified)[which]
    Image.objects.filter(pk=hidden.pk).update(visibility=Visibility.REGISTERED)
    assert client.get(address(modified)).status_code == 404


def test_each_visitor_gets_what_its_account_opens():
    pairs = pair_of_each_visibility(factories.attack(), factories.target_model())
    for name, client in visitors().items():
        for visibility, (_, modified) in pairs.items():
            response = client.get(address(modified))
            assert response.status_code == (200 if visibility in SEES[name] else 404), (name, visibility)
            if response.status_code == 200:
                scope = "public" if visibility == "public" else "private"
                assert response["Cache-Control"] == f"{scope}, max-age=3600"


def test_a_lost_file_is_logged_and_not_found(client, modified, caplog):
    modified.source.rendition.storage.delete(modified.source.rendition.name)
    with caplog.at_level(logging.ERROR):
        assert client.get(address(modified)).status_code == 404
    assert "has lost" in caplog.text


def test_only_reading(client, modified):
    assert client.post(address(modified)).status_code == 405
    assert client.head(address(modified)).status_code == 200
