"""Collections over the API: what is told, to whom, and in which form."""

import hashlib
import json

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from rest_framework.test import APIClient

from imagedb.models import CurationLogEntry, Image, Visibility
from imagedb.services import collections as services
from tests import factories
from tests.imagedb import api_clients, catalogue

pytestmark = pytest.mark.django_db

COLLECTIONS = "/api/v1/collections/"
VERSIONS = f"{COLLECTIONS}s-r50-n/versions/"


@pytest.fixture
def curator():
    return api_clients.user("curator", first_name="Ada", last_name="Lovelace", is_staff=True, is_superuser=True)


@pytest.fixture
def frozen(curator):
    """Version 1.0 of a public collection, with a clean and a modified image."""
    clean = factories.clean_image(licence="CC0", image_class=factories.image_class(3))
    modified = factories.modified_image(
        clean, attack=factories.attack(), target_model=None, licence="CC0", visibility=Visibility.REGISTERED
    )
    draft = services.create_collection(
        curator,
        name="ImageNet S-R50-N",
        slug="s-r50-n",
        target_model=factories.target_model(slug="resnet-50"),
        description="Sharp and small.",
    )
    services.change_draft(
        draft, licence="CC BY 4.0", citation="@misc{a}", doi="10.5281/zenodo.1", changelog="The first."
    )
    services.add_images(draft, Image.objects.filter(pk__in=[clean.pk, modified.pk]), "All there is.", curator)
    return services.freeze(draft, curator)


def get(address, client=None, **parameters):
    response = (client or APIClient()).get(address, parameters)
    assert response.status_code == 200, response.content
    return response.json()


def test_collections_are_listed_with_their_versions(frozen, curator):
    catalogue.collection(visibility=Visibility.PRIVATE)
    services.new_version(frozen.collection)
    (row,) = get(COLLECTIONS)["results"]
    assert (row["slug"], row["name"], row["target_model"]) == ("s-r50-n", "ImageNet S-R50-N", "resnet-50")
    (version,) = row["versions"]
    assert (version["version"], version["image_count"]) == ("1.0", 2)
    assert version["url"] == f"http://testserver{VERSIONS}1.0/"
    assert get(f"{COLLECTIONS}s-r50-n/") == row
    seen_by_curator = get(f"{COLLECTIONS}s-r50-n/", api_clients.with_token(curator))
    assert [(one["version"], one["frozen_at"] is None) for one in seen_by_curator["versions"]] == [
        ("1.0", False),
        ("1.1", True),
    ]


def test_a_version_tells_all_that_one_must_know_to_cite_it(frozen, curator):
    said = get(f"{VERSIONS}1.0/")
    assert (
        said.items()
        >= {
            "collection": "s-r50-n",
            "version": "1.0",
            "is_frozen": True,
            "licence": "CC BY 4.0",
            "citation": "@misc{a}",
            "doi": "10.5281/zenodo.1",
            "changelog": "The first.",
            "manifest_sha256": frozen.manifest_sha256,
            "image_count": 2,
            "clean_count": 1,
            "modified_count": 1,
            "visible_count": 1,
            "curation_log_count": 1,
        }.items()
    )
    (entry,) = said["curation_log"]
    assert (entry["action"], entry["count"], entry["image"], entry["replacement"]) == ("added", 2, None, None)
    assert (entry["reason"], entry["decided_by"]) == ("All there is.", "Ada Lovelace")
    assert get(f"{VERSIONS}1.0/", api_clients.with_token(curator))["visible_count"] == 2
    (row,) = get(VERSIONS)["results"]
    assert row == {name: said[name] for name in row}


def test_drafts_are_for_those_who_may_change_them(frozen, curator):
    services.new_version(frozen.collection)
    reader = api_clients.with_token(api_clients.user("reader", accepted_terms=True))
    for address in ("1.1/", "1.1/manifest/", "1.1/diff/", "1.1/curation-log/"):
        assert reader.get(f"{VERSIONS}{address}").status_code == 404
    assert [row["version"] for row in get(VERSIONS, reader)["results"]] == ["1.0"]
    client = api_clients.with_token(curator)
    assert get(f"{VERSIONS}1.1/", client)["manifest"] is None
    answer = client.get(f"{VERSIONS}1.1/manifest/")
    assert (answer.status_code, "is a draft" in answer.json()["detail"]) == (404, True)


def test_a_hidden_collection_is_not_there(frozen):
    hidden = catalogue.collection(visibility=Visibility.REGISTERED)
    catalogue.version(of=hidden)
    for address in (
        f"{COLLECTIONS}{hidden.slug}/",
        f"{COLLECTIONS}{hidden.slug}/versions/",
        f"{COLLECTIONS}none/versions/",
    ):
        assert APIClient().get(address).status_code == 404
    assert APIClient().get(f"{VERSIONS}9/").status_code == 404


# --- The manifest ---------------------------------------------------------------------------------------------


