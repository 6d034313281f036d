"""Each condition for a launch can fail, and says how to mend it."""

from decimal import Decimal

import pytest
from django.db.models import Q

from imagedb.models import Image, Visibility
from scooter_site.common.storage import LocalStorage
from studies.models import ColourPlate, DatasetImage, Stimulus, StudyText
from studies.selectors import readiness
from studies.services import life
from tests import factories

pytestmark = pytest.mark.django_db


def failing(study):
    return {line.label: line.detail for line in readiness(study, look_for_files=True) if not line.ok}


def to_look_at(study):
    return {line.label: line.detail for line in readiness(study) if line.look_at}


def test_a_built_study_is_ready():
    assert failing(factories.ready_study()) == {}


def test_a_study_without_checks_is_ready():
    study = factories.ready_study(
        plate_count=0,
        plates_required=0,
        comprehension_pair_count=0,
        comprehension_required=0,
        corrupted_check_count=0,
        instructed_check_count=0,
    )
    ColourPlate.objects.all().delete()
    assert failing(study) == {}


def test_a_fresh_draft_says_everything_that_is_missing():
    found = failing(factories.study(contact_email=""))
    assert "Import 13 more clean images and 6 more modified images of Attack " in found["Enough images of each kind"]
    assert "may not see are not used" in found["Enough images of each kind"]
    assert "build them" in found["Datasets with exact counts"]
    assert "Build the materials again" in found["Examples and check images"]
    assert "Build the materials again" in found["Colour plates"]
    assert "email address" in found["Contact for participants"]


def unmake_an_attack(study):
    """One image of the study turns out to be made against another model."""
    image = Image.objects.filter(kind="modified").first()
    Image.objects.filter(pk=image.pk).update(target_model=factories.target_model())


def spoil_counts(study):
    DatasetImage.objects.filter(dataset__number=2, image__kind="clean").first().delete()


def put_beside_its_source(study):
    modified = DatasetImage.objects.filter(image__kind="modified", image__source__isnull=False).first()
    source = DatasetImage.objects.get(image=modified.image.source)
    clean_there = DatasetImage.objects.filter(dataset=modified.dataset, image__kind="clean").first()
    first, second = source.image_id, clean_there.image_id
    spare = factories.clean_image().pk
    DatasetImage.objects.filter(pk=source.pk).update(image=spare)
    DatasetImage.objects.filter(pk=clean_there.pk).update(image=first)
    DatasetImage.objects.filter(pk=source.pk).update(image=second)


def lose_a_file(study):
    stimulus = Stimulus.objects.first()
    stimulus.file.storage.delete(stimulus.file.name)


def lose_a_rendition(study):
    image = DatasetImage.objects.last().image
    image.rendition.storage.delete(image.rendition.name)


def shrink_the_modified(study):
    image = DatasetImage.objects.filter(image__kind="modified").first().image
    Image.objects.filter(pk=image.pk).update(width=32, height=24)


def set_on(**fields):
    def change(study):
        for name, value in fields.items():
            setattr(study, name, value)

    return change


