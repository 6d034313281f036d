"""What is due by which way: every state, every outcome, and the money exact."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies.flow import Outcome
from studies.pay import Rates, amount_due
from studies.recruitment.money import to_major, to_minor
from studies.recruitment.payments import (
    GROUNDS,
    Instruction,
    Standing,
    Terms,
    Way,
    bonuses_of,
    failures_for_rejection,
    instructions,
    rejection_refusals,
)
from studies.recruitment.review import REWARDED, SCREENED, Here, Offer, Reason, meaning
from studies.recruitment.statuses import NO_CODE, SubmissionStatus

DUE = dict.fromkeys(Outcome, 0) | {
    Outcome.COMPLETED: 165,
    Outcome.ATTENTION_FAILED: 165,
    Outcome.COMPREHENSION_FAILED: 32,
    Outcome.COLOUR_CHECK_FAILED: 13,
}
TERMS = Terms(reward_minor=165, due_minor=DUE, fixed_minor=13)
WAITING, RETURNED, APPROVED = SubmissionStatus.AWAITING_REVIEW, SubmissionStatus.RETURNED, SubmissionStatus.APPROVED


def standing(status, outcome, code="CODE", **fields) -> Standing:
    return Standing(status, code, Here(arrived=True, outcome=outcome, code="CODE"), **fields)


def paid(one, terms=TERMS, already=None) -> list[tuple[Way, int]]:
    return [(each.way, each.amount_minor) for each in instructions(one, terms, already=already)]


@pytest.mark.parametrize("outcome", sorted(REWARDED))
def test_who_earned_the_reward_is_approved(outcome):
    assert paid(standing(WAITING, outcome)) == [(Way.APPROVE, 165)]


@pytest.mark.parametrize(("outcome", "amount"), [("comprehension_failed", 32), ("colour_check_failed", 13)])
def test_who_was_screened_out_returns_first_and_then_gets_a_bonus(outcome, amount):
    assert paid(standing(WAITING, Outcome(outcome))) == [(Way.RETURN, 0)]
    assert paid(standing(WAITING, Outcome(outcome), return_requested=True)) == []
    assert paid(standing(RETURNED, Outcome(outcome))) == [(Way.BONUS, amount)]


def test_what_the_service_paid_is_not_paid_again():
    assert paid(standing(SubmissionStatus.SCREENED_OUT, Outcome.COLOUR_CHECK_FAILED)) == []
    assert paid(standing(APPROVED, Outcome.COMPLETED)) == []
    assert paid(standing(APPROVED, Outcome.COLOUR_CHECK_FAILED)) == []
    assert paid(standing(RETURNED, Outcome.COLOUR_CHECK_FAILED, bonuses_minor=(13,))) == []


def test_what_we_paid_is_not_paid_again():
    assert paid(standing(WAITING, Outcome.COMPLETED), already={Way.APPROVE: 165}) == []
    assert paid(standing(RETURNED, Outcome.COLOUR_CHECK_FAILED), already={Way.RETURN: 0, Way.BONUS: 13}) == []
    assert paid(standing(RETURNED, Outcome.COLOUR_CHECK_FAILED), already={Way.RETURN: 0}) == [(Way.BONUS, 13)]
    assert paid(standing(WAITING, Outcome.COMPLETED), already={Way.REJECT: 0}) == []


def test_a_reward_that_is_too_small_is_topped_up():
    """The reward is fixed once the study is published; the study's own rates are what participants were promised."""
    small = Terms(reward_minor=150, due_minor=DUE, fixed_minor=13)
    assert paid(standing(WAITING, Outcome.COMPLETED), small) == [(Way.APPROVE, 150), (Way.BONUS, 15)]
    assert paid(standing(APPROVED, Outcome.COMPLETED), small) == [(Way.BONUS, 15)]
    assert paid(standing(APPROVED, Outcome.COMPLETED), small, already={Way.APPROVE: 150, Way.BONUS: 15}) == []
    large = Terms(reward_minor=200, due_minor=DUE, fixed_minor=13)
    assert paid(standing(WAITING, Outcome.COMPLETED), large) == [(Way.APPROVE, 200)]


