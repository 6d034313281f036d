"""What goes into a collection and what comes out, with a reason each time."""

import io

import numpy as np
import pytest
from django.contrib.auth.models import Group
from PIL import Image as PillowImage

from imagedb.models import CurationLogEntry, Image, Prediction, Visibility
from imagedb.services import curation
from imagedb.services.collections import CollectionError, add_images, crop_image, remove_images, replace_image
from tests import factories
from tests.imagedb import catalogue

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator():
    return catalogue.account("curator")


def those(*images):
    return Image.objects.filter(pk__in=[image.pk for image in images])


def pixels(field_file):
    with field_file.open("rb") as file:
        return np.asarray(PillowImage.open(io.BytesIO(file.read())))


def log(version):
    return [
        (entry.action, str(entry.image_public_id or ""), entry.count, entry.reason, entry.decided_by)
        for entry in version.curation_log.all()
    ]


# --- Adding ---------------------------------------------------------------------------------------------------


def test_images_are_added_once_and_the_log_says_how_many(curator):
    draft, images = catalogue.version(), [factories.clean_image() for _ in range(3)]
    report = add_images(draft, those(*images[:2]), " The first. ", curator)
    assert (report.added, report.already_there, report.refusals) == (2, 0, [])
    report = add_images(draft, those(*images), "The rest.", curator)
    assert (report.added, report.already_there) == (1, 2)
    assert log(draft) == [
        ("added", "", 2, "The first.", curator),
        ("added", str(images[2].public_id), 1, "The rest.", curator),
    ]
    report = add_images(draft, those(*images), "Nothing new.", curator)
    assert (report.added, draft.curation_log.count()) == (0, 2)


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_every_change_has_a_reason(curator, reason):
    image = factories.clean_image()
    draft = catalogue.version(image)
    for change in (
        lambda: add_images(draft, those(image), reason, curator),
        lambda: remove_images(draft, those(image), reason, curator),
        lambda: replace_image(draft, image, factories.clean_image(), reason, curator),
        lambda: crop_image(draft, image, (0, 0, 9, 9), reason, curator),
    ):
        with pytest.raises(CollectionError, match="Give a reason"):
            change()


def test_what_the_curator_cannot_see_is_neither_added_nor_told(curator):
    hidden = factories.clean_image(visibility=Visibility.PRIVATE)
    draft = catalogue.version(hidden)
    report = add_images(draft, those(factories.clean_image(visibility=Visibility.REGISTERED)), "All.", curator)
    assert report == curation.AddReport(0, 0)
    assert remove_images(draft, those(hidden), "All.", curator) == 0


def test_images_that_do_not_fit_are_named_with_the_reason(curator):
    model = factories.target_model(name="ResNet-50")
    strict = catalogue.collection(target_model=model, min_confidence=0.5)
    good, mistaken, unsure, unasked, demo = (
        factories.clean_image(original_filename=f"{name}.png", is_demo=name == "demo")
        for name in ("good", "mistaken", "unsure", "unasked", "demo")
    )
    private = factories.clean_image(original_filename="private.png", visibility="private", uploaded_by=curator)
    modified = factories.modified_image(good, attack=factories.attack(), target_model=factories.target_model())
    catalogue.predict(good, model, confidence=0.5)
    catalogue.predict(mistaken, model, catalogue.other_class())
    catalogue.predict(unsure, model, confidence=0.49)
    draft = catalogue.version(of=strict)
    report = add_images(draft, Image.objects.all(), "All.", curator)
    assert set(draft.images.all()) == {good, modified}
    assert (report.added, report.already_there) == (2, 0)
    assert [(refusal.examples, refusal.count) for refusal in report.refusals] == [
        ([demo.original_filename], 1),
        ([private.original_filename], 1),
        ([mistaken.original_filename], 1),
        ([unasked.original_filename], 1),
        ([unsure.original_filename], 1),
    ]
    assert str(report.refusals[2]) == (
        "1 image was not added, because they are clean, and ResNet-50 takes them for another class: mistaken.png"
    )
    assert "less than 0.5 sure" in str(report.refusals[4])


