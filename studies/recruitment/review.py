"""What a submission's state on the panel means here: for its place, for pay, and whether a person has to decide.

Whether ratings count is decided here, by answers and people, and never by the panel's state: what contradicts is put
before a person. The table of docs/recruitment.md says the same in words.
"""

from dataclasses import dataclass
from enum import StrEnum

from studies.flow import Outcome
from studies.recruitment.statuses import NO_CODE, SubmissionStatus

REWARDED = {Outcome.COMPLETED, Outcome.ATTENTION_FAILED}
SCREENED = {Outcome.COLOUR_CHECK_FAILED, Outcome.COMPREHENSION_FAILED}


class Pay(StrEnum):
    """Whether money may move for a submission."""

    WAIT = "wait"  # not submitted yet
    DUE = "due"  # what its outcome earns
    DONE = "done"  # the service has paid, whoever told it to: never again
    NOTHING = "nothing"
    ASK = "ask"  # a person decides first


class Reason(StrEnum):
    """Why a person has to look at a submission."""

    NO_CODE = "no_code"
    OTHER_CODE = "other_code"
    UNFINISHED_HERE = "unfinished_here"
    NEVER_ARRIVED = "never_arrived"
    NOT_RETURNED = "not_returned"
    RETURNED_AFTER_END = "returned_after_end"
    TIMED_OUT_AFTER_END = "timed_out_after_end"
    PAID_ELSEWHERE = "paid_elsewhere"
    REJECTED_ELSEWHERE = "rejected_elsewhere"
    UNKNOWN_STATE = "unknown_state"
    SUBMITTED_AFTER_BONUS = "submitted_after_bonus"
    BONUS_BY_HAND = "bonus_by_hand"
    PAID_TWICE = "paid_twice"
    PAID_IN_PART = "paid_in_part"
    OTHER_PERSON = "other_person"

    @property
    def label(self) -> str:
        return {
            Reason.NO_CODE: "Submitted without a code",
            Reason.OTHER_CODE: "Submitted with a code that was not shown to them",
            Reason.UNFINISHED_HERE: "Submitted, but not finished here",
            Reason.NEVER_ARRIVED: "Submitted, but never seen here",
            Reason.NOT_RETURNED: "Submitted instead of returned",
            Reason.RETURNED_AFTER_END: "Returned after finishing here",
            Reason.TIMED_OUT_AFTER_END: "Timed out there, finished here",
            Reason.PAID_ELSEWHERE: "Paid on Prolific, not what is due",
            Reason.REJECTED_ELSEWHERE: "Rejected on Prolific",
            Reason.UNKNOWN_STATE: "In a state that Scooter does not know",
            Reason.SUBMITTED_AFTER_BONUS: "Submitted, and has had a bonus already",
            Reason.BONUS_BY_HAND: "A bonus is due, and one was paid by hand",
            Reason.PAID_TWICE: "Paid on Prolific on top of a bonus",
            Reason.PAID_IN_PART: "Paid in part on Prolific",
            Reason.OTHER_PERSON: "Came here with somebody else’s id",
        }[self]


class Offer(StrEnum):
    """What a person may do about it."""

    APPROVE = "approve"
    BONUS = "bonus"
    REQUEST_RETURN = "request_return"
    NOTHING = "nothing"

    @property
    def label(self) -> str:
        return {
            Offer.APPROVE: "Approve: pay the full reward",
            Offer.BONUS: "Pay what is due as a bonus",
            Offer.REQUEST_RETURN: "Ask to return",
            Offer.NOTHING: "Leave it as it is",
        }[self]


@dataclass(frozen=True)
class Here:
    """What the person did here. ``outcome`` None: not ended; ``code``: the one shown at the end.

    ``is_other_person``: the link that they opened named somebody else than the panel says has the submission.
    """

    arrived: bool
    outcome: Outcome | None = None
    code: str = ""
    is_other_person: bool = False


ABSENT = Here(arrived=False)


@dataclass(frozen=True)
class Bonuses:
    """What the bonuses of a submission mean for anything else that it might be paid.

    ``ours``: one was paid from here, or perhaps; ``by_hand``: the service shows one that is not ours; ``too_much``:
    ours and the service's own pay in this state are more than is due; ``is_lacking``: the reward is less than is due.
    """

    ours: bool = False
    by_hand: bool = False
    too_much: bool = False
    is_lacking: bool = False


NO_BONUSES = Bonuses()


@dataclass(frozen=True)
class Meaning:
    """``frees_place``: somebody else may have the dataset of one who is still inside."""

    frees_place: bool
    pay: Pay
    reason: Reason | None = None
    offers: tuple[Offer, ...] = ()

    def is_settled(self, reason: str, decision: str) -> bool:
        """Whether this decision holds: for the reason that it was made for, and no other; and as long as it is offered.

        One that does not is put before a person again; pay and the queue of decisions ask the same, so that nobody
        falls between them.
        """
        return self.reason is not None and self.reason == reason and decision in self.offers


