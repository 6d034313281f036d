"""Collections: made, filled, copied, frozen, compared; and what their manifest says."""

import hashlib
import io
import json

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from imagedb import terms
from imagedb.collection_manifest import KEYS, differing_lines, manifest_line
from imagedb.models import CollectionVersion, CurationLogEntry, Image, Prediction, TermsAcceptance, Visibility
from imagedb.selectors import collections as selectors
from imagedb.services import collections as services
from imagedb.services.collections import CollectionError
from tests import factories
from tests.imagedb import catalogue

pytestmark = pytest.mark.django_db

LICENSED = {"licence": "CC BY 4.0", "attribution": "Ada L."}


@pytest.fixture
def curator():
    user = User.objects.create_user("curator", first_name="Ada", last_name="Lovelace", is_staff=True)
    user.user_permissions.add(
        *Permission.objects.filter(
            content_type__app_label="imagedb",
            codename__in=["change_collectionversion", "view_image", "view_collection"],
        )
    )
    return User.objects.get(pk=user.pk)


def made_by(curator, **fields):
    return services.create_collection(curator, **{"name": "ImageNet S-R50-N", "slug": "s-r50-n", **fields})


def ready(curator, *images, **fields):
    """A draft that can be frozen."""
    draft = made_by(curator, **fields)
    services.change_draft(draft, licence="CC BY 4.0", citation="Somebody, 2026")
    services.add_images(draft, Image.objects.filter(pk__in=[image.pk for image in images]), "All.", curator)
    draft.refresh_from_db()
    return draft


def stored_manifest(version):
    with version.manifest.open("rb") as file:
        return file.read()


# --- The life of a version ------------------------------------------------------------------------------------


def test_a_collection_begins_with_an_empty_draft(curator):
    draft = made_by(curator, visibility=Visibility.REGISTERED)
    assert (draft.version, draft.is_frozen, draft.memberships.count()) == ("1.0", False, 0)
    assert (draft.collection.created_by, draft.collection.visibility) == (curator, "registered")


@pytest.mark.parametrize("name", ["", " ", "1/0", "a b", ".1", "1" * 21, "é"])
def test_a_version_is_named_so_that_it_can_be_part_of_an_address(curator, name):
    with pytest.raises(CollectionError, match="cannot be a version"):
        services.change_draft(made_by(curator), version=name)


@pytest.mark.parametrize(
    ("newest", "following"), [("1.0", "1.1"), ("1.9", "1.10"), ("3", "4"), ("2026-07", "2026-8"), ("first", "first.1")]
)
def test_versions_are_counted_up(curator, newest, following):
    draft = services.change_draft(made_by(curator), version=newest)
    assert services.new_version(draft.collection).version == following


def test_a_new_version_begins_as_the_one_before(curator):
    images = [factories.clean_image(**LICENSED) for _ in range(3)]
    old = services.freeze(ready(curator, *images), curator)
    new = services.new_version(old.collection)
    assert (new.version, new.licence, new.citation, new.doi) == ("1.1", old.licence, old.citation, "")
    assert set(new.images.all()) == set(images)
    assert not new.curation_log.exists()
    services.remove_images(new, Image.objects.filter(pk=images[0].pk), "Blurred.", curator)
    assert (old.memberships.count(), new.memberships.count()) == (3, 2)
    again = services.new_version(old.collection, "2.0", copy_from=old)
    assert again.memberships.count() == 3
    with pytest.raises(CollectionError, match=r"has a version 2\.0 already"):
        services.new_version(old.collection, "2.0")
    with pytest.raises(CollectionError, match="is not a version of"):
        services.new_version(catalogue.collection(), copy_from=old)


def test_a_draft_can_be_thrown_away_but_not_a_frozen_version(curator):
    draft = ready(curator, factories.clean_image(**LICENSED))
    services.delete_draft(services.new_version(draft.collection))
    assert list(draft.collection.versions.all()) == [draft]
    frozen = services.freeze(draft, curator)
    for change in (
        lambda: services.delete_draft(frozen),
        lambda: services.change_draft(frozen, doi="10.5281/zenodo.1"),
        lambda: services.freeze(frozen, curator),
        lambda: services.add_images(frozen, Image.objects.all(), "More.", curator),
        lambda: services.remove_images(frozen, Image.objects.all(), "Fewer.", curator),
    ):
        with pytest.raises(CollectionError, match="is frozen and never changes"):
            change()


def test_freezing_asks_for_what_is_missing_and_leaves_nothing_behind(curator):
    draft = made_by(curator)
    with pytest.raises(CollectionError, match=r"no images.*no licence.*how to cite"):
        services.freeze(draft, curator)
    fine, without = factories.clean_image(**LICENSED), factories.clean_image(licence="")
    services.add_images(draft, Image.objects.all(), "All.", curator)
    services.change_draft(draft, licence="CC0", citation="Somebody")
    with pytest.raises(
        CollectionError, match=f"1 of its images have no licence of their own: {without.original_filename}"
    ):
        services.freeze(draft, curator)
    Image.objects.filter(pk=without.pk).update(licence="CC0")
    Image.objects.filter(pk=fine.pk).update(visibility=Visibility.PRIVATE)
    with pytest.raises(CollectionError, match=f"are private, .* {fine.original_filename}"):
        services.freeze(draft, curator)
    draft.refresh_from_db()
    assert (draft.is_frozen, draft.manifest.name) == (False, "")