def test_contradictions_wait_for_a_person_and_then_do_what_they_said():
    assert paid(standing(WAITING, Outcome.COMPLETED, code=NO_CODE)) == []
    said = {"settled_reason": Reason.NO_CODE, "settled_with": Offer.APPROVE}
    assert paid(standing(WAITING, Outcome.COMPLETED, code=NO_CODE, **said)) == [(Way.APPROVE, 165)]
    said = {"settled_reason": Reason.NO_CODE, "settled_with": Offer.NOTHING}
    assert paid(standing(WAITING, Outcome.COMPLETED, code=NO_CODE, **said)) == []
    # Decided about something else: it does not hold.
    said = {"settled_reason": Reason.NO_CODE, "settled_with": Offer.APPROVE}
    assert paid(standing(WAITING, Outcome.COMPLETED, code="OTHER", **said)) == []
    said = {"settled_reason": Reason.RETURNED_AFTER_END, "settled_with": Offer.BONUS}
    assert paid(standing(RETURNED, Outcome.COMPLETED, **said)) == [(Way.BONUS, 165)]


TIMED_OUT, REJECTED = SubmissionStatus.TIMED_OUT, SubmissionStatus.REJECTED


def decided(reason, offer) -> dict[str, str]:
    return {"settled_reason": reason, "settled_with": offer}


@pytest.mark.parametrize("reason", [Reason.TIMED_OUT_AFTER_END, Reason.REJECTED_ELSEWHERE, Reason.RETURNED_AFTER_END])
def test_a_bonus_in_place_of_the_reward_keeps_back_a_later_approval(reason):
    """A person has a bonus paid; then it is handed in after all, or the rejection is taken back."""
    waits = {"already": {Way.BONUS: 165}}
    bonus = decided(reason, Offer.BONUS)
    assert paid(standing(WAITING, Outcome.COMPLETED, **bonus), **waits) == []  # only in a run so far
    assert paid(standing(WAITING, Outcome.COMPLETED, our_bonus_minor=165, **bonus), **waits) == []
    assert paid(standing(WAITING, Outcome.COMPLETED, our_bonus_minor=165, bonuses_minor=(165,), **bonus), **waits) == []
    said = decided(Reason.SUBMITTED_AFTER_BONUS, Offer.APPROVE)
    assert paid(standing(WAITING, Outcome.COMPLETED, our_bonus_minor=165, **said), **waits) == [(Way.APPROVE, 165)]


def test_an_approval_that_is_under_way_keeps_back_a_bonus_in_its_place():
    bonus = decided(Reason.RETURNED_AFTER_END, Offer.BONUS)
    assert paid(standing(RETURNED, Outcome.COMPLETED, **bonus), already={Way.APPROVE: 165}) == []


def test_what_the_reward_lacks_keeps_back_nothing():
    small = Terms(reward_minor=150, due_minor=DUE, fixed_minor=13)
    one = standing(WAITING, Outcome.COMPLETED, our_bonus_minor=15, bonuses_minor=(15,))
    assert paid(one, small, already={Way.BONUS: 15}) == [(Way.APPROVE, 150)]


def test_no_bonus_while_the_submission_waits_as_it_would_be_approved_in_time():
    bonus = decided(Reason.NO_CODE, Offer.BONUS)
    assert paid(standing(WAITING, Outcome.COLOUR_CHECK_FAILED, code=NO_CODE, **bonus)) == []
    assert paid(standing(RETURNED, Outcome.COLOUR_CHECK_FAILED, code=NO_CODE, **bonus)) == [(Way.BONUS, 13)]


def test_who_failed_a_check_and_timed_out_is_paid_when_a_person_says_so():
    """They may still come with the code, and be paid the fixed amount by the service."""
    assert paid(standing(TIMED_OUT, Outcome.COLOUR_CHECK_FAILED)) == []
    bonus = decided(Reason.TIMED_OUT_AFTER_END, Offer.BONUS)
    assert paid(standing(TIMED_OUT, Outcome.COLOUR_CHECK_FAILED, **bonus)) == [(Way.BONUS, 13)]