def meaning(status: SubmissionStatus, entered_code: str, here: Here, bonuses: Bonuses = NO_BONUSES) -> Meaning:
    """What the panel's state, what happened here, and the bonuses so far mean together."""
    read = _by_state(status, entered_code, here)
    if here.is_other_person:
        read = _by_other_person(status, read)
    if status == SubmissionStatus.AWAITING_REVIEW:
        if bonuses.too_much or bonuses.by_hand:
            offers = (Offer.REQUEST_RETURN, Offer.APPROVE, Offer.NOTHING)
            return Meaning(False, Pay.ASK, Reason.SUBMITTED_AFTER_BONUS, offers)
        return read
    if read.pay == Pay.DONE and bonuses.too_much:
        return Meaning(False, Pay.DONE, Reason.PAID_TWICE, (Offer.NOTHING,))
    tops_up = status == SubmissionStatus.APPROVED and here.outcome in REWARDED and bonuses.is_lacking
    if read.pay == Pay.DUE or Offer.BONUS in read.offers or tops_up:
        if bonuses.ours:
            return Meaning(read.frees_place, Pay.DONE)
        if bonuses.by_hand:
            # Whether it was meant for what is due is for a person to say.
            return Meaning(read.frees_place, Pay.ASK, Reason.BONUS_BY_HAND, (Offer.BONUS, Offer.NOTHING))
    return read


def _by_state(status: SubmissionStatus, entered_code: str, here: Here) -> Meaning:
    match status:
        case SubmissionStatus.RESERVED | SubmissionStatus.ACTIVE:
            return Meaning(False, Pay.WAIT)
        case SubmissionStatus.AWAITING_REVIEW:
            return _submitted(entered_code, here)
        case SubmissionStatus.PARTIALLY_APPROVED if here.outcome in REWARDED:
            # The service does not say how much, so that nothing can be reckoned here.
            return Meaning(False, Pay.DONE, Reason.PAID_IN_PART, (Offer.NOTHING,))
        case SubmissionStatus.APPROVED | SubmissionStatus.PARTIALLY_APPROVED:
            return _paid(here.outcome in REWARDED)
        case SubmissionStatus.SCREENED_OUT:
            return _paid(here.outcome in SCREENED, here)
        case SubmissionStatus.REJECTED:
            if here.outcome in REWARDED | SCREENED:
                return Meaning(True, Pay.NOTHING, Reason.REJECTED_ELSEWHERE, (Offer.BONUS, Offer.NOTHING))
            return Meaning(True, Pay.NOTHING)
        case SubmissionStatus.RETURNED:
            return _left(Reason.RETURNED_AFTER_END, here)
        case SubmissionStatus.TIMED_OUT:
            return _left(Reason.TIMED_OUT_AFTER_END, here)
        case SubmissionStatus.UNKNOWN:
            return Meaning(False, Pay.ASK, Reason.UNKNOWN_STATE, (Offer.NOTHING,))


def _by_other_person(status: SubmissionStatus, read: Meaning) -> Meaning:
    """Whoever is paid, a person first says whether it is for what was done here; links can be edited and passed on."""
    if status == SubmissionStatus.AWAITING_REVIEW:
        offers = (Offer.REQUEST_RETURN, Offer.APPROVE, Offer.NOTHING)
        return Meaning(False, Pay.ASK, Reason.OTHER_PERSON, offers)
    if status in {SubmissionStatus.RETURNED, SubmissionStatus.TIMED_OUT} and read.pay in {Pay.DUE, Pay.ASK}:
        return Meaning(read.frees_place, Pay.ASK, Reason.OTHER_PERSON, (Offer.BONUS, Offer.NOTHING))
    if read.pay == Pay.DONE and read.reason is None:
        return Meaning(read.frees_place, Pay.DONE, Reason.OTHER_PERSON, (Offer.NOTHING,))
    return read


def _submitted(entered_code: str, here: Here) -> Meaning:
    if not here.arrived:
        return Meaning(False, Pay.ASK, Reason.NEVER_ARRIVED, (Offer.REQUEST_RETURN, Offer.APPROVE, Offer.NOTHING))
    if here.outcome is None:
        return Meaning(False, Pay.ASK, Reason.UNFINISHED_HERE, (Offer.REQUEST_RETURN, Offer.APPROVE, Offer.NOTHING))
    offers = _offers(here.outcome)
    if here.outcome not in REWARDED | SCREENED:
        return Meaning(False, Pay.ASK, Reason.NOT_RETURNED, offers)
    if entered_code in {"", NO_CODE}:
        return Meaning(False, Pay.ASK, Reason.NO_CODE, offers)
    if entered_code != here.code:
        return Meaning(False, Pay.ASK, Reason.OTHER_CODE, offers)
    return Meaning(False, Pay.DUE)


def _offers(outcome: Outcome) -> tuple[Offer, ...]:
    """What is offered first is what the outcome earns."""
    if outcome in REWARDED:
        return (Offer.APPROVE, Offer.NOTHING)
    if outcome in SCREENED:
        # No bonus yet: left as it is, the service would pay the whole reward too. It follows when it is returned.
        return (Offer.REQUEST_RETURN, Offer.APPROVE, Offer.NOTHING)
    return (Offer.REQUEST_RETURN, Offer.APPROVE, Offer.NOTHING)


def _paid(is_what_is_due: bool, here: Here | None = None) -> Meaning:
    if is_what_is_due:
        return Meaning(False, Pay.DONE)
    underpaid = here is not None and here.outcome in REWARDED
    return Meaning(
        False, Pay.DONE, Reason.PAID_ELSEWHERE, (Offer.BONUS, Offer.NOTHING) if underpaid else (Offer.NOTHING,)
    )


def _left(reason: Reason, here: Here) -> Meaning:
    """Returned or timed out. Who was screened out is asked to return, and is paid all the same, as a bonus.

    A submission that timed out may still be handed in, and be paid by the service: so a person says when it will not.
    """
    if here.outcome in REWARDED or (here.outcome in SCREENED and reason == Reason.TIMED_OUT_AFTER_END):
        return Meaning(True, Pay.ASK, reason, (Offer.BONUS, Offer.NOTHING))
    if here.outcome in SCREENED:
        return Meaning(True, Pay.DUE)
    return Meaning(True, Pay.NOTHING)
