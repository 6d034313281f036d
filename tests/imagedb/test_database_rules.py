"""What the database refuses, whoever writes: rules between rows."""

import uuid
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from imagedb import database_rules as rules
from imagedb.models import (
    Attack,
    Collection,
    CollectionImage,
    CollectionVersion,
    CurationLogEntry,
    Image,
    ImageClass,
    ImageKind,
    Prediction,
    TargetModel,
)
from imagedb.triggers import TRIGGERS, broken_rule
from scooter_site.common import triggers
from tests import factories
from tests.imagedb import catalogue

pytestmark = pytest.mark.django_db


@contextmanager
def refused(rule):
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        yield
    assert broken_rule(error.value) == rule


def sql(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def unsaved_modified(source, **fields):
    """A modified image as an import makes it, not saved."""
    made = factories.modified_image(source, attack=factories.attack(), target_model=factories.target_model())
    Image.objects.filter(pk=made.pk).delete()
    made.pk, made.public_id = None, uuid.uuid4()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def pair():
    """A modified image with its clean source."""
    return factories.modified_image(attack=factories.attack(), target_model=factories.target_model())


# --- A modified image and its source --------------------------------------------------------------------------


def test_a_source_is_of_the_same_class():
    source = factories.clean_image()
    wrong = unsaved_modified(source, image_class=catalogue.other_class())
    with refused(rules.SOURCE):
        wrong.save()
    with refused(rules.SOURCE):
        Image.objects.bulk_create([unsaved_modified(source), wrong])
    assert list(Image.objects.all()) == [source]


def test_a_source_is_clean(pair):
    with refused(rules.SOURCE):
        Image.objects.bulk_create([unsaved_modified(pair)])


def test_a_source_stays_what_it_is_and_so_does_what_was_made_of_it(pair):
    other = catalogue.other_class().pk
    attack = pair.attack_id
    for image in (pair, pair.source):
        with refused(rules.SOURCE):
            sql("UPDATE imagedb_image SET image_class_id = %s WHERE id = %s", other, image.pk)
    with refused(rules.SOURCE):
        Image.objects.filter(pk=pair.pk).update(source=factories.clean_image(image_class=catalogue.other_class()))
    with refused(rules.SOURCE):
        Image.objects.filter(pk=pair.source_id).update(
            kind=ImageKind.MODIFIED, source=factories.clean_image(), attack=attack
        )
    Image.objects.filter(pk=pair.pk).update(source=factories.clean_image())


def test_an_import_may_put_in_many_at_once():
    source = factories.clean_image()
    many = [unsaved_modified(source) for _ in range(3)]
    assert len(Image.objects.bulk_create(many)) == 3


# --- What target models say -----------------------------------------------------------------------------------


def test_a_modified_image_misleads_its_own_target_model(pair):
    with refused(rules.MISLEADS):
        catalogue.predict(pair, pair.target_model)
    answer = catalogue.predict(pair, pair.target_model, catalogue.other_class())
    with refused(rules.MISLEADS):
        Prediction.objects.filter(pk=answer.pk).update(predicted_class=pair.image_class)
    other_model = factories.target_model()
    catalogue.predict(pair, other_model)  # attacks need not transfer
    with refused(rules.MISLEADS):
        Image.objects.filter(pk=pair.pk).update(target_model=other_model)
    with refused(rules.MISLEADS):
        Prediction.objects.bulk_create(
            [Prediction(image=pair, target_model=factories.target_model(), predicted_class=pair.image_class)]
        )
        Image.objects.filter(pk=pair.pk).update(target_model=TargetModel.objects.last())


def test_a_clean_image_may_be_mistaken_by_some_model():
    image = factories.clean_image()
    catalogue.predict(image, factories.target_model(), catalogue.other_class())
    catalogue.version(image, of=catalogue.collection(target_model=factories.target_model()))


@pytest.fixture
def strict():
    """A collection that wants 0.5 of a model."""
    return catalogue.collection(target_model=factories.target_model(), min_confidence=0.5)


@pytest.mark.parametrize("confidence", [None, 0, 0.49])
def test_too_unsure_an_image_is_not_in_a_collection_with_a_threshold(strict, confidence):
    image = factories.clean_image()
    catalogue.predict(image, strict.target_model, confidence=confidence)
    draft = catalogue.version(of=strict)
    with refused(rules.RECOGNISED):
        CollectionImage.objects.bulk_create([CollectionImage(version=draft, image=image)])


def test_nor_is_an_image_mistaken_or_not_asked_about(strict):
    mistaken, unasked, elsewhere = (factories.clean_image() for _ in range(3))
    catalogue.predict(mistaken, strict.target_model, catalogue.other_class())
    catalogue.predict(elsewhere, factories.target_model())
    draft = catalogue.version(of=strict)
    for image in (mistaken, unasked, elsewhere):
        with refused(rules.RECOGNISED):
            sql("INSERT INTO imagedb_collectionimage (version_id, image_id) VALUES (%s, %s)", draft.pk, image.pk)


def test_the_threshold_holds_afterwards_too(strict):
    image = factories.clean_image()
    answer = catalogue.predict(image, strict.target_model, confidence=0.5)
    catalogue.version(image, of=strict)
    answers = Prediction.objects.filter(pk=answer.pk)
    for change in (
        {"confidence": 0.4},
        {"confidence": None},
        {"predicted_class": catalogue.other_class()},
        {"target_model": factories.target_model()},
        {"image": factories.clean_image()},
    ):
        with refused(rules.RECOGNISED):
            answers.update(**change)
    with refused(rules.RECOGNISED):
        answers.delete()
    with refused(rules.RECOGNISED):
        Collection.objects.filter(pk=strict.pk).update(min_confidence=0.51)
    with refused(rules.RECOGNISED):
        Collection.objects.filter(pk=strict.pk).update(target_model=factories.target_model())
    with refused(rules.RECOGNISED):
        Image.objects.filter(pk=image.pk).update(image_class=catalogue.other_class())
    answers.update(confidence=0.8)
    Collection.objects.filter(pk=strict.pk).update(min_confidence=0.8)


def test_a_threshold_of_0_is_a_threshold():
    strict = catalogue.collection(target_model=factories.target_model(), min_confidence=0)
    with refused(rules.RECOGNISED):
        catalogue.version(factories.clean_image(), of=strict)


def test_without_a_threshold_only_known_mistakes_are_out():
    loose = catalogue.collection(target_model=factories.target_model())
    unasked, mistaken, unsure = (factories.clean_image() for _ in range(3))
    catalogue.predict(mistaken, loose.target_model, catalogue.other_class())
    catalogue.predict(unsure, loose.target_model, confidence=None)
    catalogue.version(unasked, unsure, of=loose)
    with refused(rules.RECOGNISED):
        catalogue.version(mistaken, of=loose, version="2.0")
    with refused(rules.RECOGNISED):
        catalogue.predict(unasked, loose.target_model, catalogue.other_class())


def test_modified_images_have_no_threshold(strict, pair):
    catalogue.version(pair, of=strict)


# --- Frozen versions ------------------------------------------------------------------------------------------


@pytest.fixture
def frozen(pair):
    """A frozen version with a modified and a clean image, both with the prediction its manifest states."""
    model = factories.target_model()
    catalogue.predict(pair, pair.target_model, catalogue.other_class())
    catalogue.predict(pair.source, model)
    made = catalogue.version(pair, pair.source, of=catalogue.collection(target_model=model, min_confidence=0.5))
    CurationLogEntry.objects.create(version=made, action="added", count=2, reason="All there is.")
    return catalogue.freeze_by_hand(made)


def test_the_row_of_a_frozen_version_never_changes(frozen):
    for change in ({"doi": "10.5281/zenodo.1"}, {"frozen_at": None}, {"licence": ""}, {"frozen_at": timezone.now()}):
        with refused(rules.FROZEN_VERSION):
            CollectionVersion.objects.filter(pk=frozen.pk).update(**change)
    with refused(rules.FROZEN_VERSION):
        frozen.save()


def test_a_frozen_version_keeps_its_images_and_its_log(frozen):
    draft = catalogue.version(factories.clean_image(), version="2.0")
    with refused(rules.FROZEN_IMAGES):
        CollectionImage.objects.bulk_create([CollectionImage(version=frozen, image=factories.clean_image())])
    with refused(rules.FROZEN_IMAGES):
        frozen.memberships.all().delete()
    with refused(rules.FROZEN_IMAGES):
        frozen.memberships.update(version=draft)
    with refused(rules.FROZEN_IMAGES):
        draft.memberships.update(version=frozen)
    with refused(rules.FROZEN_LOG):
        CurationLogEntry.objects.create(version=frozen, action="removed", reason="Late.")
    with refused(rules.FROZEN_LOG):
        frozen.curation_log.all().delete()
    with refused(rules.LOG_STAYS):
        frozen.curation_log.update(reason="Another.")


def test_a_frozen_version_is_not_deleted_unless_it_is_of_the_demonstration(frozen):
    with refused(rules.FROZEN_IMAGES):
        frozen.delete()
    for table in ("collectionimage", "curationlogentry"):
        with pytest.raises(IntegrityError), transaction.atomic():
            sql(f"DELETE FROM imagedb_{table} WHERE version_id = %s", frozen.pk)  # noqa: S608
    empty = catalogue.freeze_by_hand(catalogue.version(version="3.0"))
    with refused(rules.FROZEN_VERSION):
        sql("DELETE FROM imagedb_collectionversion WHERE id = %s", empty.pk)
    demo = catalogue.version(factories.clean_image(is_demo=True), of=catalogue.collection(is_demo=True))
    CurationLogEntry.objects.create(version=demo, action="added", reason="Demonstration.")
    catalogue.freeze_by_hand(demo).delete()
    assert not CollectionVersion.objects.filter(pk=demo.pk).exists()


def test_drafts_are_changed_and_deleted_at_will():
    draft = catalogue.version(factories.clean_image())
    CurationLogEntry.objects.create(version=draft, action="added", reason="To try.")
    CollectionVersion.objects.filter(pk=draft.pk).update(doi="10.5281/zenodo.1")
    draft.memberships.all().delete()
    draft.delete()


def test_the_images_of_a_frozen_version_keep_what_its_manifest_says(frozen, pair):
    other, clean = catalogue.other_class(), factories.clean_image()
    for change in (
        {"source": clean},
        {"attack": factories.attack()},
        {"target_model": factories.target_model()},
        {"original_sha256": "f" * 64},
        {"original_bytes": 0},
        {"original_filename": "other.png"},
        {"licence": "CC0"},
        {"attribution": "Nobody"},
    ):
        with refused(rules.FROZEN_FACTS):
            Image.objects.filter(pk=pair.pk).update(**change)
    alone = catalogue.freeze_by_hand(catalogue.version(clean)).images.get()
    for change in ({"image_class": other}, {"kind": ImageKind.MODIFIED, "source": pair.source, "attack": pair.attack}):
        with refused(rules.FROZEN_FACTS):
            Image.objects.filter(pk=alone.pk).update(**change)
    Image.objects.filter(pk=pair.pk).update(visibility="private", rendition_sha256="f" * 64, linf=3)
    catalogue.version(factories.clean_image()).images.update(licence="CC0")


def test_predictions_that_a_frozen_manifest_states_never_change(frozen, pair):
    for image in (pair, pair.source):
        with refused(rules.FROZEN_PREDICTIONS):
            Prediction.objects.filter(image=image).update(confidence=0.95)
    with refused(rules.FROZEN_PREDICTIONS):
        Prediction.objects.filter(image=pair).update(target_model=factories.target_model())
    with refused(rules.FROZEN_PREDICTIONS):
        Prediction.objects.get(image=pair).delete()
    other = catalogue.predict(pair, factories.target_model())
    Prediction.objects.filter(pk=other.pk).update(confidence=0.1)
    other.delete()


def test_nor_is_one_added_that_a_frozen_manifest_says_is_not_there(pair):
    model = factories.target_model()
    catalogue.freeze_by_hand(catalogue.version(pair, pair.source, of=catalogue.collection(target_model=model)))
    with refused(rules.FROZEN_PREDICTIONS):
        catalogue.predict(pair, pair.target_model, catalogue.other_class())
    with refused(rules.FROZEN_PREDICTIONS):
        catalogue.predict(pair.source, model)
    catalogue.predict(pair.source, factories.target_model())


def test_names_in_a_frozen_manifest_never_change(frozen, pair):
    collection = frozen.collection
    with refused(rules.FROZEN_NAMES):
        Attack.objects.filter(pk=pair.attack_id).update(slug="other")
    for model in (pair.target_model, collection.target_model):
        with refused(rules.FROZEN_NAMES):
            TargetModel.objects.filter(pk=model.pk).update(slug="other")
    for change in ({"slug": "other"}, {"name": "Other"}, {"is_demo": True}, {"min_confidence": 0.4}):
        with refused(rules.FROZEN_COLLECTION):
            Collection.objects.filter(pk=collection.pk).update(**change)
    Collection.objects.filter(pk=collection.pk).update(description="More words.", visibility="registered")
    Attack.objects.filter(pk=pair.attack_id).update(name="Better name", year=2026)


# --- Always ---------------------------------------------------------------------------------------------------


def test_some_things_never_change_anywhere():
    draft, image = catalogue.version(), factories.clean_image()
    with refused(rules.VERSION_STAYS):
        CollectionVersion.objects.filter(pk=draft.pk).update(collection=catalogue.collection())
    with refused(rules.PUBLIC_ID):
        Image.objects.filter(pk=image.pk).update(public_id=uuid.uuid4())
    with refused(rules.CLASSES):
        ImageClass.objects.filter(index=1).update(synset="n99999999")


def test_ignoring_conflicts_ignores_no_rule():
    source = factories.clean_image()
    with refused(rules.SOURCE):
        Image.objects.bulk_create(
            [unsaved_modified(source, image_class=catalogue.other_class())], ignore_conflicts=True
        )


def test_other_errors_of_the_database_are_no_broken_rule():
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        catalogue.collection(min_confidence=0.5)
    assert broken_rule(error.value) is None


# --- The triggers themselves ----------------------------------------------------------------------------------


def test_every_rule_has_a_message_that_fits_the_database():
    names = [rule.name for rule in TRIGGERS.rules]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 and name.isidentifier() for name in names), "PostgreSQL cuts longer names"
    assert all(rule.message.endswith(".") for rule in TRIGGERS.rules)