def test_a_bonus_paid_by_hand_is_added_to_when_a_person_says_so():
    by_hand = {"bonuses_minor": (20,)}
    said = decided(Reason.BONUS_BY_HAND, Offer.BONUS)
    assert paid(standing(RETURNED, Outcome.COLOUR_CHECK_FAILED, **by_hand, **said)) == [(Way.BONUS, 13)]
    assert paid(standing(WAITING, Outcome.COMPLETED, **by_hand)) == []
    small = Terms(reward_minor=150, due_minor=DUE, fixed_minor=13)
    assert paid(standing(APPROVED, Outcome.COMPLETED, **by_hand), small) == []
    assert paid(standing(APPROVED, Outcome.COMPLETED, **by_hand, **said), small) == [(Way.BONUS, 15)]


def test_a_full_run_that_was_screened_out_gets_the_difference():
    said = {"settled_reason": Reason.PAID_ELSEWHERE, "settled_with": Offer.BONUS}
    assert paid(standing(SubmissionStatus.SCREENED_OUT, Outcome.COMPLETED, **said)) == [(Way.BONUS, 152)]


# Whether an example is slow depends on what else the machine does.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
statuses = st.sampled_from(SubmissionStatus)
standings = st.builds(
    Standing,
    status=statuses,
    entered_code=st.sampled_from(["", NO_CODE, "CODE", "OTHER"]),
    here=st.builds(
        Here, arrived=st.booleans(), outcome=st.none() | st.sampled_from(Outcome), code=st.sampled_from(["CODE", ""])
    ),
    settled_reason=st.sampled_from(["", *Reason]),
    settled_with=st.sampled_from(["", *Offer]),
    return_requested=st.booleans(),
    bonuses_minor=st.lists(st.integers(1, 500), max_size=2).map(tuple),
    our_bonus_minor=st.integers(0, 500),
)
terms = st.builds(
    lambda reward, due, early, fixed: Terms(
        reward, DUE | dict.fromkeys(REWARDED, due) | dict.fromkeys(SCREENED, early), fixed
    ),
    st.integers(1, 500),
    st.integers(0, 500),
    st.integers(0, 100),
    st.integers(0, 100),
)


@unhurried
@given(standings, terms, st.dictionaries(st.sampled_from(Way), st.integers(0, 500)))
def test_whatever_the_state_nobody_is_paid_twice_or_too_much(one, terms, already):
    found = instructions(one, terms, already=already)
    ways = [each.way for each in found]
    assert len(set(ways)) == len(ways)
    assert not set(ways) & set(already)
    assert Way.REJECT not in ways  # only ever by a person
    if Way.APPROVE in ways:
        assert one.status == WAITING
    money = sum(each.amount_minor for each in found)
    assert money <= max(terms.reward_minor, *terms.due_minor.values())
    assert all((each.amount_minor == 0) == (each.way == Way.RETURN) for each in found)
    if one.status in {SubmissionStatus.ACTIVE, SubmissionStatus.RESERVED, SubmissionStatus.UNKNOWN}:
        assert found == []


MAY_BECOME = st.lists(
    st.tuples(
        st.sampled_from([WAITING, RETURNED, SubmissionStatus.TIMED_OUT, SubmissionStatus.REJECTED]),
        st.sampled_from([Offer.BONUS, Offer.NOTHING, Offer.REQUEST_RETURN]),
        st.sampled_from(["CODE", NO_CODE]),
        st.sampled_from(["planned", "asked", "shown"]),
    ),
    max_size=8,
)


