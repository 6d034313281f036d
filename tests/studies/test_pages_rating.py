"""Rating over HTTP: what is stored, what is refused, and what comes next."""

import uuid

import pytest

from studies.flow import Step
from studies.models import AttentionPolicy, Rating, Trial, TrialKind
from tests import factories, walks
from tests.studies.visitor import Visitor, assert_step, assert_to_run

pytestmark = pytest.mark.django_db


def test_a_rating_is_stored_with_its_times_and_answered_with_the_next_item(visitor):
    participation = visitor.at(Step.MAIN)
    trial = walks.current_trial(participation)
    times = {"first_interaction_ms": 300, "last_interaction_ms": 900}
    answer = visitor.rate(trial.token, 0, start_position=-100, focus_losses=1, **times)
    assert answer.status_code == 200
    assert answer.json()["trial"]["position"] == 2
    assert "no-store" in answer["Cache-Control"]
    rating = Rating.objects.get()
    assert (rating.trial, rating.value, rating.start_position) == (trial, 0, -100)
    assert (rating.response_ms, rating.first_interaction_ms, rating.last_interaction_ms) == (1200, 300, 900)
    assert rating.focus_losses == 1


def test_a_rating_sent_twice_is_one_rating_and_the_first_stands(visitor):
    trial = walks.current_trial(visitor.at(Step.MAIN))
    answers = [visitor.rate(trial.token, value).json() for value in (0, 0, 55)]
    assert [answer["trial"]["position"] for answer in answers] == [2, 2, 2]
    assert Rating.objects.get().value == 0


@pytest.mark.parametrize("value", ["37", True, None, 1.5, 101, -101, 10**9])
def test_a_value_that_is_no_answer_is_refused_and_nothing_is_lost(visitor, value):
    trial = walks.current_trial(visitor.at(Step.MAIN))
    response = visitor.rate(trial.token, value)
    assert response.status_code == 400
    assert response.json()["error"].startswith("value ")
    assert not Rating.objects.exists()
    assert visitor.rate(trial.token, -100).status_code == 200


def test_a_scale_cannot_have_started_beyond_its_ends(visitor):
    trial = walks.current_trial(visitor.at(Step.MAIN))
    response = visitor.rate(trial.token, 0, start_position=101)
    assert response.status_code == 400
    assert response.json()["error"] == "start_position must be a whole number from -100 to 100, not 101."
    assert not Rating.objects.exists()


@pytest.mark.parametrize(
    "fields", [{"touched": False}, {"touched": None}, {"touched": 1}, {"first_interaction_ms": None}]
)
def test_an_untouched_scale_is_no_answer(visitor, fields):
    trial = walks.current_trial(visitor.at(Step.MAIN))
    response = visitor.rate(trial.token, 0, **fields)
    assert (response.status_code, "touched" in response.json()["error"]) == (400, True)
    assert not Rating.objects.exists()
    assert visitor.page().context["data"]["trial"]["token"] == str(trial.token)


def test_ratings_out_of_turn_are_refused(visitor):
    trials = list(visitor.at(Step.MAIN).trials.order_by("position"))
    for token in (trials[1].token, trials[4].token, uuid.uuid4()):
        response = visitor.rate(token, 1)
        assert (response.status_code, "not been shown" in response.json()["error"]) == (409, True)
    assert not Rating.objects.exists()


def test_the_last_rating_sent_again_points_to_the_next_page_and_an_ended_session_is_over(visitor):
    participation = visitor.at(Step.MAIN)
    last = participation.trials.order_by("-position")[0]
    walks.rate_all(participation)
    assert visitor.rate(last.token, 0).json() == {"trial": None, "upcoming": []}
    visitor.post("feedback")
    assert visitor.rate(last.token, 0).status_code == 409


def test_failing_attention_checks_at_once_ends_on_a_page_without_a_way_back():
    study = factories.running_study(attention_policy=AttentionPolicy.END_AT_ONCE)
    visitor = Visitor(study)
    participation = visitor.at(Step.MAIN)
    while participation.step == Step.MAIN:
        trial = walks.current_trial(participation)
        is_check = trial.kind != TrialKind.IMAGE
        answer = visitor.rate(trial.token, walks.wrong_value(trial) if is_check else 0)
        participation.refresh_from_db()
    assert answer.json()["trial"] is None
    response = visitor.page()
    assert 'data-outcome="attention_failed"' in response.content.decode()
    assert visitor.image("trial", trial.token).status_code == 404
    assert visitor.rate(trial.token, 0).status_code == 409
    for step in Step:
        assert_to_run(visitor.post(step.value, decision="accept"), study)
    assert_step(visitor.page(), Step.END)


@pytest.mark.parametrize(
    ("preset", "value", "text"),
    [
        ("paper", 75, "Please move the slider to +75 and continue."),
        ("paper", -100, "Please move the slider to −100, the left end, and continue."),
        ("field", 2, "Please choose +2, the right end, and continue."),
    ],
)
def test_an_instructed_item_says_what_to_answer(preset, value, text):
    visitor = Visitor(factories.running_study(preset))
    participation = visitor.at(Step.MAIN)
    instructed = participation.trials.get(kind=TrialKind.INSTRUCTED)
    Trial.objects.filter(pk=instructed.pk).update(instructed_value=value)
    while (trial := walks.current_trial(participation)).kind != TrialKind.INSTRUCTED:
        participation = walks.rate(participation)
    data = visitor.page().context["data"]["trial"]
    assert data["text"].endswith(text)
    assert data["image"] is None
    assert visitor.image("trial", trial.token).status_code == 404
