"""What a submission is to be paid, by which of the service's ways, and when it may be rejected. All amounts in pence.

The service pays by approving (the whole reward), by fixed screen-outs (by itself), and by bonuses (any amount). So who
earned the reward is approved; who failed an early check and was not paid by the service is asked to return the
submission, and gets a bonus when it is returned: left as it is, the service would pay the whole reward too, in time.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from studies.flow import Outcome
from studies.recruitment.payloads import rejection_problems
from studies.recruitment.review import REWARDED, SCREENED, Here, Offer, Pay, meaning
from studies.recruitment.statuses import SubmissionStatus

# The service's own words for what a failed attention check may be called.
GROUNDS = {
    "FAILED_CHECK": "Failed attention checks",
    "LOW_EFFORT": "Low effort",
    "FAILED_INSTRUCTIONS": "Did not follow instructions",
}
# "Prolific's attention and comprehension check policy": one failed check is enough only in a study shorter than this.
SHORT_STUDY_MINUTES = 5
FAILURES_IN_A_SHORT_STUDY = 1
FAILURES_IN_A_LONG_STUDY = 2


class Way(StrEnum):
    """How a submission is dealt with."""

    APPROVE = "approve"
    BONUS = "bonus"
    RETURN = "return"  # ask them to return it; pays nothing
    REJECT = "reject"

    @property
    def label(self) -> str:
        return {
            Way.APPROVE: "Approve",
            Way.BONUS: "Bonus",
            Way.RETURN: "Ask to return",
            Way.REJECT: "Reject",
        }[self]


@dataclass(frozen=True)
class Terms:
    """``reward_minor``: what an approval pays there; ``due_minor``: what each outcome is due by the study's rates;
    ``fixed_minor``: what a fixed screen-out pays there.
    """

    reward_minor: int
    due_minor: Mapping[Outcome, int]
    fixed_minor: int = 0


@dataclass(frozen=True)
class Standing:
    """A submission as last read there, what happened here, and what a person decided about it."""

    status: SubmissionStatus
    entered_code: str
    here: Here
    settled_reason: str = ""
    settled_with: str = ""
    return_requested: bool = False
    bonuses_minor: tuple[int, ...] = ()


@dataclass(frozen=True)
class Instruction:
    """One payment, or one request to return a submission."""

    way: Way
    amount_minor: int
    reason: str


def instructions(standing: Standing, terms: Terms, *, already: Collection[Way] = ()) -> list[Instruction]:
    """What is to be done now; ``already``: ways in which it has been dealt with by us, or is just being.

    An approval may be joined by a bonus, for what the reward lacks of the amount due.
    """
    if Way.REJECT in already:
        return []
    # A bonus that we know nothing of was paid by hand: whether it was meant for this is for a person to say.
    paid_by_hand = bool(standing.bonuses_minor)
    return [
        one for one in _owed(standing, terms) if one.way not in already and not (paid_by_hand and one.way == Way.BONUS)
    ]


def _owed(standing: Standing, terms: Terms) -> list[Instruction]:
    read = meaning(standing.status, standing.entered_code, standing.here)
    outcome = standing.here.outcome
    due = terms.due_minor.get(outcome, 0) if outcome else 0
    # A decision holds for the reason that it was made for, and no other.
    decided = standing.settled_with if read.reason and read.reason == standing.settled_reason else ""
    is_waiting = standing.status == SubmissionStatus.AWAITING_REVIEW
    lacking = _bonus(due - terms.reward_minor, f"{_named(outcome)}; the reward is less than what is due")
    if decided == Offer.APPROVE and is_waiting:
        return [Instruction(Way.APPROVE, terms.reward_minor, f"{_named(outcome)}; a person decided to approve")]
    if decided == Offer.BONUS:
        paid = terms.fixed_minor if standing.status == SubmissionStatus.SCREENED_OUT else 0
        return _bonus(due - paid, f"{_named(outcome)}; a person decided to pay a bonus")
    if outcome in REWARDED and read.pay == Pay.DUE:
        return [Instruction(Way.APPROVE, terms.reward_minor, _named(outcome)), *lacking]
    if outcome in REWARDED and standing.status == SubmissionStatus.APPROVED:
        return lacking
    if outcome in SCREENED and read.pay == Pay.DUE:
        if not is_waiting:
            return _bonus(due, _named(outcome))
        if due and not standing.return_requested:
            return [Instruction(Way.RETURN, 0, f"{_named(outcome)}; a bonus follows when it is returned")]
    return []


def _bonus(amount_minor: int, reason: str) -> list[Instruction]:
    return [Instruction(Way.BONUS, amount_minor, reason)] if amount_minor > 0 else []


def _named(outcome: Outcome | None) -> str:
    return outcome.label if outcome else "Not finished here"


def failures_for_rejection(minutes: float) -> int:
    """How many attention checks must have been failed in a study of this length before anybody may be rejected."""
    return FAILURES_IN_A_SHORT_STUDY if minutes < SHORT_STUDY_MINUTES else FAILURES_IN_A_LONG_STUDY


def why_not_rejectable(outcome: Outcome | None, attention_failures: int, minutes: float) -> str:
    """What forbids a rejection by the service's policy, for people; empty where it may be rejected.

    Failed attention checks are the only ground here: early checks are paid as screen-outs, and speed or effort are for
    the quality rules, which exclude without taking the pay away.
    """
    if outcome in SCREENED:
        return "Who fails a check before the main study is paid for the time and never rejected."
    if outcome not in REWARDED:
        return "Only who reached the main study can be rejected."
    needed = failures_for_rejection(minutes)
    if attention_failures < needed:
        return (
            f"{attention_failures} attention check{'' if attention_failures == 1 else 's'} failed: in a study of "
            f"{minutes:g} minutes Prolific allows a rejection from {needed} on."
        )
    return ""


def rejection_refusals(
    outcome: Outcome | None, attention_failures: int, minutes: float, category: str, message: str
) -> list[str]:
    """Everything that stands in the way of this rejection; empty if nothing."""
    problems = [why_not_rejectable(outcome, attention_failures, minutes)]
    if category not in GROUNDS:
        problems.append(f"Choose one of: {', '.join(GROUNDS.values())}.")
    problems += rejection_problems("FAILED_CHECK", message)
    return [problem for problem in problems if problem]
