"""The gallery: filters, pages, and addresses that make no sense."""

import re
from importlib import import_module

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from imagedb.models import Visibility
from tests import factories
from tests.imagedb.api_clients import collection_with
from tests.imagedb.catalogue_pages import SEES, measured, pair_of_each_visibility, text_of, visitors

pytestmark = pytest.mark.django_db
GALLERY = reverse("imagedb:gallery")
IMAGE_LINK = re.compile(r'class="tile" href="/catalogue/images/([0-9a-f-]+)/"')


def page(client, status=200, **parameters):
    response = client.get(GALLERY, parameters)
    assert response.status_code == status
    return response.content.decode()


def shown(client, **parameters):
    return IMAGE_LINK.findall(page(client, **parameters))


def ids(*images):
    return [str(image.public_id) for image in images]


@pytest.fixture
def images():
    cadv = factories.attack(name="cAdv", slug="cadv", family="colour")
    aca = factories.attack(name="ACA", slug="aca", family="generative")
    resnet = factories.target_model(name="ResNet-50", slug="resnet")
    tabby, tench = factories.clean_image(), factories.clean_image(image_class=factories.image_class(0))
    first = measured(tabby, attack=cadv, target_model=resnet)
    second = measured(tench, attack=aca, target_model=None)
    collection_with("set", tabby, first)
    return {"tabby": tabby, "tench": tench, "first": first, "second": second}


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({}, "tabby tench first second"),
        ({"kind": "clean"}, "tabby tench"),
        ({"attack": "cadv"}, "first"),
        ({"family": "generative"}, "second"),
        ({"target_model": "resnet"}, "first"),
        ({"class_index": "0"}, "tench second"),
        ({"collection": "set"}, "tabby first"),
        ({"collection": "set", "kind": "clean"}, "tabby"),
        ({"search": "tench"}, "tench second"),
        ({"search": "cadv"}, "first"),
        ({"max_linf": "3"}, ""),
        ({"verified": "false"}, "tabby tench first second"),
    ],
)
def test_filters_are_those_of_the_api(client, images, parameters, names):
    expected = [images[name] for name in names.split()]
    assert shown(client, **parameters) == ids(*expected)
    text = text_of(page(client, **parameters))
    if expected:
        assert f"{len(expected)} image" in text
    else:
        assert "No image matches" in text


def test_the_form_shows_the_state_and_chips_take_it_back(client, images):
    content = page(client, attack="cadv", class_index="281", min_linf="2")
    assert '<option value="cadv" selected>cAdv</option>' in content
    assert '<option value="281" selected>tabby</option>' in content
    # What the form has no field for stays in force when it is sent again.
    assert '<input type="hidden" name="min_linf" value="2">' in content
    assert f'href="{GALLERY}?class_index=281&amp;min_linf=2"' in content
    assert "Min linf 2" in text_of(content)
    assert "<title>Images, cAdv, tabby, 2 – Scooter</title>" in content


def test_only_classes_with_images_are_offered(client, images):
    content = page(client)
    assert re.findall(r'<option value="(\d+)"', content) == ["0", "281"]


def test_empty_fields_of_the_form_leave_the_address(client, images):
    response = client.get(GALLERY, {"search": "", "attack": "cadv", "kind": " ", "class_index": ""})
    assert response.status_code == 302
    assert response["Location"] == f"{GALLERY}?attack=cadv"
    assert client.get(GALLERY, {"search": ""})["Location"] == GALLERY


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("modle=x", "modle = “x”: There is no such filter. Known: attack, class_index,"),
        ("kind=dirty", "kind = “dirty”: Select a valid choice"),
        ("attack=nope", "attack = “nope”: No attack has this slug."),
        ("class_index=1000", "class_index = “1000”"),
        ("class_index=cat", "class_index = “cat”: Enter a whole number."),
        ("source=17", "source = “17”"),
        ("collection=nope", "collection = “nope”: No collection has this slug."),
        ("version=1.0", "version = “1.0”: Say which collection's"),
        ("min_linf=9&max_linf=8", "min_linf = “9”: Greater than max_linf"),
        ("kind=clean&kind=modified", "kind = “clean, modified”: It is given more than once."),
        ("after=17", "after = “17”: That place in the list is not there"),
        ("before=9be30942-4bda-466b-a2d5-01b7048b24f9", "That place in the list is not there"),
        ("after=a&before=b", "after = “a”: That place"),
        ("search=" + "x" * 201, "at most 200 characters"),
        ("search=%00", "Null characters are not allowed."),
        ("attack=%00", "attack"),
        ("<script>=1", "<script> = “1”"),
    ],
)
def test_what_makes_no_sense_is_named_and_can_be_left_out(client, images, query, words):
    response = client.get(f"{GALLERY}?{query}")
    assert response.status_code == 400
    content = response.content.decode()
    text = text_of(content)
    assert "This address asks for something that does not exist" in text
    assert words in text
    assert "<script>=" not in content
    assert "Go on without it" in text
    assert not IMAGE_LINK.findall(content)


