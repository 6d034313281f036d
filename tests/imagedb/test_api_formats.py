"""Lists as CSV and JSON lines: the same rows as in JSON."""

import csv
import io
import json
import re

import pytest
from rest_framework.test import APIClient

from imagedb.models import Prediction
from scooter_site.common.csv_text import cell
from tests import factories
from tests.imagedb.api_clients import IMAGES, collection_with

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return APIClient()


def table(response) -> list[dict[str, str]]:
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def lines(response) -> list[dict]:
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
    return [json.loads(line) for line in response.content.decode().splitlines()]


def next_page(response) -> str | None:
    found = re.search(r'<([^>]*)>; rel="next"', response.headers.get("Link", ""))
    return found[1] if found else None


@pytest.fixture
def image():
    attack, resnet = factories.attack(slug="cadv"), factories.target_model(slug="resnet")
    made = factories.modified_image(
        attack=attack,
        target_model=resnet,
        original_filename="=cmd|' /C calc'!A0",
        attribution="-5 people",
        comparison="same_size",
        linf=0,
        l2=0.0,
        ssim=-0.25,
    )
    Prediction.objects.create(image=made, target_model=resnet, predicted_class=factories.image_class(5), confidence=0.0)
    Prediction.objects.create(
        image=made, target_model=factories.target_model(slug="vit"), predicted_class=factories.image_class(281)
    )
    collection_with("set", made)
    return made


def test_an_image_as_a_line(client, image):
    row = table(client.get(IMAGES, {"format": "csv", "kind": "modified"}))[0]
    assert row == {
        "id": str(image.public_id),
        "kind": "modified",
        "class_index": "281",
        "class_synset": "n02123045",
        "class_name": "tabby",
        "source": str(image.source.public_id),
        "attack": "cadv",
        "target_model": "resnet",
        "predictions_target_model": "resnet;vit",
        "predictions_predicted_class_index": "5;281",
        "predictions_predicted_class_synset": "n01496331;n02123045",
        "predictions_predicted_class_name": "electric ray;tabby",
        "predictions_confidence": "0.0;",
        "verified": "true",
        "comparison": "same_size",
        "linf": "0",
        "l2": "0.0",
        "changed_share": "",
        "ssim": "-0.25",
        "ciede2000": "",
        "width": "64",
        "height": "48",
        "original_filename": "'=cmd|' /C calc'!A0",
        "original_sha256": image.original_sha256,
        "original_bytes": str(image.original_bytes),
        "original_format": "PNG",
        "original_mode": "RGB",
        "original_profile": "",
        "rendition_sha256": image.rendition_sha256,
        "rendition_bytes": str(image.rendition_bytes),
        "collections_collection": "set",
        "collections_version": "1.0",
        "visibility": "public",
        "licence": "",
        "attribution": "'-5 people",
        "is_demo": "false",
        "created_at": image.created_at.isoformat().replace("+00:00", "Z"),
        "file": f"http://testserver{IMAGES}{image.public_id}/file/",
        "thumbnail": f"http://testserver{IMAGES}{image.public_id}/thumbnail/",
    }


def test_json_lines_are_the_rows_of_the_json_list(client, image):
    rows = client.get(IMAGES).json()["results"]
    assert len(rows) == 2
    assert lines(client.get(IMAGES, {"format": "jsonl"})) == rows


@pytest.mark.parametrize("how", ["format", "accept"])
@pytest.mark.parametrize(("name", "media_type"), [("csv", "text/csv"), ("jsonl", "application/x-ndjson")])
def test_the_same_filters_and_pages(client, how, name, media_type):
    expected = [str(factories.clean_image().public_id) for _ in range(5)]
    factories.clean_image(image_class=factories.image_class(0))
    parameters = {"class_index": 281, "page_size": 2} | ({"format": name} if how == "format" else {})
    headers = {"Accept": media_type} if how == "accept" else {}
    response, seen = client.get(IMAGES, parameters, headers=headers), []
    pages = 1
    while True:
        seen += [row["id"] for row in (table(response) if name == "csv" else lines(response))]
        following = next_page(response)
        if following is None:
            break
        response, pages = client.get(following, headers=headers), pages + 1
    assert (seen, pages) == (expected, 3)
    assert 'rel="prev"' in response.headers["Link"]


