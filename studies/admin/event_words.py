"""What is recorded about a participation, in the words of the page that shows it."""

from collections.abc import Callable, Mapping
from typing import Any

from studies.flow import Outcome, Step
from studies.models import ParticipationEvent, Verdict
from studies.recruitment.money import to_major
from studies.recruitment.review import Offer, Reason

Detail = Mapping[str, Any]


def event_in_words(event: ParticipationEvent, currency: str) -> str:
    """For example "Colour check: 5 of 5 right". What has no words of its own is written out as it is recorded."""
    words = WORDS.get(event.name)
    if words:
        return words(event.detail)
    if event.name.startswith("payment_") and "amount_minor" in event.detail:
        way = event.name.removeprefix("payment_").replace("_", " ")
        return f"Payment ({way}): {currency} {to_major(event.detail['amount_minor'])}"
    plain = event.name.replace("_", " ").capitalize()
    details = [f"{name.replace('_', ' ')} {value}" for name, value in event.detail.items()]
    return f"{plain}: {', '.join(details)}" if details else plain


def _decided(detail: Detail) -> str:
    # What an undoing changed is told by whether the ratings count now.
    count = "the ratings count" if detail["ratings_count"] else "the ratings do not count"
    by = ", by the study's rules" if detail.get("by") == "policy" else ""
    return f"{Verdict(detail['verdict']).label}{by}: {count}"


def _settled(detail: Detail) -> str:
    return f"Submission decided by {detail['by']}: {Reason(detail['reason']).label}. {Offer(detail['decision']).label}"


WORDS: dict[str, Callable[[Detail], str]] = {
    "plate_answered": lambda detail: f"Colour plate {detail['position']} answered",
    "colour_check_judged": lambda detail: f"Colour check: {detail['right']} of {detail['of']} right",
    "instructions_read": lambda detail: "Instructions read",
    "pair_answered": lambda detail: f"Pair {detail['position']} answered, in try {detail['attempt']}",
    "comprehension_judged": lambda detail: (
        f"Comprehension check, try {detail['attempt']}: {detail['right']} of {detail['of']} right"
    ),
    "feedback_given": lambda detail: f"Feedback given: {detail['items']} answered",
    "came_back": lambda detail: f"Came back, at: {Step(detail['step']).label}",
    "began_again": lambda detail: f"Began again, after: {Outcome(detail['after']).label}",
    "ended": lambda detail: f"Ended: {Outcome(detail['outcome']).label}",
    "decided": _decided,
    "submission_settled": _settled,
    "submission_unsettled": lambda detail: f"Decision taken back: {Offer(detail['decision']).label}",
}
