"""The main study: what is shown, each rating once, and the attention checks in between."""

import uuid

import pytest

from studies.flow import Outcome, Step
from studies.models import Rating, Stimulus, TrialKind
from studies.services.participations import InvalidAnswer, Timings, give_feedback
from tests import factories, walks

pytestmark = pytest.mark.django_db


def test_images_and_checks_of_a_participant_are_those_of_the_dataset(study):
    participation = walks.to_main(study)
    images = set(participation.trials.filter(kind=TrialKind.IMAGE).values_list("image_id", flat=True))
    assert images == set(participation.dataset.dataset_images.values_list("image_id", flat=True))
    assert set(participation.trials.filter(kind=TrialKind.CORRUPTED).values_list("stimulus_id", flat=True)) == set(
        Stimulus.objects.filter(study=study, purpose="attention").values_list("id", flat=True)
    )
    assert list(participation.trials.values_list("position", flat=True)) == list(range(1, study.trial_count + 1))


def test_the_order_differs_between_participants():
    study = factories.running_study(dataset_count=1, clean_per_dataset=10, modified_per_dataset=10)
    orders = [list(walks.to_main(study).trials.values_list("image_id", flat=True)) for _ in range(2)]
    assert orders[0] != orders[1]


def test_trials_cannot_be_rated_before_the_main_study(study):
    participation = walks.consent(walks.enter(study))
    with pytest.raises(InvalidAnswer):
        walks.answer(participation, participation.trials.first().token, 0)


@pytest.mark.parametrize("value", [-100, -1, 0, 1, 100])
def test_a_rating_is_stored_as_given_and_0_is_one(study, value):
    participation = walks.to_main(study)
    trial = walks.current_trial(participation)
    walks.answer(participation, trial.token, value)
    rating = trial.rating
    assert rating.value == value
    assert (rating.response_ms, rating.first_interaction_ms, rating.last_interaction_ms) == (1500, 700, 1200)
    assert rating.focus_losses == 0
    assert walks.current_trial(participation).position == 2


@pytest.mark.parametrize("value", [101, -101, 10**9, 1.0, "5", True, None, float("nan")])
def test_other_values_are_refused(study, value):
    participation = walks.to_main(study)
    trial = walks.current_trial(participation)
    with pytest.raises(InvalidAnswer, match="value must be a whole number from -100 to 100"):
        walks.answer(participation, trial.token, value)
    assert not Rating.objects.exists()


def test_the_first_rating_stands_and_a_repeat_moves_nothing(study):
    participation = walks.to_main(study)
    trial = walks.current_trial(participation)
    for value in (0, 50, -50):
        walks.answer(participation, trial.token, value)
    assert trial.rating.value == 0
    assert Rating.objects.count() == 1
    assert walks.current_trial(participation).position == 2


def test_what_lies_ahead_cannot_be_rated(study):
    participation = walks.to_main(study)
    other = walks.to_main(study)
    tokens = list(participation.trials.values_list("token", flat=True))
    for token in [tokens[1], tokens[-1], uuid.uuid4(), walks.current_trial(other).token]:
        with pytest.raises(InvalidAnswer, match="not been shown"):
            walks.answer(participation, token, 0)
    assert not Rating.objects.exists()


def test_a_strange_measurement_costs_no_answer(study):
    participation = walks.to_main(study)
    trial = walks.current_trial(participation)
    walks.answer(participation, trial.token, 5, Timings(-1, 2**40, None, 10**6))
    rating = Rating.objects.get()
    assert (rating.value, rating.response_ms, rating.first_interaction_ms) == (5, None, 2**31 - 1)
    assert (rating.last_interaction_ms, rating.focus_losses) == (None, None)


@pytest.mark.parametrize("touched_at", [None, -1, True, "7"])
def test_a_scale_that_was_never_touched_gives_no_rating(study, touched_at):
    participation = walks.to_main(study)
    trial = walks.current_trial(participation)
    with pytest.raises(InvalidAnswer, match="touched"):
        walks.answer(participation, trial.token, 0, Timings(900, touched_at, None, 0))
    assert not Rating.objects.exists()
    assert walks.current_trial(participation) == trial


def test_the_position_a_scale_started_at_is_stored_and_must_be_on_it(study):
    participation = walks.to_main(study)
    for start_position in (-100, 0, None):
        trial = walks.current_trial(participation)
        participation = walks.answer(participation, trial.token, 5, start_position=start_position)
        assert trial.rating.start_position == start_position
    trial = walks.current_trial(participation)
    with pytest.raises(InvalidAnswer, match="start_position must be a whole number from -100 to 100, not 101"):
        walks.answer(participation, trial.token, 5, start_position=101)


def test_what_was_shown_when_is_stored(study):
    participation = walks.to_main(study)
    first, second = participation.trials.all()[:2]
    assert first.first_shown_at is not None
    assert second.first_shown_at is None
    walks.rate(participation)
    second.refresh_from_db()
    assert second.first_shown_at >= first.first_shown_at


def test_failed_checks_are_counted_and_exclude_afterwards(study):
    participation = walks.rate_all(walks.to_main(study), failed_checks=1)
    assert (participation.step, participation.attention_failures) == (Step.FEEDBACK, 1)
    participation = give_feedback(participation.pk, {})
    assert (participation.outcome, participation.is_valid) == (Outcome.ATTENTION_FAILED, False)
    assert participation.completion_code.outcome == Outcome.ATTENTION_FAILED


@pytest.mark.parametrize("preset", ["paper", "field"])
def test_as_many_failures_as_allowed_are_forgiven(preset):
    study = factories.running_study(preset, attention_failures_allowed=1)
    assert walks.complete(study, failed_checks=1).outcome == Outcome.COMPLETED
    assert walks.complete(study, failed_checks=2).outcome == Outcome.ATTENTION_FAILED


def test_a_policy_may_end_the_study_at_once():
    study = factories.running_study(attention_policy="end_at_once")
    participation = walks.rate_all(walks.to_main(study), failed_checks=1)
    assert (participation.step, participation.outcome) == (Step.END, Outcome.ATTENTION_FAILED)
    unanswered = participation.trials.filter(rating__isnull=True)
    assert unanswered.exists()
    assert walks.answer(participation, unanswered.first().token, 3).outcome == Outcome.ATTENTION_FAILED
    assert unanswered.count() == participation.trials.count() - Rating.objects.count()


def test_the_tolerance_of_instructed_responses(study):
    participation = walks.to_main(study)
    failures = {}
    for distance in (10, 11):
        trial = participation.trials.get(kind=TrialKind.INSTRUCTED)
        value = trial.instructed_value - distance if trial.instructed_value > 0 else trial.instructed_value + distance
        failures[distance] = study.protocol.check_passed(trial, value, study.setup)
    assert failures == {10: True, 11: False}