def test_the_manifest_is_sent_as_it_was_frozen(frozen):
    response = APIClient().get(f"{VERSIONS}1.0/manifest/")
    content = api_clients.body(response)
    assert hashlib.sha256(content).hexdigest() == frozen.manifest_sha256
    assert {json.loads(line)["kind"] for line in content.splitlines()} == {"clean", "modified"}
    assert response["Content-Type"] == "application/x-ndjson"
    assert response["ETag"] == f'"{frozen.manifest_sha256}"'
    assert 'attachment; filename="s-r50-n-1.0-manifest.jsonl"' in response["Content-Disposition"]
    assert "public" in response["Cache-Control"]


def test_a_manifest_that_one_has_is_not_sent_again_and_a_part_can_be_asked_for(frozen):
    client, address = APIClient(), f"{VERSIONS}1.0/manifest/"
    assert client.get(address, headers={"If-None-Match": f'"{frozen.manifest_sha256}"'}).status_code == 304
    part = client.get(address, headers={"Range": "bytes=0-9"})
    assert (part.status_code, len(api_clients.body(part))) == (206, 10)


# --- Log and differences --------------------------------------------------------------------------------------


def test_the_whole_log_comes_in_pages(frozen, curator):
    draft = services.new_version(frozen.collection)
    CurationLogEntry.objects.bulk_create(
        CurationLogEntry(version=draft, action="removed", image_filename=f"{n}.png", reason="Blurred.")
        for n in range(5)
    )
    client, address = api_clients.with_token(curator), f"{VERSIONS}1.1/curation-log/"
    names = []
    while address:
        page = get(address, client, **({} if "?" in address else {"page_size": 2}))
        names += [row["image_filename"] for row in page["results"]]
        address = page["next"]
    assert names == [f"{n}.png" for n in range(5)]
    assert page["results"][0]["decided_by"] is None


def test_two_versions_are_compared(frozen, curator):
    clean = frozen.images.get(kind="clean")
    instead = factories.clean_image(licence="CC0", image_class=factories.image_class(3))
    draft = services.new_version(frozen.collection)
    services.replace_image(draft, clean, instead, "Sharper.", curator)
    services.freeze(draft, curator)
    said = get(f"{VERSIONS}1.1/diff/")
    assert said == {
        "since": "1.0",
        "version": "1.1",
        "added_count": 0,
        "removed_count": 0,
        "replaced_count": 1,
        "unchanged_count": 1,
        "added": [],
        "removed": [],
        "replaced": [
            {
                "before": str(clean.public_id),
                "after": str(instead.public_id),
                "action": "replaced",
                "reason": "Sharper.",
            }
        ],
    }
    assert get(f"{VERSIONS}1.1/diff/", since="1.0") == said
    back = get(f"{VERSIONS}1.0/diff/", since="1.1")
    assert (back["added"], back["removed"]) == ([str(clean.public_id)], [str(instead.public_id)])


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "There is no earlier version. Known: 1.0."),
        ({"since": "9"}, "The collection has no version '9'. Known: 1.0."),
        ({"since": "\0"}, r"The collection has no version '\x00'. Known: 1.0."),
    ],
)
def test_a_version_that_is_not_there_cannot_be_compared_with(frozen, parameters, text):
    response = APIClient().get(f"{VERSIONS}1.0/diff/", parameters)
    assert (response.status_code, response.json()) == (400, {"since": [text]})


@pytest.mark.parametrize(
    "address", ["", "s-r50-n/", "s-r50-n/versions/", "s-r50-n/versions/1.0/", "s-r50-n/versions/1.0/manifest/"]
)
def test_unknown_parameters_are_named(frozen, address):
    response = APIClient().get(f"{COLLECTIONS}{address}", {"colour": "red"})
    assert response.status_code == 400
    assert set(response.json()) == {"colour"}


# --- Cost and schema ------------------------------------------------------------------------------------------


def test_queries_do_not_grow_with_what_is_listed(frozen, curator, django_assert_max_num_queries):
    def queries():
        counts = []
        for address in (COLLECTIONS, VERSIONS, f"{VERSIONS}1.0/"):
            with django_assert_max_num_queries(12) as captured:
                get(address)
            counts.append(len(captured))
        return counts

    few = queries()
    for number in range(3):
        services.freeze(services.new_version(frozen.collection), curator)
        catalogue.freeze_by_hand(catalogue.version(factories.clean_image(), version=f"{number}"))
    assert queries() == few


def test_the_schema_describes_it():
    schema = SchemaGenerator().get_schema(request=None, public=True)
    validate_schema(schema)
    paths = schema["paths"]
    version = f"{COLLECTIONS}{{slug}}/versions/{{version}}/"
    assert set(paths) >= {
        COLLECTIONS,
        f"{COLLECTIONS}{{slug}}/",
        f"{COLLECTIONS}{{slug}}/versions/",
        version,
        f"{version}manifest/",
        f"{version}curation-log/",
        f"{version}diff/",
    }
    manifest = paths[f"{version}manifest/"]["get"]
    assert set(manifest["responses"]) >= {"200", "206", "304", "400", "401", "404", "416"}
    diff = {parameter["name"] for parameter in paths[f"{version}diff/"]["get"]["parameters"]}
    assert diff == {"slug", "version", "since"}
    log = {parameter["name"] for parameter in paths[f"{version}curation-log/"]["get"]["parameters"]}
    assert log == {"slug", "version", "cursor", "page_size"}
