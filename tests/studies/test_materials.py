"""Datasets, check images and plates of a study."""

import io
import uuid
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from django.contrib.auth.models import Group, User
from PIL import Image as PillowImage

from imagedb import terms
from imagedb.models import Image, ImageKind, Prediction, TermsAcceptance, Visibility
from scooter_site.common.storage import protected_storage
from studies.models import (
    ColourPlate,
    Dataset,
    DatasetImage,
    Modification,
    Participation,
    ParticipationKind,
    Stimulus,
    StimulusPurpose,
    StudyStatus,
)
from studies.selectors import usable_clean_images, usable_modified_images
from studies.services import life, materials, plate_pool
from tests import factories, walks

pytestmark = pytest.mark.django_db


def pixels(field_file):
    with field_file.open("rb") as file:
        return np.asarray(PillowImage.open(io.BytesIO(file.read())))


def stored_stimuli():
    folder = Path(protected_storage().location) / "stimulus"
    return {path.name for path in folder.rglob("*.png")}


def test_datasets_have_exact_counts_share_nothing_and_hold_no_pair():
    study = factories.ready_study(dataset_count=3)
    rows = list(DatasetImage.objects.filter(study=study).select_related("image"))
    assert len({row.image_id for row in rows}) == len(rows) == 18
    for dataset in study.datasets.all():
        images = [row.image for row in rows if row.dataset_id == dataset.pk]
        kinds = [image.kind for image in images]
        assert (kinds.count(ImageKind.CLEAN), kinds.count(ImageKind.MODIFIED)) == (3, 3)
        assert not {image.source_id for image in images} & {image.pk for image in images}
    assert list(study.datasets.values_list("number", flat=True)) == [1, 2, 3]


def test_check_images_are_made_from_images_that_no_dataset_holds():
    study = factories.ready_study()
    stimuli = Stimulus.objects.filter(study=study)
    sources = set(stimuli.values_list("source_id", flat=True))
    shown = DatasetImage.objects.filter(study=study)
    assert not sources & set(shown.values_list("image_id", flat=True))
    assert not sources & set(shown.values_list("image__source_id", flat=True))
    assert len(sources) == 3 + study.comprehension_pair_count + study.corrupted_check_count


def test_the_papers_check_images_use_each_type_of_modification_twice():
    study = factories.ready_study(comprehension_pair_count=6, corrupted_check_count=3)
    rows = Stimulus.objects.filter(study=study).order_by("number")
    pairs = rows.filter(purpose=StimulusPurpose.COMPREHENSION)
    modified = [row.modification for row in pairs if row.modification != Modification.NONE]
    assert modified == ["colour", "filter", "pixel"] * 2
    assert pairs.filter(modification=Modification.NONE).count() == 6
    examples = rows.filter(purpose=StimulusPurpose.EXAMPLE).exclude(modification=Modification.NONE)
    assert [row.modification for row in examples] == ["colour", "filter", "pixel"]
    attention = rows.filter(purpose=StimulusPurpose.ATTENTION)
    assert [row.modification for row in attention] == ["corruption"] * 3


def test_the_unmodified_side_is_the_rendition_and_the_modified_side_is_not():
    study = factories.ready_study()
    for stimulus in Stimulus.objects.filter(study=study).select_related("source"):
        is_same = np.array_equal(pixels(stimulus.file), pixels(stimulus.source.rendition))
        assert is_same == (stimulus.modification == Modification.NONE)
        assert stimulus.file.name.endswith(".png")
        with stimulus.file.open("rb") as file:
            assert PillowImage.open(io.BytesIO(file.read())).info == {}


def test_file_names_say_nothing():
    study = factories.ready_study()
    for stimulus in Stimulus.objects.filter(study=study):
        assert not any(word in stimulus.file.name for word in (*Modification.values, "attention", "comprehension"))


def test_the_same_seed_builds_the_same():
    study = factories.ready_study()
    drawn = list(DatasetImage.objects.filter(study=study).values_list("dataset__number", "position", "image_id"))
    made = [pixels(stimulus.file) for stimulus in Stimulus.objects.filter(study=study)]
    life.request_materials(study)
    life.build_materials(study.pk)
    assert drawn == list(
        DatasetImage.objects.filter(study=study).values_list("dataset__number", "position", "image_id")
    )
    again = [pixels(stimulus.file) for stimulus in Stimulus.objects.filter(study=study)]
    assert all(np.array_equal(*pair) for pair in zip(made, again, strict=True))


def test_building_twice_builds_once():
    study = factories.ready_study()
    built_at, tokens = study.materials_built_at, set(Stimulus.objects.values_list("token"))
    files = stored_stimuli()
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert (study.materials_built_at, set(Stimulus.objects.values_list("token"))) == (built_at, tokens)
    assert stored_stimuli() == files