def test_private_images_go_only_where_nobody_else_sees_them(curator):
    lab, other = Group.objects.create(name="Lab"), Group.objects.create(name="Other lab")
    curator.groups.add(lab, other)
    of_lab, of_other = (factories.clean_image(visibility="private", group=group) for group in (lab, other))
    own = factories.clean_image(visibility="private", uploaded_by=curator)
    everything = those(of_lab, of_other, own)

    def taken_by(**fields):
        draft = catalogue.version(of=catalogue.collection(**fields))
        add_images(draft, everything, "All.", curator)
        return set(draft.images.all())

    assert taken_by(visibility="public") == taken_by(visibility="registered") == set()
    assert taken_by(visibility="private", group=lab) == {of_lab}
    assert taken_by(visibility="private", created_by=curator) == {own}
    assert taken_by(visibility="private") == set()


def test_adding_many_costs_a_fixed_number_of_queries(curator, django_assert_max_num_queries):
    def queries(count):
        images = those(*[factories.clean_image() for _ in range(count)])
        draft = catalogue.version()
        with django_assert_max_num_queries(20) as captured:
            add_images(draft, images, "All.", curator)
        return len(captured)

    assert queries(2) == queries(12)


# --- Removing and replacing -----------------------------------------------------------------------------------


def test_each_image_removed_has_an_entry(curator):
    images = [factories.clean_image() for _ in range(3)]
    draft = catalogue.version(*images)
    assert remove_images(draft, those(*images[:2], factories.clean_image()), "Blurred.", curator) == 2
    assert list(draft.images.all()) == [images[2]]
    assert log(draft) == [("removed", str(image.public_id), 1, "Blurred.", curator) for image in images[:2]]


def test_a_replacement_is_logged_with_what_it_replaces(curator):
    before, after = factories.clean_image(), factories.clean_image()
    modified = factories.modified_image(before, attack=factories.attack(), target_model=None)
    elsewhere = factories.modified_image(before, attack=factories.attack(), target_model=None)
    draft = catalogue.version(before, modified)
    assert replace_image(draft, before, after, "Sharper.", curator) == [modified]
    assert set(draft.images.all()) == {after, modified}
    entry = CurationLogEntry.objects.get()
    assert (entry.action, entry.image_public_id, entry.replacement) == ("replaced", before.public_id, after)
    assert elsewhere not in draft.images.all()


def test_a_replacement_must_fit(curator):
    image = factories.clean_image()
    draft = catalogue.version(image, taken := factories.clean_image())
    modified = factories.modified_image(image, attack=factories.attack(), target_model=None)
    for replacement, problem in (
        (factories.clean_image(image_class=catalogue.other_class()), "kind and class must be the same"),
        (modified, "kind and class must be the same"),
        (taken, "is in .* already"),
        (factories.clean_image(is_demo=True), "are demonstration material, and the collection is not"),
        (factories.clean_image(visibility="private"), "no such image"),
    ):
        with pytest.raises(CollectionError, match=problem):
            replace_image(draft, image, replacement, "Sharper.", curator)
    with pytest.raises(CollectionError, match="is not in"):
        replace_image(draft, factories.clean_image(), factories.clean_image(), "Sharper.", curator)
    assert set(draft.images.all()) == {image, taken}
    assert log(draft) == []


# --- Cropping -------------------------------------------------------------------------------------------------


