"""Full-text search of the image list: the same answers on SQLite and PostgreSQL (this file runs on both)."""

import pytest
from rest_framework.test import APIClient

from imagedb.selectors import search, visible_images
from imagedb.selectors.search import words_of
from tests import factories
from tests.imagedb.api_clients import ids, listed, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def images():
    cadv = factories.attack(
        name="cAdv", slug="cadv", description="Recolours with ImageNet's own hues", paper_title="Big but Imperceptible"
    )
    aca = factories.attack(name="ACA (α)", slug="aca", description="Content-based")
    resnet = factories.target_model(name="ResNet-50", slug="resnet50")
    tabby = factories.clean_image(original_filename="ILSVRC2012_val_00000293.JPEG", attribution="Photo: Zoë O'Brien")
    tench = factories.clean_image(image_class=factories.image_class(0), original_filename="n01440764/fish-1.5.jpeg")
    return {
        "tabby": tabby,
        "tench": tench,
        "recoloured": factories.modified_image(
            tabby, attack=cadv, target_model=resnet, original_filename="adv/1.png", attribution="50% off_season"
        ),
        "content": factories.modified_image(tench, attack=aca, target_model=None, original_filename="tench-aca.webp"),
    }


@pytest.mark.parametrize(
    ("question", "names"),
    [
        # Class: name, synonyms, synset
        ("tabby", "tabby recoloured"),
        ("TABBY", "tabby recoloured"),
        ("tab", "tabby recoloured"),
        ("abby", ""),
        ("tabby cat", "tabby recoloured"),
        ("cat tabby", "tabby recoloured"),
        ("n02123045", "tabby recoloured"),
        ("n0144", "tench content"),
        ("tinca", "tench content"),
        # Attack: name, description, paper
        ("cadv", "recoloured"),
        ("recolours", "recoloured"),
        ("hue", "recoloured"),
        ("imperceptible big", "recoloured"),
        ("content-based", "content"),
        ("α", "content"),
        # Target model
        ("resnet", "recoloured"),
        ("resnet-50", "recoloured"),
        ("ResNet50", "recoloured"),
        # File name and attribution
        ("ilsvrc2012", "tabby"),
        ("00000293", "tabby"),
        ("293", ""),
        ("val jpeg", "tabby"),
        ("fish-1.5", "tench"),
        ("adv/1.png", "recoloured"),
        ("webp", "content"),
        ("zoë", "tabby"),
        ("o'brien", "tabby"),
        ("50%", "recoloured"),
        ("off_season", "recoloured"),
        # All words must be found, each wherever it is
        ("tabby resnet", "recoloured"),
        ("tabby png recolours 50", "recoloured"),
        ("tench", "tench content"),
        ("tench aca", "content"),
        ("tench cadv", ""),
        ("nothing", ""),
        # No operators, no patterns
        ("tabby | tench", ""),
        ("tabby & resnet", "recoloured"),
        ("!tabby", "tabby recoloured"),
        ("tabby:*", "tabby recoloured"),
        ("t_bby", ""),
        ("%", ""),
        ("' \\ (", ""),
    ],
)
def test_a_question(images, question, names):
    assert listed(APIClient(), search=question) == ids(*(images[name] for name in names.split()))


def test_many_images_that_say_a_word(images, monkeypatch):
    """Of what many images say, PostgreSQL is asked in another way; the answer is the same."""
    monkeypatch.setattr(search, "OFTEN_SAID", -1)
    assert listed(APIClient(), search="tench") == ids(images["tench"], images["content"])
    assert listed(APIClient(), search="tench webp") == ids(images["content"])
    # Also where the question is a part of another query.
    seen = visible_images(user("root", is_superuser=True))
    found = search.search_images(seen, "ilsvrc2012")
    assert set(seen.filter(modified_versions__isnull=False, pk__in=found.values("pk"))) == {images["tabby"]}


def test_together_with_other_filters(images):
    assert listed(APIClient(), search="tabby", kind="clean") == ids(images["tabby"])
    assert listed(APIClient(), search="tabby", attack="cadv", min_confidence=0.5) == set()


def test_hidden_images_are_not_found(images):
    images["tabby"].visibility = "private"
    images["tabby"].save()
    assert listed(APIClient(), search="ilsvrc2012") == set()


def test_words():
    assert words_of("ILSVRC2012_val_00000293.JPEG  val") == ["ilsvrc2012", "val", "00000293", "jpeg"]
    assert words_of(" -- _ ") == []
