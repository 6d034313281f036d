"""The table of what states mean; every state with everything that can have happened here."""

from dataclasses import replace

import pytest

from studies.flow import Outcome
from studies.recruitment.review import ABSENT, Bonuses, Here, Offer, Pay, Reason, meaning
from studies.recruitment.statuses import SubmissionStatus as Status

INSIDE = Here(arrived=True)
DONE = Here(arrived=True, outcome=Outcome.COMPLETED, code="GOOD")
INATTENTIVE = Here(arrived=True, outcome=Outcome.ATTENTION_FAILED, code="GOOD")
SCREENED = Here(arrived=True, outcome=Outcome.COLOUR_CHECK_FAILED, code="GOOD")
DECLINED = Here(arrived=True, outcome=Outcome.DECLINED, code="GOOD")
REPLACED = Here(arrived=True, outcome=Outcome.REPLACED)
# The same, with a link that named somebody else than the panel does.
OTHER_DONE, OTHER_SCREENED, OTHER_DECLINED = (replace(one, is_other_person=True) for one in (DONE, SCREENED, DECLINED))


@pytest.mark.parametrize(
    ("status", "code", "here", "frees", "pay", "reason"),
    [
        (Status.RESERVED, "", ABSENT, False, Pay.WAIT, None),
        (Status.ACTIVE, "", DONE, False, Pay.WAIT, None),
        (Status.AWAITING_REVIEW, "GOOD", DONE, False, Pay.DUE, None),
        (Status.AWAITING_REVIEW, "GOOD", INATTENTIVE, False, Pay.DUE, None),
        (Status.AWAITING_REVIEW, "GOOD", SCREENED, False, Pay.DUE, None),
        (Status.AWAITING_REVIEW, "NOCODE", DONE, False, Pay.ASK, Reason.NO_CODE),
        (Status.AWAITING_REVIEW, "", DONE, False, Pay.ASK, Reason.NO_CODE),
        (Status.AWAITING_REVIEW, "NOCODE", SCREENED, False, Pay.ASK, Reason.NO_CODE),
        (Status.AWAITING_REVIEW, "STOLEN", SCREENED, False, Pay.ASK, Reason.OTHER_CODE),
        (Status.AWAITING_REVIEW, "GOOD", DECLINED, False, Pay.ASK, Reason.NOT_RETURNED),
        (Status.AWAITING_REVIEW, "NOCODE", REPLACED, False, Pay.ASK, Reason.NOT_RETURNED),
        (Status.AWAITING_REVIEW, "NOCODE", INSIDE, False, Pay.ASK, Reason.UNFINISHED_HERE),
        (Status.AWAITING_REVIEW, "GOOD", ABSENT, False, Pay.ASK, Reason.NEVER_ARRIVED),
        (Status.APPROVED, "GOOD", DONE, False, Pay.DONE, None),
        (Status.PARTIALLY_APPROVED, "GOOD", INATTENTIVE, False, Pay.DONE, Reason.PAID_IN_PART),
        (Status.APPROVED, "GOOD", SCREENED, False, Pay.DONE, Reason.PAID_ELSEWHERE),
        (Status.APPROVED, "", ABSENT, False, Pay.DONE, Reason.PAID_ELSEWHERE),
        (Status.APPROVED, "", INSIDE, False, Pay.DONE, Reason.PAID_ELSEWHERE),
        (Status.SCREENED_OUT, "GOOD", SCREENED, False, Pay.DONE, None),
        (Status.SCREENED_OUT, "GOOD", DONE, False, Pay.DONE, Reason.PAID_ELSEWHERE),
        (Status.REJECTED, "GOOD", DONE, True, Pay.NOTHING, Reason.REJECTED_ELSEWHERE),
        (Status.REJECTED, "", INSIDE, True, Pay.NOTHING, None),
        (Status.RETURNED, "", INSIDE, True, Pay.NOTHING, None),
        (Status.RETURNED, "", ABSENT, True, Pay.NOTHING, None),
        (Status.RETURNED, "", DECLINED, True, Pay.NOTHING, None),
        (Status.RETURNED, "", SCREENED, True, Pay.DUE, None),
        (Status.RETURNED, "GOOD", DONE, True, Pay.ASK, Reason.RETURNED_AFTER_END),
        (Status.TIMED_OUT, "", INSIDE, True, Pay.NOTHING, None),
        (Status.TIMED_OUT, "", SCREENED, True, Pay.ASK, Reason.TIMED_OUT_AFTER_END),
        (Status.TIMED_OUT, "", DONE, True, Pay.ASK, Reason.TIMED_OUT_AFTER_END),
        (Status.ACTIVE, "", OTHER_DONE, False, Pay.WAIT, None),
        (Status.AWAITING_REVIEW, "GOOD", OTHER_DONE, False, Pay.ASK, Reason.OTHER_PERSON),
        (Status.AWAITING_REVIEW, "NOCODE", OTHER_SCREENED, False, Pay.ASK, Reason.OTHER_PERSON),
        (Status.APPROVED, "GOOD", OTHER_DONE, False, Pay.DONE, Reason.OTHER_PERSON),
        (Status.APPROVED, "GOOD", OTHER_SCREENED, False, Pay.DONE, Reason.PAID_ELSEWHERE),
        (Status.SCREENED_OUT, "GOOD", OTHER_SCREENED, False, Pay.DONE, Reason.OTHER_PERSON),
        (Status.RETURNED, "", OTHER_SCREENED, True, Pay.ASK, Reason.OTHER_PERSON),
        (Status.RETURNED, "", OTHER_DECLINED, True, Pay.NOTHING, None),
        (Status.TIMED_OUT, "", OTHER_DONE, True, Pay.ASK, Reason.OTHER_PERSON),
        (Status.REJECTED, "", OTHER_DONE, True, Pay.NOTHING, Reason.REJECTED_ELSEWHERE),
        (Status.UNKNOWN, "", DONE, False, Pay.ASK, Reason.UNKNOWN_STATE),
        (Status.UNKNOWN, "", ABSENT, False, Pay.ASK, Reason.UNKNOWN_STATE),
    ],
)
def test_table(status, code, here, frees, pay, reason):
    found = meaning(status, code, here)
    assert (found.frees_place, found.pay, found.reason) == (frees, pay, reason)