def test_a_build_that_was_overtaken_leaves_nothing_behind(monkeypatch):
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    files = stored_stimuli()
    make_stimuli = materials._make_stimuli

    def overtaken(study, source_ids):
        made = make_stimuli(study, source_ids)
        with monkeypatch.context() as other_worker:
            other_worker.setattr(materials, "_make_stimuli", make_stimuli)
            materials.build_materials(study.pk)
        return made

    monkeypatch.setattr(materials, "_make_stimuli", overtaken)
    materials.build_materials(study.pk)
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    assert Dataset.objects.count() == 2
    names = {Path(name).name for name in Stimulus.objects.values_list("file", flat=True)}
    assert stored_stimuli() - files == names


def test_too_few_images_are_named_with_what_is_missing():
    study = factories.study()
    factories.clean_image()
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert study.status == StudyStatus.DRAFT
    assert "13 clean images are needed (6 for the datasets and 7 to make" in study.materials_error
    assert "import 12 more" in study.materials_error
    assert "6 modified images of this attack and target model are needed" in study.materials_error
    factories.images_for(study)
    factories.plate_pool()
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert (study.status, study.materials_error) == (StudyStatus.READY, "")


def test_only_usable_images_are_drawn():
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    other_model = factories.target_model()
    clean, modified = Image.objects.filter(kind="clean"), Image.objects.filter(kind="modified")
    right, wrong = clean[0].image_class, factories.image_class(7)
    misclassified = factories.clean_image()
    Prediction.objects.create(image=misclassified, target_model=study.target_model, predicted_class=wrong)
    for image in clean.exclude(pk=misclassified.pk):
        Prediction.objects.create(image=image, target_model=study.target_model, predicted_class=right)
        Prediction.objects.create(image=image, target_model=other_model, predicted_class=wrong)
    unusable = {misclassified.pk}
    unusable.add(factories.modified_image(attack=factories.attack(), target_model=study.target_model).pk)
    unusable.add(factories.modified_image(attack=study.attack, target_model=other_model).pk)
    unusable.add(factories.modified_image(attack=study.attack, target_model=None).pk)
    unusable.add(factories.clean_image(is_demo=True).pk)
    study.dataset_count = 1
    study.save()
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert study.status == StudyStatus.READY, study.materials_error
    used = set(DatasetImage.objects.values_list("image_id", flat=True)) | set(
        Stimulus.objects.values_list("source_id", flat=True)
    )
    assert not used & unusable
    assert modified.filter(pk__in=used).count() == 3


def test_private_images_are_drawn_only_if_the_creator_may_see_them():
    lab, other_lab, admin = (User.objects.create_user(name) for name in ("lab", "other-lab", "admin"))
    admin.is_staff = admin.is_superuser = True
    admin.save()
    study = factories.study()
    made_by = {"lab": lab, "other": other_lab}
    images = {
        (kind, owner): make(visibility=Visibility.PRIVATE, uploaded_by=user)
        for owner, user in made_by.items()
        for kind, make in (
            ("clean", factories.clean_image),
            ("modified", partial(factories.modified_image, attack=study.attack, target_model=study.target_model)),
        )
    }

    def usable(creator):
        study.created_by = creator
        assert usable_clean_images(study).filter(visibility=Visibility.PUBLIC).count() == 2
        found = {*usable_clean_images(study), *usable_modified_images(study)}
        return {key for key, image in images.items() if image in found}

    assert usable(None) == set()
    assert usable(lab) == {("clean", "lab"), ("modified", "lab")}
    assert usable(other_lab) == {("clean", "other"), ("modified", "other")}
    assert usable(admin) == {("clean", "lab"), ("modified", "lab"), ("clean", "other"), ("modified", "other")}


def test_private_images_of_a_group_are_drawn_for_its_members():
    member, stranger = User.objects.create_user("member"), User.objects.create_user("stranger")
    group = Group.objects.create(name="Lab")
    member.groups.add(group)
    study = factories.study()
    source = factories.clean_image(visibility=Visibility.PRIVATE, group=group)
    modified = factories.modified_image(
        source,
        attack=study.attack,
        target_model=study.target_model,
        visibility=Visibility.PRIVATE,
        group=group,
    )
    for creator, expected in ((member, [source, modified]), (stranger, []), (None, [])):
        study.created_by = creator
        assert [*usable_clean_images(study), *usable_modified_images(study)] == expected


