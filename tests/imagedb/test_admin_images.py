"""Images in the admin: found, looked at, corrected, put into collections."""

import uuid

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from imagedb.models import CurationLogEntry, Image, Prediction, Visibility
from scooter_site.common.admin_tools import change_url
from tests import factories
from tests.imagedb import catalogue
from tests.imagedb.pages import text_of

pytestmark = pytest.mark.django_db

IMAGES = reverse("admin:imagedb_image_changelist")


def test_a_modified_image_is_shown_beside_its_source(client, researcher):
    image = factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    page = client.get(change_url(image)).content.decode()
    for shown in (image, image.source):
        address = reverse("imagedb:image-file", args=[shown.public_id])
        assert f'src="{address}"' in page
        file = client.get(address)
        assert file["Content-Type"] == "image/png"
        assert b"".join(file.streaming_content).startswith(b"\x89PNG")
    assert str(image.attack) in text_of(client.get(change_url(image.source))), "the source lists its versions"


def test_images_are_found_by_filename_digest_and_class(client, researcher):
    image = factories.clean_image(original_filename="roofs/snowy.png", image_class=factories.image_class(409))
    factories.clean_image()
    digest, name = image.original_sha256, image.image_class.name
    for words in ("snowy", f"roofs {name}", digest, digest.upper(), str(image.public_id), image.public_id.hex):
        assert filtered(client, q=words) == {image.pk}, words
    for words in ("nowy", "snowy cat", digest[:12], str(image.public_id)[:13], "0" * 64):
        assert filtered(client, q=words) == set(), words


def filtered(client, **query):
    return {image.pk for image in client.get(IMAGES, query).context["cl"].result_list}


def test_images_are_filtered(client, researcher):
    attack, target_model = factories.attack(), factories.target_model()
    lab = Group.objects.create(name="Lab")
    researcher.groups.add(lab)
    shown = factories.modified_image(attack=attack, target_model=target_model, visibility=Visibility.PRIVATE, group=lab)
    other = factories.modified_image(attack=factories.attack(), target_model=factories.target_model(), is_demo=True)
    cleans = {shown.source_id, other.source_id}
    assert filtered(client, kind__exact="clean") == cleans
    assert filtered(client, attack__id__exact=attack.pk) == {shown.pk}
    assert filtered(client, target_model__id__exact=target_model.pk) == {shown.pk}
    assert filtered(client, visibility__exact="private") == {shown.pk}
    assert filtered(client, is_demo__exact="1") == {other.pk}
    assert filtered(client, of_group=lab.pk) == {shown.pk}
    assert filtered(client, of_group="none") == {other.pk} | cleans
    version = catalogue.version(other)
    assert filtered(client, collection_version=version.pk) == {other.pk}
    assert filtered(client, image_class__id__exact=shown.image_class_id) == {shown.pk, other.pk} | cleans


def test_verification_is_the_target_models_word(client, researcher):
    target_model = factories.target_model()
    misled, silent = (factories.modified_image(attack=factories.attack(), target_model=target_model) for _ in range(2))
    recognised, mistaken = factories.clean_image(), factories.clean_image()
    wrong_class = factories.image_class(0)
    for image, answer in [
        (misled, wrong_class),
        (recognised, recognised.image_class),
        (mistaken, wrong_class),
    ]:
        Prediction.objects.create(image=image, target_model=target_model, predicted_class=answer)
    # Another model's word on a modified image verifies nothing.
    Prediction.objects.create(image=silent, target_model=factories.target_model(), predicted_class=wrong_class)
    assert filtered(client, verified="yes") == {misled.pk, recognised.pk}
    assert filtered(client, verified="wrong") == {mistaken.pk}
    assert silent.pk in filtered(client, verified="no")


def test_visibility_is_changed_for_one_image_or_many(client, researcher):
    lab = Group.objects.create(name="Lab")
    researcher.groups.add(lab)
    first, second = factories.clean_image(), factories.clean_image()
    form = {
        "visibility": "private",
        "group": lab.pk,
        "licence": "CC0",
        "attribution": "",
        "predictions-TOTAL_FORMS": 0,
        "predictions-INITIAL_FORMS": 0,
        "_save": "Save",
    }
    client.post(change_url(first), form)
    first.refresh_from_db()
    assert (first.visibility, first.group, first.licence) == ("private", lab, "CC0")
    answer = client.post(IMAGES, {"action": "make_registered", "_selected_action": [first.pk, second.pk]}, follow=True)
    assert "2 images are now registered." in text_of(answer)
    assert set(Image.objects.values_list("visibility", flat=True)) == {"registered"}


def test_who_may_only_look_changes_no_visibility(client, viewer):
    image = factories.clean_image()
    client.post(IMAGES, {"action": "make_private", "_selected_action": [image.pk], "answered": "1"})
    client.post(IMAGES, {"action": "make_registered", "_selected_action": [image.pk]})
    assert client.post(change_url(image), {"visibility": "private"}).status_code == 403
    image.refresh_from_db()
    assert image.visibility == Visibility.PUBLIC