@pytest.mark.parametrize(
    ("spoil", "label", "words"),
    [
        (unmake_an_attack, "Enough images of each kind", "Import 1 more modified image of "),
        (shrink_the_modified, "Size does not tell the kind", "1 of 6 modified images differs in width or height"),
        (shrink_the_modified, "Size does not tell the kind", "32 x 24 instead of 64 x 48 pixels"),
        (spoil_counts, "Datasets with exact counts", "dataset 2 holds 2 clean and 3 modified images"),
        (put_beside_its_source, "Datasets with exact counts", "beside its own source"),
        (set_on(dataset_count=1), "Datasets with exact counts", "2 datasets instead of 1. Build the materials again"),
        (set_on(comprehension_pair_count=2), "Examples and check images", "Build the materials again"),
        (set_on(corrupted_check_count=0), "Examples and check images", "1 corrupted image."),
        (lambda study: ColourPlate.objects.filter(digit=None).delete(), "Colour plates", "0 plates without one"),
        (lambda study: ColourPlate.objects.filter(digit__gte=1).delete(), "Colour plates", "1 different digit and"),
        (lose_a_file, "Image files within reach", "1 of the"),
        (lose_a_rendition, "Image files within reach", "such as rendition/"),
        (set_on(instructed_check_count=5), "Attention checks", "set at most 5"),
        (lambda study: StudyText.objects.filter(kind="consent").update(body=""), "Texts", "consent"),
        (
            lambda study: StudyText.objects.filter(kind="question").update(body="Is it {foo}? {pay}"),
            "Texts",
            "Question above the scale: Participants would read “{foo}” as it stands. What is filled in: {contact},",
        ),
        (set_on(contact_email=""), "Contact for participants", "email address"),
        (
            lambda study: study.completion_codes.filter(outcome="declined").delete(),
            "A completion code",
            "did not consent",
        ),
        (set_on(panel="prolific", hourly_rate=Decimal("5.00")), "Pay", "raise the hourly rate"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(spoil, label, words):
    study = factories.ready_study()
    spoil(study)
    found = failing(study)
    assert len(found) == 1, found
    ((failing_label, detail),) = found.items()
    assert failing_label.startswith(label)
    assert words in detail


def test_public_images_are_remarked_on():
    study = factories.ready_study()
    (line,) = [line for line in readiness(study) if line.label == "Kinds are not published"]
    assert (line.ok, line.look_at) == (True, True)
    assert "19 of the usable images are public" in line.detail
    Image.objects.update(visibility=Visibility.REGISTERED)
    (line,) = [line for line in readiness(study) if line.label == "Kinds are not published"]
    assert (line.ok, line.look_at, line.detail) == (True, False, "No usable image is public.")


def test_low_pay_outside_a_panel_is_only_remarked_on():
    study = factories.ready_study(hourly_rate=Decimal("5.00"))
    (line,) = [line for line in readiness(study) if line.label == "Pay"]
    assert line.ok
    assert "GBP 1.08 for a complete run" in line.detail
    assert "On Prolific this would not do" in line.detail


def test_sizes_of_many_kinds_are_fine_as_long_as_the_attack_kept_them():
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    for number, image in enumerate(Image.objects.filter(kind="clean")):
        Image.objects.filter(Q(pk=image.pk) | Q(source=image.pk)).update(width=300 + number, height=200)
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert failing(study) == {}


def test_one_modified_image_in_ten_may_have_another_size():
    study = factories.ready_study(dataset_count=2, clean_per_dataset=5, modified_per_dataset=5)
    label = "Size does not tell the kind"
    assert label not in to_look_at(study)
    shrink_the_modified(study)
    assert failing(study) == {}
    assert to_look_at(study)[label].startswith("9 of 10 modified images have the size of their source. The size of")


def test_sizes_are_told_before_anything_is_built():
    study = factories.study()
    factories.images_for(study)
    Image.objects.filter(kind="modified").update(width=32)
    assert "6 of 6 modified images" in failing(study)["Size does not tell the kind"]


def test_files_are_looked_for_only_when_asked_to(monkeypatch):
    study = factories.ready_study()
    asked = []
    monkeypatch.setattr(LocalStorage, "exists", lambda storage, name: asked.append(name) or True)
    labels = {line.label for line in readiness(study)}
    assert (asked, "Image files within reach" in labels) == ([], False)
    readiness(study, look_for_files=True)
    assert len(asked) == 12 + Stimulus.objects.count() + ColourPlate.objects.count()

    asked.clear()
    monkeypatch.setitem(readiness.__globals__, "DATASET_FILES_LOOKED_AT", 7)
    readiness(study, look_for_files=True)
    assert len(asked) == 6 + Stimulus.objects.count() + ColourPlate.objects.count()
