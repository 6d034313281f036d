"""Protocols are modules: one that the site does not know runs through it without a change elsewhere."""

import sys
import types
from collections import Counter

import pytest
from django.urls import reverse

from studies import bots, selectors
from studies.flow import Outcome, Step
from studies.models import Participation, Rating, Trial
from studies.protocols import Protocol, protocols, registry
from studies.protocols.base import Material
from studies.protocols.registry import register
from tests import factories, walks
from tests.common.test_documentation import code_blocks
from tests.studies.visitor import Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def extra_protocols(monkeypatch):
    """Protocols registered in this test are gone after it."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@pytest.fixture
def real_or_fake(extra_protocols, monkeypatch):
    """The module of docs/protocols.md, as somebody would add it."""
    (source,) = code_blocks("docs/protocols.md", "python")
    module = types.ModuleType("studies.protocols.real_or_fake")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "docs/protocols.md", "exec"), module.__dict__)  # noqa: S102 - our own documentation
    return module


def test_the_example_is_as_long_as_an_example_may_be():
    (source,) = code_blocks("docs/protocols.md", "python")
    assert 50 <= len(source.splitlines()) <= 65


def test_paper_and_field_are_registered_and_the_admin_offers_every_protocol(real_or_fake, client, researcher):
    assert [known.preset.name for known in protocols()] == ["paper", "field", "real_or_fake"]
    page = client.get(reverse("admin:studies_study_add")).content.decode()
    assert "Real or fake: two buttons" in page


@pytest.mark.django_db(transaction=True)
def test_the_example_runs_through_a_study_with_bots(real_or_fake):
    study = factories.running_study(
        "real_or_fake", clean_per_dataset=11, modified_per_dataset=11, corrupted_check_count=0, instructed_check_count=0
    )
    assert study.trial_count == 24
    behaviour = bots.Behaviour(ability=1.0, outcome=Outcome.COMPLETED)
    walks_taken = list(bots.simulate(study, behaviour, count=2, seed=3))
    assert [(walk.outcome, walk.ratings, walk.error) for walk in walks_taken] == [(Outcome.COMPLETED, 24, "")] * 2
    for participation in Participation.objects.all():
        trials = list(participation.trials.select_related("rating", "image"))
        assert Counter(trial.kind for trial in trials) == {"image": 22, "told": 2}
        assert [trial.position for trial in trials if trial.kind == "told"] == [11, 22]
        assert {trial.kind_label for trial in trials} == {"Judgement", "Attention check: told what to press"}
        told = [trial for trial in trials if trial.kind == "told"]
        assert all(trial.rating.value == trial.instructed_value for trial in told)
        images = [trial for trial in trials if trial.kind == "image"]
        assert [trial.parameters for trial in images] == [
            {"truth": int(trial.image.kind == "modified")} for trial in images
        ]
        right = sum(trial.rating.value == trial.parameters["truth"] for trial in images)
        assert right >= 20
        assert {trial.rating.value for trial in trials} == {0, 1}


def test_the_page_of_the_example_has_its_buttons_and_its_words_and_no_truth(real_or_fake):
    study = factories.running_study(
        "real_or_fake", clean_per_dataset=6, modified_per_dataset=6, corrupted_check_count=0, instructed_check_count=0
    )
    visitor = Visitor(study)
    visitor.at(Step.MAIN)
    page = visitor.page()
    assert [(point.value, point.shown) for point in page.context["points"]] == [(0, "Real"), (1, "Fake")]
    assert "Is this image real or fake?" in page.content.decode()
    state = page.context["data"]
    while state["trial"]["text"] is None:
        assert not {"truth", "parameters", "kind"} & set(state["trial"])
        state = visitor.rate(state["trial"]["token"], 1).json()
    asked = Trial.objects.get(token=state["trial"]["token"]).instructed_value
    assert state["trial"]["text"] == f"This is an attention check. Please press {['Real', 'Fake'][asked]}."
    assert visitor.rate(state["trial"]["token"], 2).status_code == 400
    assert visitor.rate(state["trial"]["token"], 1 - asked).status_code == 200
    assert visitor.participation.attention_failures == 1


def test_judgements_count_in_the_direction_of_their_scale(real_or_fake):
    study = factories.running_study("real_or_fake", corrupted_check_count=0, instructed_check_count=0)
    walks.complete(study)
    (ratings,) = selectors.valid_ratings(study.attack_id, study.target_model_id)
    assert (ratings.scale_minimum, ratings.scale_maximum) == (0, 1)
    assert list(ratings.values) == [int(modified) for modified in ratings.is_modified]


# --- What other protocols need --------------------------------------------------------------------------------


def preset_named(name):
    from dataclasses import replace

    from studies.presets import PRESETS

    return replace(PRESETS["field"], name=name)


def test_a_staircase_shows_each_item_for_as_long_as_the_answers_before_say(extra_protocols):
    @register
    class Staircase(Protocol):
        preset = preset_named("staircase")
        is_adaptive = True

        def plan(self, material: Material, setup, rng):
            from dataclasses import replace

            planned = super().plan(material, setup, rng)
            return [replace(trial, parameters={"exposure_ms": 500}) for trial in planned]

        def adapt(self, answered, value, following):
            step = -30 if value > 0 else 10
            return {**following.parameters, "exposure_ms": answered.parameters["exposure_ms"] + step}

    study = factories.running_study("staircase")
    visitor = Visitor(study)
    participation = visitor.at(Step.MAIN)
    state = visitor.page().context["data"]
    exposures = []
    for value in (1, 1, -2, 2):
        assert state["upcoming"] == []
        exposures.append(state["trial"]["exposure_ms"])
        state = visitor.rate(state["trial"]["token"], value).json()
    assert exposures == [500, 470, 440, 450]
    assert state["trial"]["exposure_ms"] == 420
    stored = participation.trials.order_by("position").values_list("parameters__exposure_ms", flat=True)
    assert list(stored) == [500, 470, 440, 450, 420, 500, 500, 500]


def test_a_pair_of_images_is_shown_side_by_side(extra_protocols):
    from studies.order import PlannedTrial

    @register
    class Pairwise(Protocol):
        preset = preset_named("pairwise")
        kinds = {"pair": "Pair"}

        def trial_count(self, setup):
            return setup.image_count // 2

        def plan(self, material: Material, setup, rng):
            ids = [image_id for image_id, _ in material.images]
            pairs = zip(ids[::2], ids[1::2], strict=True)
            return [PlannedTrial("pair", image_id=one, parameters={"second_image": other}) for one, other in pairs]

    study = factories.running_study("pairwise")
    visitor = Visitor(study)
    participation = visitor.at(Step.MAIN)
    state = visitor.page().context["data"]
    seen = set()
    while trial := state["trial"]:
        first, second = (visitor.client.get(trial[name]).getvalue() for name in ("image", "second_image"))
        assert first != second
        seen |= {first, second}
        state = visitor.rate(trial["token"], -2).json()
    assert len(seen) == 6
    assert Rating.objects.filter(trial__participation=participation).count() == 3
    assert selectors.valid_ratings(study.attack_id, study.target_model_id) == []


def test_a_second_image_beyond_what_may_be_seen_is_not_sent(extra_protocols):
    study = factories.running_study()
    visitor = Visitor(study)
    participation = visitor.at(Step.MAIN)
    trials = list(participation.trials.order_by("position"))
    Trial.objects.filter(participation=participation).update(
        parameters={"second_image": study.attack.images.first().pk}
    )
    assert [visitor.image("trial-second", trial.token).status_code for trial in trials] == [200] * 4 + [404] * 4
