"""The table of what states mean; every state with everything that can have happened here."""

import pytest

from studies.flow import Outcome
from studies.recruitment.review import ABSENT, Here, Offer, Pay, Reason, meaning
from studies.recruitment.statuses import SubmissionStatus as Status

INSIDE = Here(arrived=True)
DONE = Here(arrived=True, outcome=Outcome.COMPLETED, code="GOOD")
INATTENTIVE = Here(arrived=True, outcome=Outcome.ATTENTION_FAILED, code="GOOD")
SCREENED = Here(arrived=True, outcome=Outcome.COLOUR_CHECK_FAILED, code="GOOD")
DECLINED = Here(arrived=True, outcome=Outcome.DECLINED, code="GOOD")
REPLACED = Here(arrived=True, outcome=Outcome.REPLACED)


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
        (Status.PARTIALLY_APPROVED, "GOOD", INATTENTIVE, False, Pay.DONE, None),
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
        (Status.TIMED_OUT, "", SCREENED, True, Pay.DUE, None),
        (Status.TIMED_OUT, "", DONE, True, Pay.ASK, Reason.TIMED_OUT_AFTER_END),
        (Status.UNKNOWN, "", DONE, False, Pay.ASK, Reason.UNKNOWN_STATE),
        (Status.UNKNOWN, "", ABSENT, False, Pay.ASK, Reason.UNKNOWN_STATE),
    ],
)
def test_table(status, code, here, frees, pay, reason):
    found = meaning(status, code, here)
    assert (found.frees_place, found.pay, found.reason) == (frees, pay, reason)


def everything_here():
    yield from (ABSENT, INSIDE)
    for outcome in Outcome:
        yield Here(arrived=True, outcome=outcome, code="GOOD" if outcome.has_code else "")


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("here", list(everything_here()), ids=str)
@pytest.mark.parametrize("code", ["", "NOCODE", "GOOD", "OTHER"])
def test_every_state_has_a_meaning_and_every_question_an_answer(status, here, code):
    found = meaning(status, code, here)
    assert (found.reason is not None) == bool(found.offers)
    if found.reason:
        assert Offer.NOTHING in found.offers
        assert found.reason.label
    if found.pay == Pay.ASK:
        assert found.reason is not None
    if found.pay in {Pay.DONE, Pay.NOTHING, Pay.WAIT}:
        assert Offer.APPROVE not in found.offers  # nobody is paid the reward twice
