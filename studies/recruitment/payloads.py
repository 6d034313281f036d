"""What is sent to Prolific to create a study and to change it; refused here where the service would refuse it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from studies.flow import Outcome
from studies.recruitment.money import to_minor

PLACEHOLDERS = {name: f"{{{{%{name}%}}}}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")}
# The service's own words for what a code stands for.
CODE_TYPES = {
    Outcome.COMPLETED: "COMPLETED",
    Outcome.ATTENTION_FAILED: "FAILED_ATTENTION_CHECK",
    Outcome.COMPREHENSION_FAILED: "SCREENED_OUT",
    Outcome.COLOUR_CHECK_FAILED: "SCREENED_OUT",
    Outcome.DECLINED: "NO_CONSENT",
    Outcome.TIMED_OUT: "OTHER",
}
RETURN_REASONS = {
    Outcome.DECLINED: "You did not agree to take part.",
    Outcome.TIMED_OUT: "The study was left for so long that it had to be closed.",
}
REJECTION_CATEGORIES = frozenset(
    {
        "TOO_QUICKLY",
        "TOO_SLOWLY",
        "FAILED_INSTRUCTIONS",
        "INCOMP_LONGITUDINAL",
        "FAILED_CHECK",
        "LOW_EFFORT",
        "MALINGERING",
        "NO_CODE",
        "BAD_CODE",
        "NO_DATA",
        "UNSUPP_DEVICE",
        "OTHER",
    }
)
SHORTEST_REJECTION = 100  # characters
MOST_APPROVALS = 1000  # ids in one bulk approval
MOST_BONUSES = 200  # lines in one bonus file


class ScreenOutPay(StrEnum):
    """How people are paid who fail a check before the main study."""

    FIXED = "fixed"
    REVIEW_AND_BONUS = "review_and_bonus"

    @property
    def label(self) -> str:
        return {
            ScreenOutPay.FIXED: "Fixed screen-out payment, paid by Prolific at once",
            ScreenOutPay.REVIEW_AND_BONUS: "Manual review: ask to return, then pay a bonus",
        }[self]


@dataclass(frozen=True)
class StudyPlan:
    """Everything Prolific is told about a study of ours. Money in major units of the workspace's currency."""

    name: str
    internal_name: str
    description: str
    landing_url: str
    places: int
    minutes: int
    reward_major: Decimal
    codes: Mapping[Outcome, str]
    screen_out_pay: ScreenOutPay
    screen_out_major: Mapping[Outcome, Decimal]
    screen_out_slots: int
    most_at_once: int
    reference: str
    project_id: str = ""
    filters: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def fixed_screen_out(pay: str, amounts: Mapping[Outcome, Decimal]) -> Outcome | None:
    """Of the checks that a study has and what each pays, the outcome whose code carries the fixed payment.

    The service takes at most one such code in a study.

    Of several, the one that pays least: it is the earliest check, which most people fail, and whose amount nobody may
    be paid below. The others are reviewed and paid a bonus.
    """
    if pay != ScreenOutPay.FIXED or not amounts:
        return None
    return min(amounts, key=lambda outcome: (amounts[outcome], outcome.value))


def study_payload(plan: StudyPlan) -> dict[str, Any]:
    """The body of the request that creates the draft."""
    payload: dict[str, Any] = {
        "name": plan.name,
        "internal_name": plan.internal_name,
        "description": plan.description,
        "external_study_url": study_address(plan.landing_url),
        "prolific_id_option": "url_parameters",
        "total_available_places": plan.places,
        "estimated_completion_time": plan.minutes,
        "reward": to_minor(plan.reward_major),
        "device_compatibility": ["desktop"],
        "peripheral_requirements": [],
        "filters": [dict(one) for one in plan.filters],
        "completion_codes": completion_codes(plan),
        "submissions_config": {
            "max_submissions_per_participant": 1,
            "max_concurrent_submissions": plan.most_at_once,
        },
        "metadata": plan.reference,
    }
    if plan.project_id:
        payload["project"] = plan.project_id
    return payload


def study_address(landing_url: str) -> str:
    """Our link with the three placeholders that Prolific fills in; they must not be percent-encoded."""
    query = "&".join(f"{name}={placeholder}" for name, placeholder in PLACEHOLDERS.items())
    return f"{landing_url}{'&' if '?' in landing_url else '?'}{query}"


def completion_codes(plan: StudyPlan, *, slots: int | None = None) -> list[dict[str, Any]]:
    """One code per outcome with its action. ``slots``: screen-outs paid in all; None: as planned."""
    fixed = fixed_screen_out(plan.screen_out_pay, plan.screen_out_major)
    slots = plan.screen_out_slots if slots is None else slots
    return [
        {
            "code": code,
            "code_type": CODE_TYPES[outcome],
            "actor": "participant",
            "actions": [_action(outcome, plan, fixed, slots)],
        }
        for outcome, code in plan.codes.items()
    ]


def _action(outcome: Outcome, plan: StudyPlan, fixed: Outcome | None, slots: int) -> dict[str, Any]:
    if outcome == fixed:
        return {
            "action": "FIXED_SCREEN_OUT_PAYMENT",
            "fixed_screen_out_reward": to_minor(plan.screen_out_major[outcome]),
            "slots": slots,
        }
    if reason := RETURN_REASONS.get(outcome):
        return {"action": "REQUEST_RETURN", "return_reason": reason}
    # Never approved by the code alone: a code stands in an address and can be passed on.
    return {"action": "MANUALLY_REVIEW"}


def with_slots(codes: Sequence[Mapping[str, Any]], slots: int) -> list[dict[str, Any]]:
    """The service's own codes with the fixed screen-out's number of slots, which is the new total, changed."""
    return [
        {
            **code,
            "actions": [
                {**action, "slots": slots} if action.get("action") == "FIXED_SCREEN_OUT_PAYMENT" else dict(action)
                for action in code.get("actions") or []
            ],
        }
        for code in codes
    ]


def screen_out_slots(codes: Sequence[Mapping[str, Any]]) -> int | None:
    """How many fixed screen-outs the service pays in all; None if no code has that action."""
    for code in codes:
        for action in code.get("actions") or []:
            if action.get("action") == "FIXED_SCREEN_OUT_PAYMENT":
                return int(action.get("slots") or 0)
    return None


def rejection_problems(category: str, message: str) -> list[str]:
    """What the service would refuse about a rejection; empty if nothing."""
    problems = []
    if category not in REJECTION_CATEGORIES:
        problems.append(f"“{category}” is none of Prolific's reasons for a rejection.")
    if len(message.strip()) < SHORTEST_REJECTION:
        problems.append(
            f"The message to the participant has {len(message.strip())} characters; Prolific wants at least "
            f"{SHORTEST_REJECTION}. Say which checks failed, and how."
        )
    return problems