def test_registered_images_are_drawn_for_who_may_see_them():
    study = factories.study()
    image = factories.clean_image(visibility=Visibility.REGISTERED)
    study.created_by = User.objects.create_user("reader")
    assert not usable_clean_images(study).exists()
    TermsAcceptance.objects.create(user=study.created_by, version=terms.CURRENT_VERSION)
    assert usable_clean_images(study).get() == image


def copy_for(group, image, **fields):
    """The same picture once more, as another group imports it."""
    image.pk, image.public_id, image.group = None, uuid.uuid4(), group
    for name, value in fields.items():
        setattr(image, name, value)
    image.save()
    return image


def test_a_picture_that_two_groups_have_is_shown_once_and_never_with_its_modified_version():
    """Every group has its own copy; who is in both, or sees public ones too, must not get both into a study."""
    study = factories.study(dataset_count=2, clean_per_dataset=3, modified_per_dataset=3)
    factories.images_for(study)
    factories.plate_pool()
    lab = Group.objects.create(name="Lab")
    study.created_by = User.objects.create_superuser("admin")
    study.save()
    counts = usable_clean_images(study).count(), usable_modified_images(study).count()
    copies = {image.pk: copy_for(lab, image) for image in Image.objects.filter(kind=ImageKind.CLEAN)}
    for image in Image.objects.filter(kind=ImageKind.MODIFIED):
        source = image.source_id
        copy_for(lab, image, source=copies[source])
    # The first copies of the modified images go: those that are left were made from the lab's copies.
    Image.objects.filter(kind=ImageKind.MODIFIED, group=None).delete()
    assert (usable_clean_images(study).count(), usable_modified_images(study).count()) == counts
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert study.status == StudyStatus.READY, study.materials_error
    for dataset in study.datasets.all():
        images = [row.image for row in dataset.dataset_images.select_related("image", "image__source")]
        pictures = [image.original_sha256 for image in images]
        assert len(set(pictures)) == len(pictures)
        sources = {image.source.original_sha256 for image in images if image.source}
        assert sources
        assert not sources & set(pictures)


def study_to_build():
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    return study


def test_a_missing_file_stops_the_build_with_a_message_and_leaves_nothing(caplog):
    study = study_to_build()
    before = stored_stimuli()
    last = Image.objects.get(pk=materials._draw(study).check_sources[-1])
    last.rendition.storage.delete(last.rendition.name)
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert study.status == StudyStatus.DRAFT
    assert f"({last.public_id}) is not there or cannot be read" in study.materials_error
    assert stored_stimuli() == before
    assert "FileNotFoundError" in caplog.text


def test_an_unexpected_error_is_told_and_logged(monkeypatch, caplog):
    study = study_to_build()
    before = stored_stimuli()

    def fail(*args):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(materials, "_store", fail)
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert "An unexpected error stopped the build (ZeroDivisionError: division by zero)" in study.materials_error
    assert "Traceback" in caplog.text
    assert stored_stimuli() == before


def test_what_another_try_may_mend_is_raised_and_not_told(monkeypatch):
    study = study_to_build()
    before = stored_stimuli()
    modify = materials.modify

    def fail_later(modification, picture, seed):
        if modification == Modification.CORRUPTION:
            raise ConnectionError("storage away")
        return modify(modification, picture, seed)

    monkeypatch.setattr(materials, "modify", fail_later)
    with pytest.raises(ConnectionError):
        life.build_materials(study.pk)
    study.refresh_from_db()
    assert study.materials_error == ""
    assert stored_stimuli() == before


def test_building_anew_deletes_old_files_and_test_data(django_capture_on_commit_callbacks):
    study = factories.ready_study()
    walks.complete(study, ParticipationKind.TEST)
    walks.to_main(study, ParticipationKind.PREVIEW)
    old = {Path(name).name for name in Stimulus.objects.values_list("file", flat=True)}
    assert old <= stored_stimuli()
    with django_capture_on_commit_callbacks(execute=True):
        life.request_materials(study)
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    assert not Participation.objects.exists()
    assert not old & stored_stimuli()
    assert Dataset.objects.count() == 2


def test_the_plate_pool_is_made_once_and_completed_where_it_has_gaps():
    factories.plate_pool()
    ColourPlate.objects.filter(digit=3, kind="deutan").delete()
    ColourPlate.objects.filter(digit=None, kind="tritan").delete()
    for _ in range(2):
        plate_pool.ensure_plate_pool()
        assert sorted(ColourPlate.objects.values_list("kind", "digit", "seed"), key=str) == sorted(
            plate_pool.PLATE_POOL, key=str
        )
    assert pixels(ColourPlate.objects.get(digit=3, kind="deutan").file).shape == (560, 560, 3)
