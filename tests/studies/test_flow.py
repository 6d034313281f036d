import itertools

import pytest

from studies.flow import (
    CameInLaterSession,
    Consented,
    Declined,
    FeedbackGiven,
    IllegalTransition,
    InstructionsRead,
    NotSeenForLong,
    Outcome,
    PairsAnswered,
    PlatesAnswered,
    Position,
    Returned,
    Rules,
    Step,
    TrialAnswered,
    next_step,
    steps_of,
)

PAPER = {
    "plate_count": 5,
    "plates_required": 5,
    "pair_count": 6,
    "pairs_required": 5,
    "comprehension_tries": 1,
    "attention_failures_allowed": 1,
    "end_at_once": False,
}


def rules(**changes):
    return Rules(**{**PAPER, **changes})


def end(outcome):
    return Position(Step.END, outcome)


LEGAL = [
    *[
        (step, CameInLaterSession(attention_failures=2), rules(), end(Outcome.REPLACED))
        for step in Step
        if step not in {Step.FEEDBACK, Step.END}
    ],
    *[(step, Returned(), rules(), end(Outcome.RETURNED)) for step in Step if step != Step.END],
    (Step.CONSENT, Declined(), rules(), end(Outcome.DECLINED)),
    (Step.CONSENT, Consented(), rules(), Position(Step.COLOUR_CHECK)),
    (Step.CONSENT, Consented(), rules(plate_count=0, plates_required=0), Position(Step.INSTRUCTIONS)),
    (Step.COLOUR_CHECK, PlatesAnswered(correct=5), rules(), Position(Step.INSTRUCTIONS)),
    (Step.COLOUR_CHECK, PlatesAnswered(correct=4), rules(), end(Outcome.COLOUR_CHECK_FAILED)),
    (Step.COLOUR_CHECK, PlatesAnswered(correct=4), rules(plates_required=4), Position(Step.INSTRUCTIONS)),
    (Step.COLOUR_CHECK, PlatesAnswered(correct=0), rules(plates_required=0), Position(Step.INSTRUCTIONS)),
    (Step.INSTRUCTIONS, InstructionsRead(), rules(), Position(Step.COMPREHENSION)),
    (Step.INSTRUCTIONS, InstructionsRead(), rules(pair_count=0, pairs_required=0), Position(Step.MAIN)),
    (Step.COMPREHENSION, PairsAnswered(correct=5, attempt=1), rules(), Position(Step.MAIN)),
    (Step.COMPREHENSION, PairsAnswered(correct=4, attempt=1), rules(), end(Outcome.COMPREHENSION_FAILED)),
    (
        Step.COMPREHENSION,
        PairsAnswered(correct=4, attempt=1),
        rules(comprehension_tries=2),
        Position(Step.INSTRUCTIONS),
    ),
    (Step.COMPREHENSION, PairsAnswered(correct=6, attempt=2), rules(comprehension_tries=2), Position(Step.MAIN)),
    (
        Step.COMPREHENSION,
        PairsAnswered(correct=4, attempt=2),
        rules(comprehension_tries=2),
        end(Outcome.COMPREHENSION_FAILED),
    ),
    (Step.MAIN, TrialAnswered(is_last=False, attention_failures=0), rules(), Position(Step.MAIN)),
    (Step.MAIN, TrialAnswered(is_last=False, attention_failures=6), rules(), Position(Step.MAIN)),
    (Step.MAIN, TrialAnswered(is_last=True, attention_failures=6), rules(), Position(Step.FEEDBACK)),
    (Step.MAIN, TrialAnswered(is_last=False, attention_failures=1), rules(end_at_once=True), Position(Step.MAIN)),
    (
        Step.MAIN,
        TrialAnswered(is_last=False, attention_failures=2),
        rules(end_at_once=True),
        end(Outcome.ATTENTION_FAILED),
    ),
    (
        Step.MAIN,
        TrialAnswered(is_last=True, attention_failures=1),
        rules(end_at_once=True, attention_failures_allowed=0),
        end(Outcome.ATTENTION_FAILED),
    ),
    (Step.FEEDBACK, FeedbackGiven(attention_failures=0), rules(), end(Outcome.COMPLETED)),
    (Step.FEEDBACK, FeedbackGiven(attention_failures=1), rules(), end(Outcome.COMPLETED)),
    (Step.FEEDBACK, FeedbackGiven(attention_failures=2), rules(), end(Outcome.ATTENTION_FAILED)),
    (Step.FEEDBACK, NotSeenForLong(attention_failures=1), rules(), end(Outcome.COMPLETED)),
    (Step.FEEDBACK, NotSeenForLong(attention_failures=2), rules(), end(Outcome.ATTENTION_FAILED)),
    (Step.FEEDBACK, CameInLaterSession(attention_failures=1), rules(), end(Outcome.COMPLETED)),
    (Step.FEEDBACK, CameInLaterSession(attention_failures=2), rules(), end(Outcome.ATTENTION_FAILED)),
]


@pytest.mark.parametrize(("step", "happening", "study_rules", "expected"), LEGAL)
def test_where_each_happening_leads(step, happening, study_rules, expected):
    assert next_step(step, happening, study_rules) == expected


BEFORE_FEEDBACK = [step for step in Step if step not in {Step.FEEDBACK, Step.END}]


@pytest.mark.parametrize("step", BEFORE_FEEDBACK)
def test_who_is_not_seen_for_long_times_out_wherever_they_are(step):
    assert next_step(step, NotSeenForLong(attention_failures=0), rules()) == end(Outcome.TIMED_OUT)


HAPPENINGS = {type(happening): happening for _, happening, _, _ in LEGAL}
POSSIBLE = {(step, type(happening)) for step, happening, _, _ in LEGAL}
POSSIBLE |= {(step, NotSeenForLong) for step in BEFORE_FEEDBACK}


@pytest.mark.parametrize(
    ("step", "kind"), [pair for pair in itertools.product(Step, HAPPENINGS) if pair not in POSSIBLE]
)
def test_everything_else_is_refused(step, kind):
    with pytest.raises(IllegalTransition, match=step.value):
        next_step(step, HAPPENINGS[kind], rules())


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ({}, set()),
        ({"plate_count": 0}, {Step.COLOUR_CHECK}),
        ({"pair_count": 0}, {Step.COMPREHENSION}),
        ({"plate_count": 0, "pair_count": 0}, {Step.COLOUR_CHECK, Step.COMPREHENSION}),
    ],
)
def test_a_check_without_items_is_no_step_of_the_study(changes, left_out):
    assert steps_of(rules(**changes)) == [step for step in Step if step not in {*left_out, Step.END}]


def test_an_outcome_comes_with_the_end_and_only_with_it():
    positions = [next_step(step, happening, study_rules) for step, happening, study_rules, _ in LEGAL]
    assert all((position.outcome is not None) == (position.step == Step.END) for position in positions)