def test_triggers_are_brought_up_to_date(django_assert_num_queries):
    before = TRIGGERS.installed(connection)
    assert before
    with django_assert_num_queries(1):
        TRIGGERS.install(connection)
    with connection.cursor() as cursor:
        triggers.drop(cursor, connection.vendor, "imagedb_rules_image_update", "imagedb_image")
    TRIGGERS.install(connection)
    assert TRIGGERS.installed(connection) == before


def test_a_rule_that_is_gone_or_changed_is_replaced(monkeypatch):
    before = TRIGGERS.installed(connection)
    changed = [check for check in rules.CHECKS if check.rule not in (rules.CLASSES, rules.PUBLIC_ID)]
    with monkeypatch.context() as patched:
        patched.setattr(TRIGGERS, "checks", changed)
        TRIGGERS.install(connection)
        now = TRIGGERS.installed(connection)
    assert set(before) - set(now) == {"imagedb_rules_imageclass_update"}
    assert {name for name in now if now[name] != before[name]} == {"imagedb_rules_image_update"}
    TRIGGERS.install(connection)
    assert TRIGGERS.installed(connection) == before


@pytest.mark.django_db(transaction=True)
def test_migrations_and_flushes_leave_the_rules_in_place():
    before = TRIGGERS.installed(connection)
    frozen = catalogue.freeze_by_hand(catalogue.version(factories.clean_image()))
    assert frozen.is_frozen
    call_command("flush", verbosity=0, interactive=False)
    assert not CollectionVersion.objects.exists()
    assert TRIGGERS.installed(connection) == before
    # SQLite remakes the table for this, which triggers of other tables read.
    TRIGGERS.remove_before_migrations("default", plan=["something"])
    field = Image._meta.get_field("original_mode")
    with connection.schema_editor() as editor:
        longer = type(field)(max_length=30)
        longer.set_attributes_from_name("original_mode")
        longer.model = Image
        editor.alter_field(Image, field, longer)
        editor.alter_field(Image, longer, field)
    assert TRIGGERS.installed(connection) == {}
    call_command("migrate", verbosity=0)
    assert TRIGGERS.installed(connection) == before
