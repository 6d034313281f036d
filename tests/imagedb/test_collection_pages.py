"""The pages of collections and their versions, made by the services that researchers use."""

import hashlib

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from imagedb.models import Image, Visibility
from imagedb.services import collections as services
from tests import factories
from tests.imagedb.api_clients import user
from tests.imagedb.catalogue_pages import measured, text_of, visitors

pytestmark = pytest.mark.django_db
COLLECTIONS = reverse("imagedb:collections")


def version_address(version) -> str:
    return reverse("imagedb:collection-version", args=[version.collection.slug, version.version])


def get(client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def curator():
    return user("curator", is_superuser=True, is_staff=True, first_name="Ada", last_name="Lovelace")


@pytest.fixture
def images():
    attack, model = factories.attack(name="cAdv", slug="cadv"), factories.target_model(name="ResNet-50", slug="resnet")
    licence = {"licence": "CC0 1.0"}
    clean = [factories.clean_image(**licence) for _ in range(3)]
    registered = factories.clean_image(
        visibility=Visibility.REGISTERED, image_class=factories.image_class(0), **licence
    )
    return [*clean, registered, *[measured(image, attack=attack, target_model=model, **licence) for image in clean]]


@pytest.fixture
def first(curator, images):
    draft = services.create_collection(curator, name="ImageNet S", slug="imagenet-s", description="Sound images.")
    chosen = Image.objects.filter(pk__in=[image.pk for image in images])
    services.add_images(draft, chosen, "All that are sound.", curator)
    return finish(draft, curator, "First version.")


def finish(draft, curator, changelog):
    described = services.change_draft(
        draft, licence="CC BY 4.0", citation="Lovelace (2026)", doi="10.5281/zenodo.1234567", changelog=changelog
    )
    return services.freeze(described, curator)


@pytest.fixture
def second(first, curator, images):
    draft = services.new_version(first.collection)
    unwanted = Image.objects.filter(pk__in=[images[4].pk, images[5].pk])
    services.remove_images(draft, unwanted, "Too dark.", curator)
    return finish(draft, curator, "Without two dark ones.")


def test_the_list_shows_each_collection_with_its_newest_frozen_version(client, second, curator):
    services.new_version(second.collection, "2.0")
    services.create_collection(curator, name="Nothing frozen", slug="empty")
    services.create_collection(curator, name="Ours alone", slug="ours", visibility=Visibility.PRIVATE)
    text = text_of(get(client, COLLECTIONS))
    assert "ImageNet S 1.1 Frozen Sound images. 5 images · CC BY 4.0" in text
    assert "Nothing frozen No version is frozen yet." in text
    assert "2.0" not in text
    assert "Ours alone" not in text


def test_no_collections(client):
    assert "No collections yet" in text_of(get(client, COLLECTIONS))


def test_a_collection_lists_its_versions_newest_first(client, second, curator):
    services.new_version(second.collection)
    address = reverse("imagedb:collection", args=["imagenet-s"])
    content = get(client, address)
    text = text_of(content)
    assert text.index("1.1 Frozen") < text.index("1.0 Frozen")
    assert "Without two dark ones." in text
    assert "Draft" not in text
    assert f'href="{version_address(second)}">Version 1.1: facts and downloads' in content
    client.force_login(curator)
    assert "1.2 Draft: it may change" in text_of(get(client, address))


def test_a_version_says_all_there_is(client, second, images):
    content = get(client, version_address(second))
    text = text_of(content)
    for words in (
        "ImageNet S 1.1 Frozen Sound images.",
        "Images 5 State Frozen on",
        "It never changes.",
        "Licence CC BY 4.0",
        "Changelog Without two dark ones.",
        "Lovelace (2026)",
        "Clean 4",
        "cAdv against ResNet-50 1",
        "2 classes of ImageNet-1k, each with 1 to 4 images.",
        second.manifest_sha256,
        "sha256sum imagenet-s-1.1-manifest.jsonl",
        "What changed since 1.0 Added 0 Removed 2 Replaced or cropped 0 Unchanged 5",
        "Too dark. Ada Lovelace",
        "4 images ,",
        "1 more image after accepting the ImageNet terms",
    ):
        assert words in text, words
    for target in (
        "https://doi.org/10.5281/zenodo.1234567",
        reverse("attack", args=["cadv"]),
        reverse("collection-version-manifest", args=["imagenet-s", "1.1"]),
        reverse("collection-version-archive", args=["imagenet-s", "1.1"]) + "?archive_type=webdataset",
        reverse("imagedb:gallery") + "?collection=imagenet-s&amp;version=1.1",
        reverse("imagedb:image", args=[images[4].public_id]),
    ):
        assert f'href="{target}"' in content, target


def test_the_digest_is_that_of_what_the_page_offers(client, first):
    content = get(client, version_address(first))
    manifest = client.get(reverse("collection-version-manifest", args=["imagenet-s", "1.0"]))
    digest = hashlib.sha256(b"".join(manifest.streaming_content)).hexdigest()
    assert digest == first.manifest_sha256
    assert f'id="digest">{digest}<' in content


def test_the_first_version_has_nothing_to_be_compared_with(client, first):
    text = text_of(get(client, version_address(first)))
    assert "What changed since" not in text
    assert "Added 7 images All that are sound. Ada Lovelace" in text


def test_an_image_that_the_log_names_is_linked_only_for_who_may_see_it(client, second, images):
    Image.objects.filter(pk=images[4].pk).update(visibility=Visibility.PRIVATE)
    content = get(client, version_address(second))
    assert images[4].original_filename in content
    assert str(images[4].public_id) not in content
    assert str(images[5].public_id) in content


def test_drafts_are_for_those_who_may_change_them(client, first, curator):
    draft = services.new_version(first.collection)
    assert client.get(version_address(draft)).status_code == 404
    client.force_login(curator)
    text = text_of(get(client, version_address(draft)))
    assert "A draft, which may change: do not cite it." in text
    assert "How to check it" not in text
    assert "Manifest" not in text


def test_an_empty_draft(client, curator):
    draft = services.create_collection(curator, name="Empty", slug="empty")
    client.force_login(curator)
    text = text_of(get(client, version_address(draft)))
    assert "It has no images yet." in text
    assert "There are no images to show." in text
    assert "Nothing was added, cropped, replaced or removed by hand." in text


def test_each_visitor_knows_of_what_its_account_opens(curator, images):
    lab = Group.objects.get_or_create(name="lab")[0]
    for visibility in Visibility.values:
        group = lab if visibility == Visibility.PRIVATE else None
        draft = services.create_collection(
            curator, name=visibility, slug=visibility, visibility=visibility, group=group
        )
        services.add_images(draft, Image.objects.filter(visibility="public"), "All.", curator)
        finish(draft, curator, "")
    sees = {
        "anonymous": {"public"},
        "without terms": {"public"},
        "with terms": {"public", "registered"},
        "member": {"public", "private"},
        "staff": {"public"},
        "superuser": {"public", "registered", "private"},
    }
    for name, client in visitors().items():
        listed = get(client, COLLECTIONS)
        for visibility in Visibility.values:
            known = visibility in sees[name]
            addresses = [
                reverse("imagedb:collection", args=[visibility]),
                reverse("imagedb:collection-version", args=[visibility, "1.0"]),
            ]
            assert [client.get(address).status_code for address in addresses] == [200 if known else 404] * 2, name
            assert (f'href="{addresses[0]}"' in listed) == known


def test_staff_who_may_view_collections_need_not_accept_terms(client, first):
    first.collection.visibility = Visibility.REGISTERED
    first.collection.save()
    staff = user("staff", is_staff=True)
    client.force_login(staff)
    assert client.get(version_address(first)).status_code == 404
    staff.user_permissions.set(Permission.objects.filter(codename="view_collection"))
    assert client.get(version_address(first)).status_code == 200


def test_a_long_log_is_shown_in_part(client, curator, first, images):
    draft = services.new_version(first.collection)
    for number in range(101):
        services.remove_images(draft, Image.objects.filter(pk=images[4].pk), f"Reason {number}.", curator)
        services.add_images(draft, Image.objects.filter(pk=images[4].pk), f"Back {number}.", curator)
    content = get(client_of(client, curator), version_address(draft))
    assert "The first 100 of 202 entries" in text_of(content)
    assert reverse("collection-version-curation-log", args=["imagenet-s", "1.1"]) in content


def client_of(client, account):
    client.force_login(account)
    return client


def test_queries_do_not_grow_with_images(client, curator):
    licence = {"licence": "CC0 1.0"}
    attack = factories.attack()

    def queries(slug, count):
        draft = services.create_collection(curator, name=slug, slug=slug)
        for _ in range(count):
            measured(factories.clean_image(**licence), attack=attack, target_model=None, **licence)
        services.add_images(draft, Image.objects.all(), "All.", curator)
        version = finish(draft, curator, "")
        with CaptureQueriesContext(connection) as found:
            get(client, version_address(version))
        return len(found)

    assert queries("few", 2) == queries("many", 20)
