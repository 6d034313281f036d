"""Answering plates and pairs before the main study: each answer once, judged after the last."""

import pytest

from studies import selectors
from studies.flow import Outcome, Step
from studies.services.participations import InvalidAnswer, answer_pair, answer_plate, finish_instructions
from tests import factories, walks

pytestmark = pytest.mark.django_db


def test_plates_have_one_blank_and_are_answered_one_at_a_time(study):
    participation = walks.consent(walks.enter(study))
    plates = list(participation.plate_trials.select_related("plate"))
    assert [plate.plate.digit for plate in plates].count(None) == 1
    with pytest.raises(InvalidAnswer):
        answer_plate(participation.pk, plates[1].token, "3")
    first = selectors.current_plate(participation)
    participation = answer_plate(participation.pk, first.token, "0")
    assert selectors.current_plate(participation).position == 2
    assert selectors.progress(participation) == selectors.Progress(done=1, total=3)


def test_a_plate_answered_with_0_is_answered(study):
    participation = walks.consent(walks.enter(study))
    plate = selectors.current_plate(participation)
    answer_plate(participation.pk, plate.token, "0")
    plate.refresh_from_db()
    assert plate.answer == "0"
    assert plate.answered_at is not None


def test_the_first_answer_to_a_plate_stands(study):
    participation = walks.consent(walks.enter(study))
    plate = selectors.current_plate(participation)
    for answer in ("none", "4", "none"):
        answer_plate(participation.pk, plate.token, answer)
    plate.refresh_from_db()
    assert plate.answer == "none"


@pytest.mark.parametrize("answer", ["", "10", "x", "None", "-1", "٣"])
def test_malformed_plate_answers_are_refused(study, answer):
    participation = walks.consent(walks.enter(study))
    plate = selectors.current_plate(participation)
    with pytest.raises(InvalidAnswer):
        answer_plate(participation.pk, plate.token, answer)
    plate.refresh_from_db()
    assert plate.answered_at is None


def test_the_colour_check_is_judged_after_the_last_plate(study):
    participation = walks.answer_plates(walks.consent(walks.enter(study)), wrong=1)
    assert participation.plate_trials.filter(answered_at__isnull=False).count() == 3
    assert (participation.step, participation.outcome) == (Step.END, Outcome.COLOUR_CHECK_FAILED)
    assert participation.completion_code.outcome == Outcome.COLOUR_CHECK_FAILED


def test_a_study_without_plates_and_pairs_goes_straight_on():
    study = factories.running_study(
        plate_count=0, plates_required=0, comprehension_pair_count=0, comprehension_required=0
    )
    participation = walks.consent(walks.enter(study))
    assert participation.step == Step.INSTRUCTIONS
    assert finish_instructions(participation.pk).step == Step.MAIN


def test_pairs_are_judged_after_the_last_one(study):
    participation = walks.answer_pairs(walks.answer_plates(walks.consent(walks.enter(study))), wrong=1)
    assert (participation.step, participation.outcome) == (Step.END, Outcome.COMPREHENSION_FAILED)
    assert participation.pair_trials.count() == 3


def test_pairs_show_the_unmodified_and_the_modified_version_of_one_image(study):
    participation = finish_instructions(walks.answer_plates(walks.consent(walks.enter(study))).pk)
    for pair in participation.pair_trials.select_related("clean_stimulus", "modified_stimulus"):
        assert pair.clean_stimulus.modification == "none"
        assert pair.modified_stimulus.modification == pair.modified_stimulus.pair_modification != "none"
        assert pair.clean_stimulus.source == pair.modified_stimulus.source


def test_another_try_has_new_pairs_and_the_first_ones_are_past():
    study = factories.running_study(comprehension_tries=2)
    participation = walks.answer_pairs(walks.answer_plates(walks.consent(walks.enter(study))), wrong=2)
    assert (participation.step, participation.comprehension_attempt) == (Step.INSTRUCTIONS, 2)
    old = participation.pair_trials.first()
    assert answer_pair(participation.pk, old.token, "left").step == Step.INSTRUCTIONS
    participation = walks.answer_pairs(participation)
    assert participation.step == Step.MAIN
    assert participation.pair_trials.filter(attempt=2).count() == 3
    assert not set(participation.pair_trials.filter(attempt=1).values_list("token")) & set(
        participation.pair_trials.filter(attempt=2).values_list("token")
    )


def test_the_last_try_is_the_last():
    study = factories.running_study(comprehension_tries=2)
    participation = walks.answer_plates(walks.consent(walks.enter(study)))
    for _ in range(2):
        participation = walks.answer_pairs(participation, wrong=3)
    assert participation.outcome == Outcome.COMPREHENSION_FAILED


def test_malformed_pair_answers_are_refused(study):
    participation = finish_instructions(walks.answer_plates(walks.consent(walks.enter(study))).pk)
    with pytest.raises(InvalidAnswer, match="left or right"):
        answer_pair(participation.pk, selectors.current_pair(participation).token, "middle")
