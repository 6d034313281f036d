"""Collections in the admin: made, described, curated, frozen."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse

from imagedb.models import Collection, CollectionVersion, CurationLogEntry, Image, Visibility
from imagedb.services import collections as services
from scooter_site.common.admin_tools import change_url
from tests import factories
from tests.imagedb import catalogue
from tests.imagedb.pages import text_of

pytestmark = pytest.mark.django_db

COLLECTIONS = reverse("admin:imagedb_collection_changelist")
ADD = reverse("admin:imagedb_collection_add")


def page(name, *numbers):
    return reverse(f"admin:imagedb_collectionversion_{name}", args=numbers)


def collection_fields(**values):
    return {
        "name": "ImageNet S-R50-N",
        "slug": "s-r50-n",
        "description": "Sharp.",
        "visibility": "public",
        "first_version": "1.0",
        "_save": "Save",
        **values,
    }


def version_fields(**values):
    return {
        "version": "1.0",
        "licence": "CC BY 4.0",
        "citation": "Somebody",
        "doi": "",
        "changelog": "",
        "_save": "1",
        **values,
    }


@pytest.fixture
def draft(researcher):
    """A draft with one clean image, ready to be frozen."""
    collection = catalogue.collection(name="Roofs", slug="roofs", created_by=researcher)
    return catalogue.version(factories.clean_image(licence="CC0", original_filename="roof.png"), of=collection)


# --- Collections ----------------------------------------------------------------------------------------------


def test_a_collection_is_made_with_its_first_draft(client, researcher):
    assert client.get(ADD).status_code == 200
    model = factories.target_model()
    answer = client.post(ADD, collection_fields(target_model=model.pk, min_confidence=0.5))
    collection = Collection.objects.get()
    assert answer.url == change_url(collection)
    assert (collection.created_by, collection.target_model, collection.min_confidence) == (researcher, model, 0.5)
    version = collection.versions.get()
    words = text_of(client.get(change_url(collection)))
    assert "1.0 Draft 0" in words
    assert client.get(change_url(version)).status_code == 200


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_confidence": 0.5}, "Say whose confidence the threshold is about."),
        ({"min_confidence": 50}, "less than or equal to 1"),
        ({"first_version": "1/0"}, "the version is part of its address"),
        ({"slug": "a b"}, "valid"),
    ],
)
def test_a_collection_that_makes_no_sense_is_refused(client, researcher, values, message):
    assert message in text_of(client.post(ADD, collection_fields(**values)))
    assert not Collection.objects.exists()


def test_only_collections_that_one_may_see_are_listed(client, researcher):
    catalogue.collection(name="Everybody's")
    catalogue.collection(name="Somebody's", visibility=Visibility.PRIVATE)
    words = text_of(client.get(COLLECTIONS))
    assert "Everybody's" in words
    assert "Somebody's" not in words


def test_a_threshold_that_images_do_not_meet_is_refused_with_the_reason(client, draft):
    model = factories.target_model()
    catalogue.predict(draft.images.get(), model, confidence=0.6)
    form = collection_fields(name="Roofs", slug="roofs", target_model=model.pk, min_confidence=0.7)
    answer = client.post(change_url(draft.collection), form, follow=True)
    assert "Nothing was changed. A clean image of a collection must be classified correctly" in text_of(answer)
    client.post(change_url(draft.collection), {**form, "min_confidence": 0.6})
    draft.collection.refresh_from_db()
    assert draft.collection.min_confidence == 0.6


def test_after_freezing_a_collection_keeps_its_name_and_terms(client, draft, researcher):
    services.freeze(draft, researcher)
    form = client.get(change_url(draft.collection)).context["adminform"].form
    assert set(form.fields) == {"description", "visibility", "group"}
    client.post(change_url(draft.collection), collection_fields(description="More words."))
    collection = Collection.objects.get()
    assert (collection.name, collection.description) == ("Roofs", "More words.")


def test_a_collection_with_private_images_is_not_opened(client, researcher):
    lab = Group.objects.create(name="Lab")
    researcher.groups.add(lab)
    collection = catalogue.collection(name="Roofs", slug="roofs", visibility="private", group=lab)
    image = factories.clean_image(visibility="private", group=lab, original_filename="secret.png", licence="CC0")
    services.freeze(catalogue.version(image, of=collection), researcher)
    for values in ({"visibility": "public", "group": lab.pk}, {"visibility": "private", "group": ""}):
        answer = client.post(change_url(collection), collection_fields(**values))
        assert "1 of its images are private" in text_of(answer)
    collection.refresh_from_db()
    assert (collection.visibility, collection.group) == ("private", lab)
    Image.objects.update(visibility="registered")
    client.post(change_url(collection), collection_fields(visibility="public", group=""))
    collection.refresh_from_db()
    assert (collection.visibility, collection.group) == ("public", None)


# --- Drafts ---------------------------------------------------------------------------------------------------


def test_a_draft_says_what_is_missing_before_it_can_be_frozen(client, researcher):
    draft = catalogue.version(licence="", citation="")
    words = text_of(client.get(change_url(draft)))
    for problem in ("It has no images.", "It has no licence.", "It does not say how to cite it."):
        assert problem in words
    assert page("freeze", draft.pk) not in client.get(change_url(draft)).content.decode()
    assert "cannot be frozen yet" in text_of(client.get(page("freeze", draft.pk)))
    client.post(page("freeze", draft.pk))
    draft.refresh_from_db()
    assert not draft.is_frozen


def test_a_draft_is_described(client, draft):
    client.post(
        change_url(draft), version_fields(version="1.1", doi="https://doi.org/10.5281/zenodo.1", changelog="New.")
    )
    draft.refresh_from_db()
    assert (draft.version, draft.doi, draft.changelog) == ("1.1", "10.5281/zenodo.1", "New.")
    assert "A DOI begins with 10." in text_of(client.post(change_url(draft), version_fields(doi="zenodo")))
    assert "part of its address" in text_of(client.post(change_url(draft), version_fields(version="1 0")))


def test_a_new_version_begins_as_the_one_before(client, draft):
    assert 'value="1.1"' in client.get(page("new", draft.pk)).content.decode()
    taken = client.post(page("new", draft.pk), {"version": "1.0"})
    assert "has a version 1.0 already" in text_of(taken)
    answer = client.post(page("new", draft.pk), {"version": "2.0"}, follow=True)
    assert "Roofs 2.0 is a draft with the images of 1.0." in text_of(answer)
    assert CollectionVersion.objects.get(version="2.0").images.count() == 1


def test_a_draft_can_be_deleted_and_takes_its_log_along(client, draft):
    CurationLogEntry.objects.create(version=draft, action="added", reason="To try.")
    delete = page("delete", draft.pk)
    assert client.get(delete).status_code == 200
    client.post(delete, {"post": "yes"})
    assert not CollectionVersion.objects.exists()
    assert Image.objects.exists()


# --- Freezing -------------------------------------------------------------------------------------------------


def test_freezing_is_asked_for_twice_and_says_that_it_is_for_ever(client, draft, researcher):
    question = text_of(client.get(page("freeze", draft.pk)))
    assert "Freeze Roofs 1.0 for ever?" in question
    assert "cannot be undone, by anybody" in question
    assert "no DOI" in question
    draft.refresh_from_db()
    assert not draft.is_frozen, "the question changes nothing"
    answer = text_of(client.post(page("freeze", draft.pk), follow=True))
    draft.refresh_from_db()
    assert draft.frozen_by == researcher
    assert f"Its digest is {draft.manifest_sha256}" in answer


def test_images_without_a_stated_prediction_are_told_before_freezing(client, draft):
    Collection.objects.update(target_model=factories.target_model())
    assert "1 image has no stored prediction" in text_of(client.get(page("freeze", draft.pk)))


def test_a_frozen_version_can_only_be_looked_at(client, draft, researcher):
    image = draft.images.get()
    services.freeze(draft, researcher)
    words = text_of(client.get(change_url(draft)))
    draft.refresh_from_db()
    assert draft.manifest_sha256 in words
    assert "Download the manifest" in words
    assert client.post(change_url(draft), version_fields(doi="10.1/1")).status_code == 403
    assert client.post(page("delete", draft.pk), {"post": "yes"}).status_code == 403
    curate = page("curate", draft.pk, image.pk)
    assert "is frozen and never changes" in text_of(client.get(curate))
    client.post(curate, {"do": "remove", "remove-reason": "Now."})
    assert draft.images.count() == 1
    assert "is frozen already" in text_of(client.get(page("freeze", draft.pk)))


# --- Curating -------------------------------------------------------------------------------------------------


def test_an_image_is_cropped_with_a_reason(client, draft):
    image = draft.images.get()
    modified = factories.modified_image(image, attack=factories.attack(), target_model=None, original_filename="ae.png")
    draft.images.add(modified)
    curate = page("curate", draft.pk, image.pk)
    assert curate in client.get(change_url(image)).content.decode(), "the image's page leads here"
    assert client.get(curate).status_code == 200
    box = {"do": "crop", "crop-left": 4, "crop-top": 0, "crop-right": 60, "crop-bottom": 48}
    assert "This field is required" in text_of(client.post(curate, {**box, "crop-reason": ""}))
    outside = client.post(curate, {**box, "crop-right": 65, "crop-reason": "Text."})
    assert "is not within the image of 64 x 48 pixels" in text_of(outside)
    words = text_of(client.post(curate, {**box, "crop-reason": "A text was on the left."}, follow=True))
    assert "roof.png was cropped to 56 x 48 pixels." in words
    assert "made from the image as it was: ae.png" in words
    assert "A text was on the left." in words, "the log is on the page"
    assert image not in draft.images.all()


def test_an_image_is_replaced_with_a_reason(client, draft):
    image, other = draft.images.get(), factories.clean_image()
    curate = page("curate", draft.pk, image.pk)
    assert str(other.public_id) in client.get(curate).content.decode(), "images like it are offered"
    missing = {
        "do": "replace",
        "replace-replacement": "00000000-0000-0000-0000-000000000000",
        "replace-reason": "Sharper.",
    }
    assert "There is no image with this public id" in text_of(client.post(curate, missing))
    wrong = factories.clean_image(image_class=catalogue.other_class())
    answer = client.post(curate, {**missing, "replace-replacement": wrong.public_id})
    assert "kind and class must be the same" in text_of(answer)
    client.post(curate, {**missing, "replace-replacement": other.public_id})
    assert list(draft.images.all()) == [other]


def test_an_image_is_removed_with_a_reason(client, draft, researcher):
    image = draft.images.get()
    client.post(page("curate", draft.pk, image.pk), {"do": "remove", "remove-reason": "Offensive."})
    assert not draft.images.exists()
    entry = CurationLogEntry.objects.get()
    assert (entry.action, entry.reason, entry.decided_by) == ("removed", "Offensive.", researcher)


def test_a_threshold_asks_for_the_confidence_of_a_crop(client, draft):
    image, model = draft.images.get(), factories.target_model()
    catalogue.predict(image, model)
    Collection.objects.update(target_model=model, min_confidence=0.5)
    curate = page("curate", draft.pk, image.pk)
    crop = {"do": "crop", "crop-left": 4, "crop-top": 0, "crop-right": 60, "crop-bottom": 48, "crop-reason": "Text."}
    assert "This field is required" in text_of(client.post(curate, crop))
    assert "less than 0.5 sure" in text_of(client.post(curate, {**crop, "crop-confidence": 0.4}))
    client.post(curate, {**crop, "crop-confidence": 0.9})
    assert draft.images.get().predictions.get().confidence == 0.9


def test_the_log_can_be_read_and_searched_and_not_changed(client, draft, researcher):
    services.remove_images(draft, Image.objects.all(), "Blurred.", researcher)
    entry = CurationLogEntry.objects.get()
    listed = reverse("admin:imagedb_curationlogentry_changelist")
    assert "Blurred." in text_of(client.get(listed, {"version__id__exact": draft.pk, "q": "roof"}))
    assert client.post(change_url(entry), {"reason": "Other."}).status_code == 403
    assert client.post(reverse("admin:imagedb_curationlogentry_add")).status_code == 403
    hidden = catalogue.version(of=catalogue.collection(visibility=Visibility.PRIVATE))
    CurationLogEntry.objects.create(version=hidden, action="added", reason="Hidden reason.")
    assert "Hidden reason." not in text_of(client.get(listed))


# --- Permissions and cost -------------------------------------------------------------------------------------


def test_who_may_only_look_changes_nothing(client, draft):
    viewer = User.objects.create_user("looker", is_staff=True)
    for codename in ("view_collection", "view_collectionversion", "view_image"):
        viewer.user_permissions.add(Permission.objects.get(codename=codename))
    client.force_login(viewer)
    image = draft.images.get()
    assert client.get(COLLECTIONS).status_code == 200
    assert client.get(ADD).status_code == 403
    for address in (page("freeze", draft.pk), page("curate", draft.pk, image.pk), page("new", draft.pk)):
        assert client.post(address, {"do": "remove", "remove-reason": "Now.", "version": "2"}).status_code == 403
    assert client.get(change_url(draft)).status_code == 302, "drafts are for those who may change them"
    draft.refresh_from_db()
    assert (draft.is_frozen, draft.images.count()) == (False, 1)


def test_a_hidden_collections_pages_are_not_there(client, researcher):
    hidden = catalogue.version(
        image := factories.clean_image(),
        of=catalogue.collection(visibility="private", group=Group.objects.create(name="Lab")),
    )
    assert client.get(change_url(hidden)).status_code == 302
    for address in (page("freeze", hidden.pk), page("curate", hidden.pk, image.pk), page("new", hidden.pk)):
        assert client.get(address).status_code == 404


def test_the_pages_cost_a_fixed_number_of_queries(client, draft, researcher, django_assert_max_num_queries):
    def queries():
        image = draft.images.order_by("pk").first()
        counts = []
        for address in (
            COLLECTIONS,
            change_url(draft.collection),
            change_url(draft),
            page("freeze", draft.pk),
            page("curate", draft.pk, image.pk),
            reverse("admin:imagedb_curationlogentry_changelist"),
        ):
            with django_assert_max_num_queries(40) as captured:
                assert client.get(address).status_code == 200
            counts.append(len(captured))
        return counts

    services.add_images(draft, Image.objects.filter(pk=factories.clean_image(licence="CC0").pk), "One.", researcher)
    few = queries()
    for number in range(4):
        image = factories.clean_image(licence="CC0")
        services.add_images(draft, Image.objects.filter(pk=image.pk), "More.", researcher)
        catalogue.version(image)
        services.new_version(draft.collection, f"2.{number}")
    assert queries() == few
