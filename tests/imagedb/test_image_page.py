"""The page of one image."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from imagedb.models import CollectionVersion, Image, Prediction, Visibility
from tests import factories
from tests.imagedb.api_clients import body, collection_with, user
from tests.imagedb.catalogue_pages import SEES, measured, pair_of_each_visibility, text_of, visitors

pytestmark = pytest.mark.django_db


def address(image: Image) -> str:
    return reverse("imagedb:image", args=[image.public_id])


def get(client, image: Image) -> str:
    response = client.get(address(image))
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def attack():
    return factories.attack(name="cAdv", slug="cadv", bibtex="@inproceedings{cadv}")


@pytest.fixture
def model():
    return factories.target_model(name="ResNet-50", slug="resnet")


@pytest.fixture
def modified(attack, model):
    return measured(attack=attack, target_model=model, licence="CC BY 4.0", attribution="Somebody & Co.")


def test_says_all_there_is(client, modified, attack, model):
    other = factories.image_class(5)
    Prediction.objects.create(image=modified, target_model=model, predicted_class=other, confidence=0.875)
    vit = factories.target_model(name="ViT-B/16")
    Prediction.objects.create(image=modified, target_model=vit, predicted_class=modified.image_class)
    content = get(client, modified)
    text = text_of(content)
    for words in (
        "Modified by cAdv , against ResNet-50 .",
        f"ResNet-50 {other.name} wrong 87.5 %",
        f"ViT-B/16 {modified.image_class.name} right –",
        "L∞ of 255 levels 8",
        "L2 values 0 to 1 4.50",
        "Changed pixels share of all 75.0 %",
        "SSIM 1 is identical 0.981",
        "CIEDE2000 colour difference 1.25",
        "Pixel by pixel.",
        "281 · n02123045",
        modified.original_filename,
        "PNG, RGB",
        "64 × 48 pixels",
        modified.original_sha256,
        "CC BY 4.0",
        "Somebody & Co.",
        "@inproceedings{cadv}",
        f"image {modified.public_id}, SHA-256 {modified.original_sha256}.",
        f"http://testserver{address(modified)}",
    ):
        assert words in text, words
    for target in (
        reverse("attack", args=["cadv"]),
        reverse("target-model", args=["resnet"]),
        address(modified.source),
        reverse("image-file", args=[modified.public_id]),
        reverse("image-detail", args=[modified.public_id]),
        f"{reverse('imagedb:difference', args=[modified.public_id])}?factor=5",
    ):
        assert f'href="{target}"' in content, target


def test_of_a_clean_image_shows_what_was_made_from_it(client, modified):
    hidden = measured(modified.source, attack=factories.attack(), target_model=None, visibility=Visibility.PRIVATE)
    content = get(client, modified.source)
    assert "Modified versions of it" in text_of(content)
    assert address(modified) in content
    assert str(hidden.public_id) not in content
    assert "Distance from the clean image" not in content
    assert "/difference/" not in content


def test_of_a_modified_image_shows_what_else_was_made_from_its_source(client, modified):
    sibling = measured(modified.source, attack=factories.attack(name="ACA"), target_model=None)
    content = get(client, modified)
    assert "Other versions of the same image" in text_of(content)
    assert address(sibling) in content
    # Nobody is told that two images have one source that he may not see.
    Image.objects.filter(pk=modified.source_id).update(visibility=Visibility.PRIVATE)
    content = get(client, modified)
    assert "Other versions" not in content
    assert str(sibling.public_id) not in content


def test_many_relatives_are_shown_in_part_with_a_way_to_all(client, modified):
    for _ in range(13):
        measured(modified.source, attack=factories.attack(), target_model=None)
    content = get(client, modified.source)
    assert content.count('class="tile"') == 12
    assert f'href="{reverse("imagedb:gallery")}?source={modified.source.public_id}"' in content
    assert "All 14" in text_of(content)


def test_an_image_that_nobody_looked_at_yet(client, attack):
    image = factories.modified_image(attack=attack, target_model=None)
    text = text_of(get(client, image))
    assert "Modified by cAdv ." in text
    assert "the image is not verified against its victim" in text
    assert "Not measured." in text
    Image.objects.filter(pk=image.pk).update(comparison="not_comparable")
    assert "Not measured: the proportions differ." in text_of(get(client, image))
    assert "No answer of a target model is recorded." in text_of(get(client, image.source))


def test_collections_it_is_in_and_how_to_cite_them(client, modified):
    collection_with("open", modified, versions=("1.0", "1.1"))
    collection_with("hidden", modified, visibility=Visibility.PRIVATE)
    CollectionVersion.objects.create(collection=collection_with("drafts"), version="2.0").images.add(modified)
    content = get(client, modified)
    assert reverse("imagedb:collection-version", args=["open", "1.0"]) in content
    assert reverse("imagedb:collection-version", args=["open", "1.1"]) in content
    assert "hidden" not in text_of(content)
    assert reverse("imagedb:collection-version", args=["drafts", "2.0"]) not in content


def test_each_visitor_sees_what_its_account_opens(attack, model):
    pairs = pair_of_each_visibility(attack, model)
    for name, client in visitors().items():
        for visibility, pair in pairs.items():
            for image in pair:
                for route in ("image", "image-file", "thumbnail"):
                    response = client.get(reverse(f"imagedb:{route}", args=[image.public_id]))
                    body(response)
                    assert response.status_code == (200 if visibility in SEES[name] else 404), (name, visibility, route)


def test_a_source_that_the_terms_would_open_is_spoken_of_a_private_one_is_not(client, modified):
    Image.objects.filter(pk=modified.source_id).update(visibility=Visibility.REGISTERED)
    content = get(client, modified)
    assert "The clean image is open to accounts that have accepted the ImageNet terms" in text_of(content)
    assert str(modified.source.public_id) not in content
    client.force_login(user("registered", accepted_terms=True))
    assert str(modified.source.public_id) in get(client, modified)
    Image.objects.filter(pk=modified.source_id).update(visibility=Visibility.PRIVATE)
    content = get(client, modified)
    assert "The clean image" not in text_of(content)
    assert content.count('class="picture"') == 1


def test_what_links_to_the_page_show(client, modified):
    content = get(client, modified)
    assert f"<title>Modified image: {modified.image_class.name}, by cAdv – Scooter</title>" in content
    assert f'<link rel="canonical" href="http://testserver{address(modified)}">' in content
    assert f'<meta property="og:url" content="http://testserver{address(modified)}">' in content
    picture = reverse("imagedb:image-file", args=[modified.public_id])
    assert f'<meta property="og:image" content="http://testserver{picture}">' in content


def test_links_show_no_picture_that_is_not_public(client, modified):
    Image.objects.update(visibility=Visibility.REGISTERED)
    client.force_login(user("registered", accepted_terms=True))
    assert "og:image" not in get(client, modified)
    assert "Registered accounts only" in text_of(get(client, modified))


def test_names_are_text_never_markup(client, attack):
    image = measured(
        attack=attack, target_model=None, original_filename="<script>alert(1)</script>.png", attribution="<b>Me</b>"
    )
    content = get(client, image)
    assert "<script>alert" not in content
    assert "<b>Me" not in content


def test_queries_do_not_grow_with_relatives_predictions_and_collections(client, modified, model):
    def queries():
        with CaptureQueriesContext(connection) as found:
            get(client, modified.source)
        return len(found)

    queries()
    few = queries()
    for _ in range(15):
        measured(modified.source, attack=factories.attack(), target_model=model)
        Prediction.objects.create(
            image=modified.source, target_model=factories.target_model(), predicted_class=modified.image_class
        )
    for number in range(5):
        collection_with(f"set-{number}", modified.source, versions=("1.0", "1.1"))
    assert queries() == few


def test_no_image_no_page(client):
    assert client.get("/catalogue/images/00000000-0000-4000-8000-000000000000/").status_code == 404
    assert client.get("/catalogue/images/17/").status_code == 404
    assert re.search("There is nothing at this address", client.get("/catalogue/images/17/").content.decode())