def test_pages_follow_one_another_and_show_each_image_once(client, monkeypatch):
    monkeypatch.setattr(import_module("imagedb.views.gallery"), "PAGE_SIZE", 3)
    images = [factories.clean_image() for _ in range(8)]
    factories.clean_image(visibility=Visibility.PRIVATE)

    def walk(address, rel):
        found = []
        while address:
            content = client.get(address).content.decode()
            found.append(IMAGE_LINK.findall(content))
            link = re.search(rf'<link rel="{rel}" href="([^"]+)"', content)
            address = link and link[1].replace("&amp;", "&")
        return found

    expected = ids(*images)
    assert walk(f"{GALLERY}?kind=clean", "next") == [expected[:3], expected[3:6], expected[6:]]
    assert walk(f"{GALLERY}?kind=clean&after={images[5].public_id}", "prev") == [
        expected[6:], expected[3:6], expected[:3]
    ]  # fmt: skip
    # What is added meanwhile changes no page but the last.
    factories.clean_image()
    assert shown(client, kind="clean", after=expected[2]) == expected[3:6]


def test_a_place_that_is_not_open_to_the_visitor_is_no_place(client):
    private = factories.clean_image(visibility=Visibility.PRIVATE)
    assert "That place in the list is not there" in page(client, status=400, after=str(private.public_id))


def test_each_visitor_sees_what_its_account_opens_and_no_gaps():
    pairs = pair_of_each_visibility(factories.attack(slug="cadv"), factories.target_model())
    for name, client in visitors().items():
        expected = [image for visibility, pair in pairs.items() if visibility in SEES[name] for image in pair]
        assert shown(client) == ids(*sorted(expected, key=lambda image: image.pk)), name
        text = text_of(page(client, attack="cadv"))
        assert f"{len(expected) // 2} image" in text
        # Registered images are promised to those who have not accepted the terms; private ones are never spoken of.
        promised = "1 more image after accepting the ImageNet terms" in text
        assert promised == (name in {"anonymous", "without terms", "member", "staff"}), name
        assert "2 more" not in text


def test_leads_to_where_the_terms_are_accepted(client, django_user_model):
    factories.clean_image(visibility=Visibility.REGISTERED)
    content = page(client, kind="clean")
    assert f'href="{reverse("log-in")}?next=/catalogue/%3Fkind%3Dclean"' in content
    assert "No image matches" in text_of(content)
    client.force_login(django_user_model.objects.create_user("plain"))
    assert f'href="{reverse("accept-terms")}?next=/catalogue/%3Fkind%3Dclean"' in page(client, kind="clean")


def test_an_empty_catalogue_explains_itself(client):
    assert "No images to show yet" in text_of(page(client))


def test_downloads_are_of_exactly_these_images(client, images):
    content = page(client, attack="cadv", kind="modified")
    for path, options in (("image-archive", "archive_type=zip"), ("image-list", "format=csv")):
        [address] = re.findall(rf'href="({reverse(path)}\?[^"]*{options}[^"]*)"', content)
        answer = client.get(address.replace("&amp;", "&"))
        assert answer.status_code == 200
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert images["first"].original_sha256.encode() in body
        assert images["second"].original_sha256.encode() not in body


def test_queries_do_not_grow_with_the_images(client):
    attack, model = factories.attack(), factories.target_model()

    def queries():
        with CaptureQueriesContext(connection) as found:
            page(client)
        return len(found)

    for _ in range(2):
        measured(attack=attack, target_model=model)
    queries()
    few = queries()
    for _ in range(20):
        measured(attack=attack, target_model=model)
    assert queries() == few