@pytest.mark.parametrize(
    ("status", "here", "bonuses", "pay", "reason"),
    [
        (Status.AWAITING_REVIEW, DONE, Bonuses(ours=True), Pay.DUE, None),  # what the reward lacks
        (Status.AWAITING_REVIEW, DONE, Bonuses(ours=True, too_much=True), Pay.ASK, Reason.SUBMITTED_AFTER_BONUS),
        (Status.AWAITING_REVIEW, SCREENED, Bonuses(by_hand=True), Pay.ASK, Reason.SUBMITTED_AFTER_BONUS),
        (Status.APPROVED, DONE, Bonuses(ours=True, too_much=True), Pay.DONE, Reason.PAID_TWICE),
        (Status.SCREENED_OUT, SCREENED, Bonuses(ours=True, too_much=True), Pay.DONE, Reason.PAID_TWICE),
        (Status.SCREENED_OUT, DONE, Bonuses(ours=True), Pay.DONE, None),  # the difference, as a person said
        (Status.RETURNED, SCREENED, Bonuses(by_hand=True), Pay.ASK, Reason.BONUS_BY_HAND),
        (Status.RETURNED, DONE, Bonuses(by_hand=True), Pay.ASK, Reason.BONUS_BY_HAND),
        (Status.RETURNED, DONE, Bonuses(ours=True), Pay.DONE, None),
        (Status.RETURNED, DECLINED, Bonuses(by_hand=True), Pay.NOTHING, None),
        (Status.APPROVED, DONE, Bonuses(by_hand=True), Pay.DONE, None),
        (Status.AWAITING_REVIEW, OTHER_DONE, Bonuses(by_hand=True), Pay.ASK, Reason.SUBMITTED_AFTER_BONUS),
        (Status.RETURNED, OTHER_SCREENED, Bonuses(by_hand=True), Pay.ASK, Reason.BONUS_BY_HAND),
        (Status.RETURNED, OTHER_SCREENED, Bonuses(ours=True), Pay.DONE, None),  # as a person said
        (Status.APPROVED, DONE, Bonuses(by_hand=True, is_lacking=True), Pay.ASK, Reason.BONUS_BY_HAND),
    ],
)
def test_bonuses_stand_in_the_way_of_more_pay(status, here, bonuses, pay, reason):
    found = meaning(status, "GOOD", here, bonuses)
    assert (found.pay, found.reason) == (pay, reason)


def test_no_bonus_is_offered_while_the_service_may_pay_the_reward_too():
    for code in ("", "OTHER"):
        assert Offer.BONUS not in meaning(Status.AWAITING_REVIEW, code, SCREENED).offers


def everything_here():
    yield from (ABSENT, INSIDE)
    for outcome in Outcome:
        for is_other in (False, True):
            code = "GOOD" if outcome.has_code else ""
            yield Here(arrived=True, outcome=outcome, code=code, is_other_person=is_other)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("here", list(everything_here()), ids=str)
@pytest.mark.parametrize("code", ["", "NOCODE", "GOOD", "OTHER"])
@pytest.mark.parametrize("bonuses", [Bonuses(), Bonuses(ours=True, too_much=True), Bonuses(by_hand=True)], ids=str)
def test_every_state_has_a_meaning_and_every_question_an_answer(status, here, code, bonuses):
    found = meaning(status, code, here, bonuses)
    assert (found.reason is not None) == bool(found.offers)
    if found.reason:
        assert Offer.NOTHING in found.offers
        assert found.reason.label
    if found.pay == Pay.ASK:
        assert found.reason is not None
    if here.is_other_person:
        assert found.pay != Pay.DUE
    if found.pay in {Pay.DONE, Pay.NOTHING, Pay.WAIT}:
        assert Offer.APPROVE not in found.offers  # nobody is paid the reward twice
