"""What the page about one participant shows: the timeline with its gaps, checks, ratings with their times, messages.

Holds no panel ids: those are fields of the page, for who may see them.
"""

from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise
from typing import Any

from studies import checks
from studies.admin.event_words import event_in_words
from studies.feedback import parse_items
from studies.flow import Step
from studies.models import FeedbackAnswer, Participation, ParticipationEvent, Rating, Study, Trial, TrialKind

# Pauses in the timeline that are worth a line: longer than anybody looks at one image.
GAP = timedelta(minutes=2)


def report(participation: Participation) -> dict[str, Any]:
    """Context of the page; a fixed number of queries."""
    study = participation.study
    trials = list(participation.trials.select_related("rating", "image").prefetch_related("rating__changes"))
    ratings = [rating for trial in trials if (rating := rating_of(trial))]
    failed = [trial for trial in trials if check_passed(trial, study) is False]
    events = list(participation.events.all())
    end = participation.last_seen_at
    return {
        "participation": participation,
        "place": participation.get_outcome_display() or Step(participation.step).label,
        "timeline": timeline(events, ratings, study.currency),
        "plates": [
            {
                "trial": trial,
                "expected": checks.right_plate_answer(trial.plate.digit),
                "right": checks.plate_is_right(trial.plate.digit, trial.answer),
            }
            for trial in participation.plate_trials.select_related("plate")
        ],
        "pairs": [
            {"trial": trial, "right": checks.pair_is_right(trial.modified_side, trial.answer)}
            for trial in participation.pair_trials.all()
        ],
        "trials": [trial_line(trial, study) for trial in trials],
        "rated_count": len(ratings),
        "trial_count": len(trials),
        "failed_checks": [trial.position for trial in failed],
        "focus_losses": sum(rating.focus_losses or 0 for rating in ratings),
        "duration": in_words(end - participation.started_at),
        "feedback": [feedback_line(answer) for answer in participation.feedback.select_related("text")],
        "messages_sent": participation.messages.order_by("id"),
    }


def feedback_line(answer: FeedbackAnswer) -> dict[str, str]:
    """Question and answer in the words of the text that asked."""
    item = next(item for item in parse_items(answer.text.body) if item.name == answer.item)
    return {"question": item.question, "answer": item.in_words(answer.answer)}


def rating_of(trial: Trial) -> Rating | None:
    return getattr(trial, "rating", None)


def check_passed(trial: Trial, study: Study) -> bool | None:
    """Whether an answered attention check was passed; None for anything else."""
    rating = rating_of(trial)
    if rating is None:
        return None
    passed = study.protocol.check_passed(trial, rating.value, study.setup)
    is_check = trial.kind in {TrialKind.CORRUPTED, TrialKind.INSTRUCTED} or not passed
    return passed if is_check else None


def trial_line(trial: Trial, study: Study) -> dict[str, Any]:
    """One item: what was shown, what was answered, and how long everything took in seconds."""
    rating = rating_of(trial)
    return {
        "trial": trial,
        "rating": rating,
        "passed": check_passed(trial, study),
        "first_touch": in_seconds(rating.first_interaction_ms if rating else None),
        "last_touch": in_seconds(rating.last_interaction_ms if rating else None),
        "seconds": in_seconds(rating.response_ms if rating else None),
        "visible": in_seconds(rating.visible_ms if rating else None),
        "changes": [change.value for change in rating.changes.all()] if rating else [],
    }


def timeline(events: Iterable[ParticipationEvent], ratings: Iterable[Rating], currency: str) -> list[dict[str, Any]]:
    """Events in order of time, runs of ratings as one line each, and a line for every gap longer than GAP."""
    points = [(event.at, event_in_words(event, currency)) for event in events]
    points += [(rating.answered_at, "") for rating in ratings]
    points.sort(key=lambda point: point[0])
    lines: list[dict[str, Any]] = []
    for before, here in pairwise([None, *points]):
        assert here is not None  # noqa: S101 - for the type checker
        at, words = here
        gap = at - before[0] if before else timedelta(0)
        if gap >= GAP:
            lines.append({"gap": in_words(gap)})
        if words:
            lines.append({"at": at, "words": words})
        elif lines and "ratings" in lines[-1]:
            lines[-1]["ratings"] += 1
            lines[-1]["until"] = at
        else:
            lines.append({"at": at, "until": at, "ratings": 1})
    return lines


def in_words(span: timedelta) -> str:
    """For example "13 min 05 s" or "25 h 10 min"."""
    seconds = round(span.total_seconds())
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 60} min {seconds % 60:02} s"


def in_seconds(milliseconds: int | None) -> str:
    """For example "3.4"; empty where the browser did not measure."""
    return "" if milliseconds is None else f"{milliseconds / 1000:.1f}"
