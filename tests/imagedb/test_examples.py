"""What pages are made from: examples, distances and counts of images that a visitor may see."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from imagedb.models import Attack, Image, TargetModel, Visibility
from imagedb.selectors import examples, figures, visible_images
from imagedb.selectors.visibility import images_after_terms
from tests import factories
from tests.imagedb.api_clients import user
from tests.imagedb.catalogue_pages import measured, pair_of_each_visibility

pytestmark = pytest.mark.django_db
ANYBODY = AnonymousUser()


@pytest.fixture
def attack():
    return factories.attack()


@pytest.fixture
def model():
    return factories.target_model()


def test_pairs_of_an_attack_and_of_a_target_model(attack, model):
    other_model, other_attack = factories.target_model(), factories.attack()
    first = measured(attack=attack, target_model=model)
    measured(attack=attack, target_model=model, visibility=Visibility.PRIVATE)
    last = measured(attack=attack, target_model=model)
    against_none = measured(attack=attack, target_model=None)
    measured(attack=attack, target_model=other_model, visibility=Visibility.PRIVATE)
    of_other = measured(attack=other_attack, target_model=model)
    assert examples.pairs_of_attack(visible_images(ANYBODY), attack) == [
        examples.Pair(attack, model, first.pk, last.pk),
        examples.Pair(attack, None, against_none.pk, against_none.pk),
    ]
    assert examples.pairs_of_target_model(visible_images(ANYBODY), model) == [
        examples.Pair(attack, model, first.pk, last.pk),
        examples.Pair(other_attack, model, of_other.pk, of_other.pk),
    ]


def test_examples_are_spread_over_the_images_and_taken_from_each_pair_in_turn(attack, model):
    other_model = factories.target_model()
    images = [measured(attack=attack, target_model=model) for _ in range(9)]
    other = measured(attack=attack, target_model=other_model)
    pairs = examples.pairs_of_attack(visible_images(ANYBODY), attack)
    found = [example.modified for example in examples.examples_of(visible_images(ANYBODY), pairs, 5)]
    assert set(found) == {images[0], images[4], images[8], other}
    assert [example.modified for example in examples.examples_of(visible_images(ANYBODY), pairs, 1)] == [images[0]]
    assert examples.examples_of(visible_images(ANYBODY), [], 5) == []


def test_examples_that_can_be_shown_whole_come_first(attack, model):
    private = factories.clean_image(visibility=Visibility.PRIVATE)
    without_source = measured(private, attack=attack, target_model=model)
    not_comparable = measured(
        attack=attack, target_model=model, comparison="not_comparable", linf=None, l2=None, changed_share=None,
        ssim=None, ciede2000=None,
    )  # fmt: skip
    whole = measured(attack=attack, target_model=model)
    found = examples.examples_of(visible_images(ANYBODY), examples.pairs_of_attack(visible_images(ANYBODY), attack), 3)
    assert [example.modified for example in found] == [whole, not_comparable, without_source]
    assert [example.has_difference for example in found] == [True, False, False]
    assert [example.source for example in found] == [whole.source, not_comparable.source, None]


def test_the_first_example_of_each_attack_and_model(attack, model):
    empty = factories.attack()
    measured(attack=attack, target_model=model, visibility=Visibility.PRIVATE)
    shown = measured(attack=attack, target_model=model)
    measured(attack=attack, target_model=model)
    of_attacks = examples.first_examples(visible_images(ANYBODY), Attack.objects.all())
    assert {pk: example.modified for pk, example in of_attacks.items()} == {attack.pk: shown}
    assert empty.pk not in of_attacks
    of_models = examples.first_examples(visible_images(ANYBODY), TargetModel.objects.all())
    assert {pk: example.modified for pk, example in of_models.items()} == {model.pk: shown}


def test_median_and_range_of_what_was_measured(attack, model):
    for linf, ssim in ((4, 0.9), (8, 0.95), (30, 0.5)):
        measured(attack=attack, target_model=model, linf=linf, ssim=ssim)
    measured(attack=attack, target_model=model, linf=255, visibility=Visibility.PRIVATE)
    factories.modified_image(attack=attack, target_model=model)
    [found] = examples.figures_of(visible_images(ANYBODY), examples.pairs_of_attack(visible_images(ANYBODY), attack))
    assert (found.extent.count, found.measured, found.is_sample) == (4, 3, False)
    ranges = {each.measure.name: (each.median, each.minimum, each.maximum) for each in found.ranges}
    assert ranges["linf"] == (8, 4, 30)
    assert ranges["ssim"] == (0.9, 0.5, 0.95)
    assert ranges["l2"] == (4.5, 4.5, 4.5)
    texts = {each.measure.name: (each.median_text, each.range_text) for each in found.ranges}
    assert texts["linf"] == ("8", "4 – 30")
    assert texts["changed_share"] == ("75.0 %", "75.0 %")


def test_many_images_are_looked_at_in_part_and_it_is_said(attack, model, monkeypatch):
    for linf in (1, 2, 3, 200):
        measured(attack=attack, target_model=model, linf=linf)
    monkeypatch.setattr(examples, "MEASURED_AT_MOST", 3)
    [found] = examples.figures_of(visible_images(ANYBODY), examples.pairs_of_attack(visible_images(ANYBODY), attack))
    assert (found.measured, found.is_sample) == (3, True)
    assert found.ranges[0].maximum == 3


def test_counts_are_bounded_and_say_so(monkeypatch):
    images = [factories.clean_image() for _ in range(3)]
    everything = Image.objects.filter(kind="clean")
    assert figures.extent(everything) == figures.Extent(3, sum(image.original_bytes for image in images), False)
    assert figures.extent(Image.objects.none()) == figures.Extent(0, 0, False)
    cache.clear()
    monkeypatch.setattr(figures, "COUNTED_AT_MOST", 2)
    found = figures.extent(everything)
    assert (found.count, found.is_at_least) == (2, True)


def test_figures_are_kept_but_only_for_who_sees_the_same(attack, model):
    pair_of_each_visibility(attack, model)
    registered = user("registered", accepted_terms=True)
    of_attack = {"attack": attack}
    assert figures.extent(visible_images(ANYBODY).filter(**of_attack)).count == 1
    assert figures.extent(visible_images(registered).filter(**of_attack)).count == 2
    with CaptureQueriesContext(connection) as queries:
        assert figures.extent(visible_images(ANYBODY).filter(**of_attack)).count == 1
    assert len(queries) == 0


class TestAfterTerms:
    """Of how many images a visitor is told that the terms would open them."""

    def test_registered_ones_for_those_who_have_not_accepted(self, attack, model):
        pairs = pair_of_each_visibility(attack, model)
        expected = set(pairs["registered"])
        assert set(images_after_terms(ANYBODY)) == expected
        assert set(images_after_terms(user("plain"))) == expected
        assert set(images_after_terms(user("staff", is_staff=True))) == expected

    def test_none_for_those_who_see_them(self, attack, model):
        pair_of_each_visibility(attack, model)
        assert not images_after_terms(user("registered", accepted_terms=True)).exists()
        assert not images_after_terms(user("root", is_superuser=True)).exists()

    def test_not_what_one_uploaded_oneself_or_ones_group_has(self, attack, model):
        pairs = pair_of_each_visibility(attack, model)
        clean, modified = pairs["registered"]
        owner = user("owner")
        Image.objects.filter(pk=modified.pk).update(uploaded_by=owner)
        assert set(images_after_terms(owner)) == {clean}