def test_json_has_the_same_link(client):
    for _ in range(3):
        factories.clean_image()
    response = client.get(IMAGES, {"page_size": 2})
    assert next_page(response) == response.json()["next"]
    assert "Link" not in client.get(IMAGES).headers


def test_an_empty_list_has_a_header_and_no_rows(client):
    response = client.get(IMAGES, {"format": "csv"})
    assert response.content.decode().startswith("id,kind,class_index,")
    assert table(response) == []
    assert lines(client.get(IMAGES, {"format": "jsonl"})) == []


def test_attacks_target_models_and_classes(client):
    factories.attack(slug="cadv", parameters={"epsilon": -8}, year=2020, is_targeted=False, description="+1")
    factories.target_model(slug="vit", clean_accuracy=0.0)
    attack = table(client.get("/api/v1/attacks/?format=csv"))[0]
    assert (attack["parameters"], attack["year"], attack["is_targeted"], attack["threat_model"]) == (
        '{"epsilon": -8}',
        "2020",
        "false",
        "",
    )
    assert attack["description"] == "'+1"
    assert table(client.get("/api/v1/target-models/?format=csv"))[0]["clean_accuracy"] == "0.0"
    classes = table(client.get("/api/v1/classes/?format=csv&page_size=500"))
    assert [row["index"] for row in classes] == [str(number) for number in range(500)]
    assert lines(client.get("/api/v1/classes/?format=jsonl&page_size=1"))[0]["synset"] == "n01440764"


def test_collections_and_their_versions(client):
    collection_with("set", factories.clean_image(), versions=("1.0", "1.1"))
    address = "/api/v1/collections/"
    collection = table(client.get(f"{address}?format=csv"))[0]
    assert (collection["slug"], collection["target_model"], collection["versions_version"]) == ("set", "", "1.0;1.1")
    versions = client.get(f"{address}set/versions/").json()["results"]
    assert [version["image_count"] for version in versions] == [1, 1]
    assert lines(client.get(f"{address}set/versions/?format=jsonl")) == versions
    assert [row["manifest"] for row in table(client.get(f"{address}set/versions/?format=csv"))] == [
        f"http://testserver{address}set/versions/{version}/manifest/" for version in ("1.0", "1.1")
    ]


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_errors_are_json_in_every_format(client, name):
    response = client.get(IMAGES, {"format": name, "modle": "x"})
    assert (response.status_code, response.headers["Content-Type"]) == (400, "application/json")
    assert list(response.json()) == ["modle"]
    client.credentials(HTTP_AUTHORIZATION="Token wrong")
    response = client.get(IMAGES, {"format": name})
    assert (response.status_code, response.headers["Content-Type"]) == (401, "application/json")


@pytest.mark.parametrize("value", ["xml", "CSV", "api"])
def test_a_format_there_is_not_is_refused_by_name(client, value):
    response = client.get(IMAGES, {"format": value})
    assert response.status_code == 400
    assert response.json() == {"format": ["Unknown format. Known: json, csv, jsonl."]}


def test_only_lists_have_formats(client):
    image = factories.clean_image()
    for part in ("", "file/"):
        assert list(client.get(f"{IMAGES}{image.public_id}/{part}?format=csv").json()) == ["format"]


def test_a_type_there_is_not(client):
    response = client.get(IMAGES, headers={"Accept": "application/pdf"})
    assert (response.status_code, response.headers["Content-Type"]) == (406, "application/json")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-37, "-37"),
        (-0.5, "-0.5"),
        (1e-7, "1e-07"),
        (None, ""),
        (True, "true"),
        (False, "false"),
        ("", ""),
        ("tabby", "tabby"),
        ("-37", "'-37"),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("a=b", "a=b"),
        ([], ""),
        ([0.5, None, 0], "0.5;;0"),
        (["-a", "b"], "'-a;b"),
        ({}, ""),
        ({"é": -1}, '{"é": -1}'),
    ],
)
def test_cells(value, text):
    assert cell(value) == text


def test_numbers_survive_next_to_formulas():
    """A spreadsheet must get -100..100 as numbers although the texts beside them are neutralised."""
    assert [float(cell(number)) for number in range(-100, 101)] == list(range(-100, 101))