def test_a_manifest_that_cannot_be_kept_freezes_nothing(curator, monkeypatch):
    draft = ready(curator, factories.clean_image(**LICENSED))
    storage = draft.manifest.storage
    kept = []

    def fail(self, *args, **kwargs):
        kept.append(str(self.manifest.name))
        assert storage.exists(kept[0])
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(CollectionVersion, "save", fail)
        with pytest.raises(OSError, match="disk full"):
            services.freeze(draft, curator)
    assert kept
    assert not storage.exists(kept[0])
    draft.refresh_from_db()
    assert not draft.is_frozen


# --- The manifest ---------------------------------------------------------------------------------------------


def test_a_manifest_says_everything_in_one_form(curator):
    model = factories.target_model(slug="resnet-50")
    source = factories.clean_image(original_filename='Häuser, "blau".png', licence="CC0", attribution="Ö")
    modified = factories.modified_image(
        source, attack=factories.attack(slug="snow"), target_model=factories.target_model(slug="vit"), **LICENSED
    )
    other = factories.clean_image(image_class=factories.image_class(3), **LICENSED)
    catalogue.predict(source, model, confidence=0.1 + 0.2)
    catalogue.predict(source, factories.target_model(), confidence=1)
    catalogue.predict(modified, modified.target_model, factories.image_class(4), confidence=None)
    frozen = services.freeze(ready(curator, source, modified, other, target_model=model), curator)
    content = stored_manifest(frozen)
    assert hashlib.sha256(content).hexdigest() == frozen.manifest_sha256
    assert (frozen.image_count, frozen.frozen_by) == (3, curator)
    lines = content.decode().splitlines(keepends=True)
    assert [json.loads(line)["id"] for line in lines] == sorted(
        str(image.public_id) for image in (source, modified, other)
    )
    by_id = {json.loads(line)["id"]: line for line in lines}
    assert by_id[str(source.public_id)] == (
        f'{{"attack":null,"attribution":"Ö","bytes":{source.original_bytes},"class_index":281,'
        f'"confidence":0.30000000000000004,"filename":"Häuser, \\"blau\\".png","id":"{source.public_id}",'
        '"kind":"clean","licence":"CC0","predicted_class_index":281,'
        f'"sha256":"{source.original_sha256}","source":null,"synset":"n02123045","target_model":"resnet-50"}}\n'
    )
    said = json.loads(by_id[str(modified.public_id)])
    assert set(said) == set(KEYS)
    assert (said["source"], said["attack"], said["target_model"]) == (str(source.public_id), "snow", "vit")
    assert (said["predicted_class_index"], said["confidence"]) == (4, None)
    unasked = json.loads(by_id[str(other.public_id)])
    assert (unasked["class_index"], unasked["target_model"], unasked["predicted_class_index"]) == (3, None, None)


def test_the_digest_can_be_recomputed_whatever_the_order_of_adding(curator):
    images = [factories.clean_image(**LICENSED) for _ in range(3)]
    frozen = services.freeze(ready(curator, *images), curator)
    other = services.freeze(ready(curator, *reversed(images), name="Other", slug="other"), curator)
    assert frozen.manifest_sha256 == other.manifest_sha256 == services.recompute_manifest(frozen).sha256


def test_a_line_of_a_manifest_has_its_keys_and_real_numbers():
    facts = dict.fromkeys(KEYS)
    with pytest.raises(ValueError, match="keys"):
        manifest_line({**facts, "colour": "red"})
    with pytest.raises(ValueError, match="JSON"):
        manifest_line({**facts, "confidence": float("nan")})


def test_differences_between_manifests_are_told_image_by_image():
    def line(image_id, **facts):
        return manifest_line({**dict.fromkeys(KEYS), "id": image_id, **facts})

    before = [line("a"), line("b", bytes=0), line("d")]
    after = [line("b", bytes=1), line("c"), line("d")]
    assert list(differing_lines(before, after)) == [
        "a: in the stored manifest, but not in the database's version",
        "b: bytes is 1, was 0",
        "c: in the database's version, but not in the stored manifest",
    ]
    assert next(differing_lines([b"nonsense\n"], [])).startswith("not a line of a manifest")
    spaced = json.dumps(json.loads(line("a"))).encode()
    assert list(differing_lines([spaced], [line("a")])) == ["a: the same facts in another form"]