def test_an_image_in_a_study_is_not_deleted_and_the_page_says_why(admin_client):
    study = factories.ready_study()
    image = study.datasets.first().dataset_images.first().image
    delete = reverse("admin:imagedb_image_delete", args=[image.pk])
    assert "protected related objects" in text_of(admin_client.get(delete))
    admin_client.post(delete, {"post": "yes"})
    assert Image.objects.filter(pk=image.pk).exists()


def test_an_image_nobody_uses_is_deleted_with_its_files(admin_client, django_capture_on_commit_callbacks):
    image = factories.clean_image()
    storage, name = image.rendition.storage, image.rendition.name
    assert storage.exists(name)
    with django_capture_on_commit_callbacks(execute=True):
        admin_client.post(reverse("admin:imagedb_image_delete", args=[image.pk]), {"post": "yes"})
    assert not Image.objects.exists()
    assert not storage.exists(name)


def test_the_list_of_images_costs_the_same_for_3_and_for_30(admin_client, django_assert_max_num_queries):
    def grow(count):
        for _ in range(count):
            factories.modified_image(attack=factories.attack(), target_model=factories.target_model())

    def queries():
        with django_assert_max_num_queries(30) as captured:
            assert admin_client.get(IMAGES).status_code == 200
        return len(captured)

    grow(2)
    few = queries()
    grow(18)
    assert queries() == few


# --- Who sees what --------------------------------------------------------------------------------------------


def test_private_images_of_others_are_not_there(client, researcher):
    hidden = factories.modified_image(
        factories.clean_image(visibility=Visibility.PRIVATE),
        attack=factories.attack(),
        target_model=None,
        visibility=Visibility.PRIVATE,
    )
    own = factories.clean_image(visibility=Visibility.PRIVATE, uploaded_by=researcher)
    assert filtered(client) == {own.pk}
    assert client.get(change_url(hidden)).status_code == 302
    client.post(IMAGES, {"action": "make_public", "_selected_action": [hidden.pk]})
    hidden.refresh_from_db()
    assert hidden.visibility == Visibility.PRIVATE


def test_a_source_that_one_may_not_see_is_not_named(client, researcher):
    source = factories.clean_image(visibility=Visibility.PRIVATE, original_filename="secret.png")
    image = factories.modified_image(source, attack=factories.attack(), target_model=None)
    words = text_of(client.get(change_url(image)))
    assert "An image that you may not see" in words
    assert "secret.png" not in words


def test_an_images_page_tells_all_that_was_measured(client, researcher):
    image = factories.modified_image(
        attack=factories.attack(),
        target_model=None,
        comparison="resampled",
        linf=0,
        l2=1.5,
        changed_share=0.25,
        ssim=0.987,
        ciede2000=2.0,
        original_profile="Display P3",
    )
    words = text_of(client.get(change_url(image)))
    for told in ("The source was resampled", "L-infinity distance 0", "0.987", "0.25", "Display P3"):
        assert told in words, told
    assert "L∞ 0, SSIM 0.987" in text_of(client.get(IMAGES))
    assert "L-infinity" not in text_of(client.get(change_url(image.source)))


# --- Visibility and groups ------------------------------------------------------------------------------------


@pytest.fixture
def lab(researcher):
    group = Group.objects.create(name="Lab")
    researcher.groups.add(group)
    return group


def act(client, action, *images, **answers):
    data = {"action": action, "_selected_action": [image.pk for image in images], **answers}
    return client.post(IMAGES, data, follow=True)


def test_making_images_private_asks_for_a_group(client, researcher, lab):
    others = Group.objects.create(name="Other lab")
    images = [factories.clean_image() for _ in range(2)]
    question = act(client, "make_private", *images)
    assert "Make private: 2 images" in text_of(question)
    assert Image.objects.filter(visibility="private").count() == 0
    assert "Other lab" not in text_of(question)
    refused = act(client, "make_private", *images, answered=1, group=others.pk)
    assert "Select a valid choice" in text_of(refused)
    assert "2 images are now private to Lab." in text_of(act(client, "make_private", *images, answered=1, group=lab.pk))
    assert set(Image.objects.values_list("visibility", "group")) == {("private", lab.pk)}


def test_images_may_stay_with_the_group_they_have(client, researcher, lab):
    image = factories.clean_image(group=lab)
    assert "1 image is now private." in text_of(act(client, "make_private", image, answered=1, group=""))
    image.refresh_from_db()
    assert (image.visibility, image.group) == ("private", lab)


def copy_of(image, **fields):
    copy = Image.objects.get(pk=image.pk)
    copy.pk, copy.public_id = None, uuid.uuid4()
    for name, value in fields.items():
        setattr(copy, name, value)
    copy.save()
    return copy


