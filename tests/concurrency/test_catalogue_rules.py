"""Rules between rows hold when two transactions change both rows at once; without the locks they would not."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from imagedb import database_rules as rules
from imagedb.models import Attack, Collection, CollectionImage, CollectionVersion, Image, Prediction, Visibility
from imagedb.services import collections as services
from imagedb.services.collections import CollectionError
from imagedb.triggers import TRIGGERS
from tests import factories
from tests.concurrency.threads import at_once
from tests.imagedb import catalogue

pytestmark = pytest.mark.django_db(transaction=True)


def overlapping(first: Callable[[], Any], second: Callable[[], Any]) -> list[Any]:
    """Begin ``second`` when ``first`` has done its part but not committed; gives the rule or error of each, or None."""
    first_is_done, second_is_done = threading.Event(), threading.Event()

    def outcome(act: Callable[[], Any]) -> Any:
        try:
            with transaction.atomic():
                act()
        except IntegrityError as error:
            return TRIGGERS.broken_rule(error) or error
        return None

    def earlier() -> None:
        first()
        first_is_done.set()
        second_is_done.wait(timeout=1.5)  # in vain, if the second is kept waiting

    def later() -> Any:
        assert first_is_done.wait(timeout=30)
        result = outcome(second)
        second_is_done.set()
        return result

    return at_once([lambda: outcome(earlier), later])


@pytest.fixture(params=[True, False], ids=["with locks", "without locks"])
def has_locks(request, monkeypatch):
    """The rules as they are, and once more without the locks of PostgreSQL, to see that these are what helps."""
    if not request.param:
        if connection.vendor != "postgresql":
            pytest.skip("SQLite has one writer at a time: there is no race to show")
        monkeypatch.setattr(TRIGGERS, "locks", {})
        TRIGGERS.install(connection)
    yield request.param
    monkeypatch.undo()
    TRIGGERS.install(connection)


def strict_collection(*, confidence: float = 0.9):
    """A draft of a collection that wants 0.5, and an image with that confidence that is not in it."""
    collection = catalogue.collection(target_model=factories.target_model(), min_confidence=0.5)
    image = factories.clean_image()
    catalogue.predict(image, collection.target_model, confidence=confidence)
    return catalogue.version(of=collection), image


def test_a_source_does_not_change_its_class_while_an_image_made_of_it_comes_in(has_locks):
    source, attack, other = factories.clean_image(), factories.attack(), catalogue.other_class().pk
    made = factories.modified_image(source, attack=attack, target_model=None)
    Image.objects.filter(pk=made.pk).delete()
    made.pk = None
    found = overlapping(made.save, lambda: Image.objects.filter(pk=source.pk).update(image_class=other))
    assert found == [None, rules.SOURCE if has_locks else None]


def test_a_prediction_does_not_go_while_the_image_comes_into_a_collection(has_locks):
    draft, image = strict_collection()
    found = overlapping(
        lambda: CollectionImage.objects.create(version=draft, image=image),
        lambda: Prediction.objects.filter(image=image).delete(),
    )
    assert found == [None, rules.RECOGNISED if has_locks else None]


def test_an_image_does_not_come_in_while_its_prediction_goes(has_locks):
    draft, image = strict_collection()
    found = overlapping(
        lambda: Prediction.objects.filter(image=image).update(confidence=0.1),
        lambda: CollectionImage.objects.create(version=draft, image=image),
    )
    assert found == [None, rules.RECOGNISED if has_locks else None]


def test_a_threshold_is_not_raised_while_a_confidence_is_lowered(has_locks):
    draft, image = strict_collection()
    draft.images.add(image)
    found = overlapping(
        lambda: Prediction.objects.filter(image=image).update(confidence=0.6),
        lambda: Collection.objects.update(min_confidence=0.8),
    )
    assert found == [None, rules.RECOGNISED if has_locks else None]


def test_a_target_model_is_not_set_while_its_prediction_comes_in(has_locks):
    model = factories.target_model()
    image = factories.modified_image(attack=factories.attack(), target_model=None)
    found = overlapping(
        lambda: catalogue.predict(image, model), lambda: Image.objects.filter(pk=image.pk).update(target_model=model)
    )
    assert found == [None, rules.MISLEADS if has_locks else None]


def a_draft_to_freeze():
    image = factories.modified_image(
        attack=factories.attack(), target_model=factories.target_model(), licence="CC0", visibility=Visibility.PUBLIC
    )
    catalogue.predict(image, image.target_model, catalogue.other_class())
    return catalogue.version(image), image


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda image: Image.objects.filter(pk=image.pk).update(licence="CC BY 4.0"), rules.FROZEN_FACTS),
        (lambda image: Prediction.objects.filter(image=image).update(confidence=0.1), rules.FROZEN_PREDICTIONS),
        (lambda image: Attack.objects.filter(pk=image.attack_id).update(slug="other"), rules.FROZEN_NAMES),
        (lambda image: CollectionImage.objects.filter(image=image).delete(), rules.FROZEN_IMAGES),
    ],
)
def test_what_is_being_frozen_does_not_change(change, rule):
    draft, image = a_draft_to_freeze()
    user = catalogue.account("curator")
    assert overlapping(lambda: services.freeze(draft, user), lambda: change(image)) == [None, rule]
    frozen = CollectionVersion.objects.get()
    assert services.recompute_manifest(frozen).sha256 == frozen.manifest_sha256


def test_freezing_waits_for_a_change_and_states_it():
    draft, image = a_draft_to_freeze()
    user = catalogue.account("curator")
    found = overlapping(
        lambda: Prediction.objects.filter(image=image).update(confidence=0.1), lambda: services.freeze(draft, user)
    )
    assert found == [None, None]
    frozen = CollectionVersion.objects.get()
    assert services.recompute_manifest(frozen).sha256 == frozen.manifest_sha256
    with frozen.manifest.open("rb") as file:
        assert b'"confidence":0.1' in file.read()


def test_of_two_who_freeze_one_does():
    draft, _ = a_draft_to_freeze()
    user = catalogue.account("curator")
    results = at_once([lambda: services.freeze(draft, user)] * 4)
    assert sorted(type(result) is CollectionVersion for result in results) == [False, False, False, True]
    assert all("is frozen" in str(result) for result in results if isinstance(result, CollectionError))


def test_of_two_who_add_the_same_images_nobody_fails():
    image = factories.clean_image()
    draft, user = catalogue.version(), catalogue.account("curator")
    these = Image.objects.filter(pk=image.pk)
    reports = at_once([lambda: services.add_images(draft, these, "Sharp.", user)] * 4)
    assert sorted((report.added, report.already_there) for report in reports) == [(0, 1), (0, 1), (0, 1), (1, 0)]