def test_a_crop_is_a_new_image_made_of_the_original(curator):
    group = Group.objects.create(name="Lab")
    image = factories.clean_image(
        original_filename="roofs/snowy.jpeg",
        licence="CC BY 4.0",
        attribution="Ada",
        visibility="registered",
        group=group,
    )
    curator.groups.add(group)
    modified = factories.modified_image(image, attack=factories.attack(), target_model=None)
    draft = catalogue.version(image, modified)
    crop, to_look_at = crop_image(draft, image, (4, 2, 60, 40), "A text was on the left.", curator)
    assert to_look_at == [modified]
    assert (crop.width, crop.height) == (56, 38)
    assert np.array_equal(pixels(crop.rendition), pixels(image.rendition)[2:40, 4:60])
    assert (crop.kind, crop.image_class, crop.licence, crop.group) == ("clean", image.image_class, "CC BY 4.0", group)
    assert (crop.visibility, crop.uploaded_by, crop.attribution) == ("registered", curator, "Ada (cropped)")
    assert crop.original_filename == "roofs/snowy-crop-4-2-60-40.png"
    assert set(draft.images.all()) == {crop, modified}
    entry = CurationLogEntry.objects.get()
    assert (entry.action, entry.image_public_id, entry.replacement) == ("cropped", image.public_id, crop)
    assert Image.objects.filter(pk=image.pk).exists(), "the whole image stays in the catalogue"


def test_the_same_crop_is_the_same_image(curator):
    image = factories.clean_image()
    first, _ = crop_image(catalogue.version(image), image, (0, 0, 40, 40), "Text.", curator)
    second, _ = crop_image(catalogue.version(image), image, (0, 0, 40, 40), "Text.", curator)
    assert first == second


@pytest.mark.parametrize(
    "box", [(0, 0, 65, 48), (-1, 0, 9, 9), (9, 0, 9, 9), (9, 9, 3, 12), (0, 0, 64, 49), (0, 0, 64, 48)]
)
def test_a_box_must_be_within_the_image_and_smaller(curator, box):
    image = factories.clean_image()
    with pytest.raises(CollectionError, match="box"):
        crop_image(catalogue.version(image), image, box, "Text.", curator)


def test_a_modified_image_is_not_cropped(curator):
    image = factories.modified_image(attack=factories.attack(), target_model=None)
    with pytest.raises(CollectionError, match="Crop its source, run the attack on that"):
        crop_image(catalogue.version(image), image, (0, 0, 9, 9), "Text.", curator)


def test_where_there_is_a_threshold_the_crop_has_its_own_prediction(curator):
    image = factories.clean_image()
    strict = catalogue.collection(target_model=factories.target_model(), min_confidence=0.5)
    catalogue.predict(image, strict.target_model)
    draft = catalogue.version(image, of=strict)
    storage = image.original.storage
    before = {path for folder in ("original", "rendition") for path in storage.listdir(folder)[0]}
    with pytest.raises(CollectionError, match="ask it about the crop"):
        crop_image(draft, image, (0, 0, 40, 40), "Text.", curator)
    with pytest.raises(CollectionError, match=r"less than 0\.5 sure"):
        crop_image(draft, image, (0, 0, 40, 40), "Text.", curator, confidence=0.4)
    assert list(Image.objects.all()) == [image], "nothing is left of a crop that was refused"
    crop, _ = crop_image(draft, image, (0, 0, 40, 40), "Text.", curator, confidence=0.6)
    assert Prediction.objects.get(image=crop).confidence == 0.6
    assert before


def test_files_of_a_refused_crop_are_removed(curator, monkeypatch):
    image = factories.clean_image()
    stored = []

    def refuse(*args):
        made = Image.objects.exclude(pk=image.pk).get()
        stored.extend((file.storage, file.name) for file in (made.original, made.rendition, made.thumbnail))
        assert all(storage.exists(name) for storage, name in stored)
        raise CollectionError("No.")

    monkeypatch.setattr(curation, "_exchange", refuse)
    with pytest.raises(CollectionError, match="No"):
        crop_image(catalogue.version(image), image, (0, 0, 40, 40), "Text.", curator)
    assert len(stored) == 3
    assert not any(storage.exists(name) for storage, name in stored)


def test_an_original_that_is_lost_is_told(curator):
    image = factories.clean_image()
    image.original.storage.delete(image.original.name)
    with pytest.raises(CollectionError, match="cannot be read"):
        crop_image(catalogue.version(image), image, (0, 0, 40, 40), "Text.", curator)