def test_a_group_gets_no_second_copy_of_an_image(client, researcher, lab):
    image = factories.clean_image(original_filename="roof.png")
    copy_of(image, group=lab)
    words = text_of(act(client, "make_private", image, factories.clean_image(), answered=1, group=lab.pk))
    assert "The group Lab has identical images already: roof.png." in words
    assert "Nothing was changed" in words
    assert set(Image.objects.values_list("visibility", flat=True)) == {"public"}
    form = {
        "visibility": "private",
        "group": lab.pk,
        "licence": "",
        "attribution": "",
        "predictions-TOTAL_FORMS": 0,
        "predictions-INITIAL_FORMS": 0,
        "_save": "Save",
    }
    assert "The group Lab has an identical image already" in text_of(client.post(change_url(image), form))
    image.refresh_from_db()
    assert image.group is None


def test_two_copies_do_not_get_into_one_group_together(client, researcher, lab):
    second_lab = Group.objects.create(name="Second lab")
    researcher.groups.add(second_lab)
    image = factories.clean_image(original_filename="roof.png")
    copy = copy_of(image, group=second_lab)
    assert "identical images already: roof.png" in text_of(
        act(client, "make_private", image, copy, answered=1, group=lab.pk)
    )


def test_the_licence_of_an_image_in_a_frozen_version_stays(client, researcher):
    image = factories.clean_image(licence="CC BY 4.0")
    catalogue.freeze_by_hand(catalogue.version(image))
    page = client.get(change_url(image))
    assert "licence" not in page.context["adminform"].form.fields
    assert "Frozen" in text_of(page)
    form = {
        "visibility": "registered",
        "group": "",
        "licence": "CC0",
        "predictions-TOTAL_FORMS": 0,
        "predictions-INITIAL_FORMS": 0,
        "_save": "Save",
    }
    client.post(change_url(image), form)
    image.refresh_from_db()
    assert (image.visibility, image.licence) == ("registered", "CC BY 4.0")


# --- Collections ----------------------------------------------------------------------------------------------


def test_images_are_added_to_a_draft_and_what_does_not_fit_is_told(client, researcher):
    model = factories.target_model(name="ResNet-50")
    draft = catalogue.version(of=catalogue.collection(name="Roofs", target_model=model))
    fine, there, mistaken = (factories.clean_image(original_filename=f"{n}.png") for n in ("fine", "there", "mistaken"))
    draft.images.add(there)
    catalogue.predict(mistaken, model, catalogue.other_class())
    question = act(client, "add_to_collection", fine, there, mistaken)
    assert "Add to a collection: 3 images" in text_of(question)
    assert "This field is required" in text_of(
        act(client, "add_to_collection", fine, answered=1, version=draft.pk, reason=" ")
    )
    words = text_of(
        act(client, "add_to_collection", fine, there, mistaken, answered=1, version=draft.pk, reason="Sharp.")
    )
    assert "1 image is now in Roofs 1.0. 1 image was in it already." in words
    assert (
        "1 image was not added, because they are clean, and ResNet-50 takes them for another class: mistaken.png."
        in words
    )
    assert set(draft.images.all()) == {fine, there}
    assert CurationLogEntry.objects.get().decided_by == researcher


def test_all_images_of_a_list_can_be_added_at_once(client, researcher):
    draft = catalogue.version()
    images = [factories.clean_image() for _ in range(3)]
    act(client, "add_to_collection", images[0], answered=1, version=draft.pk, reason="All.", select_across=1)
    assert draft.images.count() == 3


def test_images_are_removed_from_a_draft(client, researcher):
    image = factories.clean_image()
    draft = catalogue.version(image, of=catalogue.collection(name="Roofs"))
    words = text_of(act(client, "remove_from_collection", image, answered=1, version=draft.pk, reason="Blurred."))
    assert "1 image was removed from Roofs 1.0." in words
    assert not draft.images.exists()


def test_frozen_and_hidden_versions_are_not_offered(client, researcher):
    image = factories.clean_image()
    frozen = catalogue.freeze_by_hand(catalogue.version(image, of=catalogue.collection(name="Frozen one")))
    hidden = catalogue.version(of=catalogue.collection(name="Hidden one", visibility="private"))
    words = text_of(act(client, "add_to_collection", image))
    assert "Frozen one 1.0" not in words.replace("Frozen versions", "")
    assert "Hidden one" not in words
    for version in (frozen, hidden):
        refused = act(client, "add_to_collection", image, answered=1, version=version.pk, reason="Now.")
        assert "Select a valid choice" in text_of(refused)


def test_who_may_only_look_curates_nothing(client, viewer):
    image, draft = factories.clean_image(), catalogue.version()
    client.post(IMAGES, {"action": "add_to_collection", "_selected_action": [image.pk], "answered": 1,
                         "version": draft.pk, "reason": "Now."})  # fmt: skip
    assert not draft.images.exists()
