"""What a submission is to be paid, by which of the service's ways, and when it may be rejected. All amounts in pence.

The service pays by approving (the whole reward), by fixed screen-outs (by itself), and by bonuses (any amount). So who
earned the reward is approved; who failed an early check and was not paid by the service is asked to return the
submission, and gets a bonus when it is returned: left as it is, the service would pay the whole reward too, in time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from studies.flow import Outcome
from studies.recruitment.payloads import rejection_problems
from studies.recruitment.review import REWARDED, SCREENED, Bonuses, Here, Offer, Pay, Reason, meaning
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
    """A submission as last read there, what happened here, and what a person decided about it.

    ``bonuses_minor``: all that the service shows, perhaps late; ``our_bonus_minor``: paid from here, or perhaps.
    """

    status: SubmissionStatus
    entered_code: str
    here: Here
    settled_reason: str = ""
    settled_with: str = ""
    return_requested: bool = False
    bonuses_minor: tuple[int, ...] = ()
    our_bonus_minor: int = 0


@dataclass(frozen=True)
class Instruction:
    """One payment, or one request to return a submission."""

    way: Way
    amount_minor: int
    reason: str


def instructions(standing: Standing, terms: Terms, *, already: Mapping[Way, int] | None = None) -> list[Instruction]:
    """What is to be done now; ``already``: amounts by the ways in which it was dealt with by us, or is just being.

    An approval may be joined by a bonus, for what the reward lacks of the amount due. Any other bonus stands in place
    of the approval, so that one of the two is enough to keep the other back, in whichever order they came.
    """
    already = already or {}
    if Way.REJECT in already:
        return []
    lacking = max(0, _due(standing, terms) - terms.reward_minor)
    found = [one for one in _owed(standing, terms) if one.way not in already]
    if already.get(Way.BONUS, 0) > lacking and not _is_approved_beside_bonus(standing):
        found = [one for one in found if one.way != Way.APPROVE]
    if Way.APPROVE in already:
        found = [one for one in found if one.way != Way.BONUS or one.amount_minor <= lacking]
    return found


def bonuses_of(standing: Standing, terms: Terms) -> Bonuses:
    due = _due(standing, terms)
    by_hand = list(standing.bonuses_minor)
    if standing.our_bonus_minor in by_hand:
        by_hand.remove(standing.our_bonus_minor)
    there = terms.reward_minor if standing.status == SubmissionStatus.AWAITING_REVIEW else _paid_there(standing, terms)
    return Bonuses(
        ours=standing.our_bonus_minor > 0,
        by_hand=bool(by_hand),
        too_much=standing.our_bonus_minor > max(0, due - there),
        is_lacking=due > terms.reward_minor,
    )


def _due(standing: Standing, terms: Terms) -> int:
    outcome = standing.here.outcome
    return terms.due_minor.get(outcome, 0) if outcome else 0


def _paid_there(standing: Standing, terms: Terms) -> int:
    """What the service has paid by itself or on being told to, without bonuses."""
    paid = {SubmissionStatus.APPROVED: terms.reward_minor, SubmissionStatus.SCREENED_OUT: terms.fixed_minor}
    return paid.get(standing.status, 0)


def _is_approved_beside_bonus(standing: Standing) -> bool:
    """Whether a person who knew of the bonus decided to approve."""
    decision = (standing.settled_reason, standing.settled_with)
    return standing.our_bonus_minor > 0 and decision == (Reason.SUBMITTED_AFTER_BONUS, Offer.APPROVE)


def _owed(standing: Standing, terms: Terms) -> list[Instruction]:
    read = meaning(standing.status, standing.entered_code, standing.here, bonuses_of(standing, terms))
    outcome = standing.here.outcome
    due = _due(standing, terms)
    decided = standing.settled_with if read.is_settled(standing.settled_reason, standing.settled_with) else ""
    is_waiting = standing.status == SubmissionStatus.AWAITING_REVIEW
    lacking = _bonus(due - terms.reward_minor, f"{_named(outcome)}; the reward is less than what is due")
    if decided == Offer.APPROVE and is_waiting:
        return [Instruction(Way.APPROVE, terms.reward_minor, f"{_named(outcome)}; a person decided to approve")]
    if decided == Offer.BONUS and not is_waiting:
        return _bonus(due - _paid_there(standing, terms), f"{_named(outcome)}; a person decided to pay a bonus")
    if outcome in REWARDED and read.pay == Pay.DUE:
        return [Instruction(Way.APPROVE, terms.reward_minor, _named(outcome)), *lacking]
    if outcome in REWARDED and standing.status == SubmissionStatus.APPROVED and read.reason is None:
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