def verified(*arguments):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("verify_collection", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        return f"{err.getvalue()}{error}", error.returncode
    return out.getvalue(), 0


def test_the_command_says_equal(curator):
    frozen = services.freeze(ready(curator, factories.clean_image(**LICENSED)), curator)
    words, status = verified("s-r50-n", "1.0")
    assert status == 0
    assert f"ImageNet S-R50-N 1.0: equal. 1 images, SHA-256 of the manifest {frozen.manifest_sha256}" in words


def test_the_command_says_where_a_version_differs(curator, monkeypatch):
    image = factories.clean_image(**LICENSED)
    frozen = services.freeze(ready(curator, image), curator)
    frozen.manifest.storage.open(frozen.manifest.name, "wb").close()
    words, status = verified("s-r50-n", "1.0")
    assert status == 1
    assert f"{image.public_id}: in the database's version" in words
    assert "the stored manifest file has the digest e3b0c442" in words
    assert "the database gives" not in words
    frozen.manifest.storage.delete(frozen.manifest.name)
    words, status = verified("s-r50-n", "1.0")
    assert (status, "the storage has lost the manifest file" in words) == (1, True)


def test_the_command_tells_what_cannot_be_compared(curator):
    made_by(curator)
    assert verified("s-r50-n", "1.0") == ("ImageNet S-R50-N 1.0 is a draft: it has no digest until it is frozen.", 1)
    assert "has no version 9. Its versions: 1.0." in verified("s-r50-n", "9")[0]
    assert "there is no such collection" in verified("none", "9")[0]


# --- Who sees what --------------------------------------------------------------------------------------------


def test_collections_are_seen_as_images_are(curator):
    member, stranger, registered, admin = (catalogue.account(name) for name in ("member", "stranger", "reg", "admin"))
    admin.is_superuser = True
    group = Group.objects.create(name="Lab")
    member.groups.add(group)
    TermsAcceptance.objects.create(user=registered, version=terms.CURRENT_VERSION)
    of = {
        "public": catalogue.collection(visibility="public"),
        "registered": catalogue.collection(visibility="registered"),
        "group": catalogue.collection(visibility="private", group=group),
        "own": catalogue.collection(visibility="private", created_by=stranger),
    }

    def seen(user):
        found = set(selectors.visible_collections(user))
        return {name for name, collection in of.items() if collection in found}

    assert seen(AnonymousUser()) == {"public"}
    assert seen(registered) == {"public", "registered"}
    assert seen(curator) == {"public", "registered"}
    assert seen(member) == {"public", "group"}
    assert seen(stranger) == {"public", "own"}
    assert seen(admin) == set(of)


def test_drafts_are_for_those_who_may_change_them(curator):
    frozen = services.freeze(ready(curator, factories.clean_image(**LICENSED)), curator)
    draft = services.new_version(frozen.collection)
    assert list(selectors.visible_versions(catalogue.account("reader"))) == [frozen]
    assert list(selectors.visible_versions(curator)) == [frozen, draft]


def test_counts_tell_how_much_of_a_version_one_sees(curator):
    hidden = factories.clean_image(visibility=Visibility.REGISTERED)
    modified = factories.modified_image(hidden, attack=factories.attack(), target_model=None)
    draft = catalogue.version(hidden, modified)
    assert selectors.version_counts(draft, catalogue.account("reader")) == selectors.VersionCounts(1, 1, visible=1)
    assert selectors.version_counts(draft, curator) == selectors.VersionCounts(1, 1, visible=2)
    assert selectors.with_total_count(CollectionVersion.objects.all()).get().total_count == 2


# --- What is different ----------------------------------------------------------------------------------------


def test_two_versions_are_compared_along_the_curation_log(curator):
    kept, removed, replaced, gone_twice = (factories.clean_image(**LICENSED) for _ in range(4))
    first, second, added = (factories.clean_image(**LICENSED) for _ in range(3))
    old = services.freeze(ready(curator, kept, removed, replaced, gone_twice), curator)
    middle = services.new_version(old.collection)
    services.replace_image(middle, replaced, first, "Blurred.", curator)
    services.remove_images(middle, Image.objects.filter(pk=removed.pk), "Offensive.", curator)
    new = services.new_version(old.collection)
    services.replace_image(new, first, second, "Better.", curator)
    services.add_images(new, Image.objects.filter(pk=added.pk), "Late.", curator)
    difference = selectors.diff_versions(old, new)
    assert difference.added == [str(added.public_id)]
    assert difference.removed == [str(removed.public_id)]
    assert difference.replaced == [
        selectors.Replacement(str(replaced.public_id), str(second.public_id), "replaced", "Blurred.; Better.")
    ]
    assert difference.unchanged_count == 2
    back = selectors.diff_versions(new, old)
    assert (len(back.added), len(back.removed), back.replaced) == (2, 2, [])
    same = selectors.diff_versions(old, old)
    assert (same.added, same.removed, same.replaced, same.unchanged_count) == ([], [], [], 4)


def test_the_database_holds_what_the_services_promise(curator):
    image = factories.clean_image(**LICENSED)
    services.freeze(ready(curator, image), curator)
    with pytest.raises(IntegrityError), transaction.atomic():
        Image.objects.filter(pk=image.pk).update(licence="CC0")
    assert CurationLogEntry.objects.get().decided_by == curator
    assert not Prediction.objects.exists()