@unhurried
@given(MAY_BECOME, st.sampled_from(sorted(REWARDED | SCREENED)), terms)
def test_whatever_states_follow_each_other_nobody_gets_more_than_is_due_once(states, outcome, terms):
    """A person answers every question; only an approval beside a known bonus, which they may order, is left out.

    What was ordered here is done there a little later, or is given up as long as it is only planned.
    """
    given: dict[Way, int] = {}
    is_asked = is_shown = False
    for status, offer, code, pace in states:
        if status == WAITING and Way.APPROVE in given:
            break  # the service approves it
        ours = given.get(Way.BONUS, 0) if is_asked else 0
        one = standing(status, outcome, code=code, our_bonus_minor=ours, bonuses_minor=(ours,) if is_shown else ())
        read = meaning(status, code, one.here, bonuses_of(one, terms))
        if read.reason and offer in read.offers:
            one = replace(one, settled_reason=read.reason, settled_with=offer)
        for each in instructions(one, terms, already=given):
            given[each.way] = each.amount_minor
        is_asked = is_asked or (Way.BONUS in given and pace != "planned")
        is_shown = is_shown or (is_asked and pace == "shown")
        assert sum(given.values()) <= max(terms.reward_minor, terms.due_minor[outcome])


@unhurried
@given(
    minutes=st.decimals(0, 999, places=2),
    hourly_rate=st.decimals(0, 9999, places=2),
)
def test_amounts_are_whole_pence_within_half_a_penny_of_the_exact_sum(minutes, hourly_rate):
    rates = Rates("GBP", hourly_rate, minutes, Decimal(1), Decimal(2))
    amount = amount_due(Outcome.COMPLETED, rates)
    assert to_major(to_minor(amount)) == amount
    exact = minutes * hourly_rate
    assert abs(amount * 60 - exact) <= Decimal("0.30")
    # Half a penny goes up.
    assert amount == (exact / 60).quantize(Decimal("0.01"), ROUND_HALF_UP)


@unhurried
@given(st.integers(0, 10**9))
def test_pence_survive_the_way_to_pounds_and_back(minor):
    assert to_minor(to_major(minor)) == minor


MESSAGE = (
    "You failed the attention checks at items 12 and 57, which said in words which end of the scale to choose there."
)


def test_a_rejection_needs_two_failed_checks_in_a_long_study():
    assert failures_for_rejection(4.99) == 1
    assert failures_for_rejection(5) == 2
    assert rejection_refusals(Outcome.ATTENTION_FAILED, 2, 13, "FAILED_CHECK", MESSAGE) == []
    assert rejection_refusals(Outcome.ATTENTION_FAILED, 1, 4, "FAILED_CHECK", MESSAGE) == []
    (problem,) = rejection_refusals(Outcome.ATTENTION_FAILED, 1, 13, "FAILED_CHECK", MESSAGE)
    assert problem.startswith("1 attention check failed: in a study of 13 minutes Prolific allows a rejection from 2")


@pytest.mark.parametrize("outcome", [*sorted(SCREENED), Outcome.DECLINED, Outcome.RETURNED, None])
def test_nobody_is_rejected_for_an_early_check_or_for_leaving(outcome):
    assert rejection_refusals(outcome, 6, 13, "FAILED_CHECK", MESSAGE)


def test_a_rejection_needs_a_ground_and_a_hundred_characters():
    assert len(rejection_refusals(Outcome.ATTENTION_FAILED, 3, 13, "TOO_QUICKLY", MESSAGE)) == 1
    (problem,) = rejection_refusals(Outcome.ATTENTION_FAILED, 3, 13, "LOW_EFFORT", "x" * 99)
    assert "99 characters" in problem
    assert rejection_refusals(Outcome.ATTENTION_FAILED, 3, 13, "LOW_EFFORT", "x" * 100) == []
    assert set(GROUNDS) == {"FAILED_CHECK", "LOW_EFFORT", "FAILED_INSTRUCTIONS"}


def test_instructions_say_why():
    said = {"settled_reason": Reason.NO_CODE, "settled_with": Offer.APPROVE}
    assert instructions(standing(WAITING, Outcome.COMPLETED, code=NO_CODE, **said), TERMS) == [
        Instruction(Way.APPROVE, 165, "Completed; a person decided to approve")
    ]
