"""A study's data as files: streamed some rows at a time, with random public ids and the scale named in every row.

docs/exports.md describes the columns. The panel's ids are in none of them unless they are asked for.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import islice
from statistics import median
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from scooter_site.common.csv_text import cell, neutralised
from studies import checks
from studies.flow import Outcome
from studies.models import (
    FeedbackAnswer,
    PairTrial,
    Participation,
    ParticipationKind,
    PlateTrial,
    Rating,
    Study,
    TrialKind,
)
from studies.pay import amount_due
from studies.selectors.counting import countable
from studies.selectors.ratings import countable_participations

ROWS_AT_A_TIME = 1000
# Each has about a hundred ratings, which are looked at together.
PARTICIPANTS_AT_A_TIME = 50

Row = Mapping[str, Any]

# Columns of the ratings that come as they are stored, and where from.
STORED_WITH_RATING = {
    "rating": "value",
    "pid": "trial__participation__public_id",
    "image_type": "trial__image__kind",
    "image_id": "trial__image__public_id",
    "dataset": "trial__participation__dataset__number",
    "position": "trial__position",
    "start_position": "start_position",
    "shown_at": "trial__first_shown_at",
    "answered_at": "answered_at",
    "response_ms": "response_ms",
    "first_interaction_ms": "first_interaction_ms",
    "last_interaction_ms": "last_interaction_ms",
    "visible_ms": "visible_ms",
    "client_ms": "client_ms",
    "focus_losses": "focus_losses",
    "shown_width": "shown_width",
    "shown_height": "shown_height",
    "participant_kind": "trial__participation__kind",
    "outcome": "trial__participation__outcome",
    "valid": "trial__participation__is_valid",
}


def rating_rows(study: Study, *, counting_only: bool = True) -> Iterator[Row]:
    """Ratings of images (not of checks) in the order they were given, participant by participant.

    Those that count, or else those of every real participant, whatever the outcome.
    """
    ratings = Rating.objects.filter(
        countable("trial__participation__"), trial__participation__study=study, trial__kind=TrialKind.IMAGE
    )
    if counting_only:
        ratings = ratings.filter(trial__participation__is_valid=True)
    stored = ratings.order_by("trial__participation_id", "trial__position").values_list(*STORED_WITH_RATING.values())
    scale = study.rating_scale
    of_study = {
        "scale_minimum": scale.minimum,
        "scale_maximum": scale.maximum,
        "scale_direction": study.scale_direction,
        "study": study.slug,
        "protocol": study.preset,
        "attack": study.attack.slug,
        "target_model": study.target_model.slug,
    }
    for values in stored.iterator(chunk_size=ROWS_AT_A_TIME):
        row = dict(zip(STORED_WITH_RATING, values, strict=True))
        yield {**row, "rating_higher_is_modified": scale.oriented(row["rating"]), **of_study}


RATING_COLUMNS = (
    "rating",
    "pid",
    "image_type",
    "image_id",
    "scale_minimum",
    "scale_maximum",
    "scale_direction",
    "rating_higher_is_modified",
    "study",
    "protocol",
    "attack",
    "target_model",
    *(name for name in STORED_WITH_RATING if name not in {"rating", "pid", "image_type", "image_id"}),
)

STORED_WITH_PARTICIPANT = {
    "pid": "public_id",
    "participant_kind": "kind",
    "outcome": "outcome",
    "step": "step",
    "valid": "is_valid",
    "dataset": "dataset__number",
    "started_at": "started_at",
    "consented_at": "consented_at",
    "finished_at": "finished_at",
    "last_seen_at": "last_seen_at",
    "comprehension_attempts": "comprehension_attempt",
    "attention_failures": "attention_failures",
    "viewport_width": "viewport_width",
    "viewport_height": "viewport_height",
    "device_pixel_ratio": "device_pixel_ratio",
}
PANEL_IDS = {"panel_participant_id": "identity__participant_id", "panel_session_id": "identity__session_id"}
PARTICIPANT_COLUMNS = (
    "pid",
    "participant_kind",
    "outcome",
    "step",
    "valid",
    "dataset",
    "started_at",
    "consented_at",
    "finished_at",
    "last_seen_at",
    "seconds",
    "plates_right",
    "plates_answered",
    "comprehension_attempts",
    "pairs_right",
    "pairs_answered",
    "attention_checks_answered",
    "attention_failures",
    "images_rated",
    "median_response_ms",
    "focus_losses",
    "viewport_width",
    "viewport_height",
    "device_pixel_ratio",
    "amount_due",
    "currency",
    "feedback",
)


def participant_columns(*, panel_ids: bool) -> tuple[str, ...]:
    return (*PARTICIPANT_COLUMNS, *(PANEL_IDS if panel_ids else ()))


def participant_rows(study: Study, *, panel_ids: bool = False) -> Iterator[Row]:
    """One row for every real participant, whatever the outcome, in the order of arrival."""
    stored = {"id": "id", **STORED_WITH_PARTICIPANT, **(PANEL_IDS if panel_ids else {})}
    participants = countable_participations(study).order_by("id").values_list(*stored.values())
    for some in _batches(participants.iterator(chunk_size=PARTICIPANTS_AT_A_TIME), PARTICIPANTS_AT_A_TIME):
        rows = [dict(zip(stored, values, strict=True)) for values in some]
        found = _Answers({row["id"]: row["comprehension_attempts"] for row in rows})
        for row in rows:
            yield {
                **row,
                **found.of(row["id"]),
                "seconds": round((row["last_seen_at"] - row["started_at"]).total_seconds()),
                "amount_due": amount_due(Outcome(row["outcome"]), study.rates) if row["outcome"] else None,
                "currency": study.currency,
            }


class _Answers:
    """What some participants answered, by their ids; four queries for all of them."""

    def __init__(self, attempts: Mapping[int, int]) -> None:
        """``attempts``: of each participation, the comprehension attempt that is the last."""
        here = {"participation_id__in": attempts}
        self.plates = _grouped(
            PlateTrial.objects.filter(**here, answered_at__isnull=False).values_list(
                "participation_id", "plate__digit", "answer"
            )
        )
        pairs = PairTrial.objects.filter(**here, answered_at__isnull=False).values_list(
            "participation_id", "attempt", "modified_side", "answer"
        )
        self.pairs = _grouped((pk, side, answer) for pk, attempt, side, answer in pairs if attempt == attempts[pk])
        self.ratings = _grouped(
            Rating.objects.filter(trial__participation_id__in=attempts).values_list(
                "trial__participation_id", "trial__kind", "response_ms", "focus_losses"
            )
        )
        self.feedback = _grouped(
            FeedbackAnswer.objects.filter(**here).order_by("id").values_list("participation_id", "item", "answer")
        )

    def of(self, pk: int) -> dict[str, Any]:
        plates, pairs = self.plates.get(pk, []), self.pairs.get(pk, [])
        images = [rating for rating in self.ratings.get(pk, []) if rating[0] == TrialKind.IMAGE]
        times = [response_ms for _, response_ms, _ in images if response_ms is not None]
        return {
            "plates_right": checks.count_right_plates(plates),
            "plates_answered": len(plates),
            "pairs_right": checks.count_right_pairs(pairs),
            "pairs_answered": len(pairs),
            "images_rated": len(images),
            "attention_checks_answered": len(self.ratings.get(pk, [])) - len(images),
            "median_response_ms": round(median(times)) if times else None,
            "focus_losses": sum(losses or 0 for _, _, losses in self.ratings.get(pk, [])),
            "feedback": dict(self.feedback.get(pk, [])),
        }


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """The rest of each row, by its first value."""
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for key, *rest in rows:
        groups.setdefault(key, []).append(tuple(rest))
    return groups


# --- Payments -------------------------------------------------------------------------------------------------


def paid_participations(study: Study, outcome: Outcome) -> QuerySet[Participation]:
    """Who is due something for this outcome: real people only, a demonstration's bots are not paid.

    In the order in which they ended, so that whoever ends later comes after the parts of a file that were downloaded.
    """
    people = Participation.objects.filter(study=study, kind=ParticipationKind.REAL, outcome=outcome)
    return people.order_by("finished_at", "id")


PAYMENT_COLUMNS = ("panel_participant_id", "panel_session_id", "pid", "outcome", "code", "amount", "currency")


def payment_rows(study: Study, outcome: Outcome) -> Iterator[Row]:
    """Everybody who ended so, with panel ids and what each is due."""
    amount = amount_due(outcome, study.rates)
    people = paid_participations(study, outcome).values_list(
        "identity__participant_id", "identity__session_id", "public_id", "completion_code__code"
    )
    for participant_id, session_id, public_id, code in people.iterator(chunk_size=ROWS_AT_A_TIME):
        values = (participant_id, session_id, public_id, outcome.value, code, amount, study.currency)
        yield dict(zip(PAYMENT_COLUMNS, values, strict=True))


def prolific_lines(study: Study, outcome: Outcome, *, amount: Decimal | None, start: int, stop: int) -> Iterator[str]:
    """Submission ids, one a line, numbers ``start`` to before ``stop``; with ``amount``, "id,1.50" in major units."""
    ids = paid_participations(study, outcome).values_list("identity__session_id", flat=True)[start:stop]
    for session_id in ids:
        yield f"{session_id}\n" if amount is None else f"{session_id},{amount:.2f}\n"


# --- Files ----------------------------------------------------------------------------------------------------


def as_csv(columns: Iterable[str], rows: Iterable[Row]) -> Iterator[str]:
    """Pieces of a CSV file with header. Numbers stay bare; text that a spreadsheet takes for a formula does not."""
    columns = tuple(columns)
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    for some in _batches(rows, ROWS_AT_A_TIME):
        writer.writerows([_in_csv(row[column]) for column in columns] for row in some)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()  # the header, when there were no rows


def as_jsonl(columns: Iterable[str], rows: Iterable[Row]) -> Iterator[str]:
    """Pieces of a file with one JSON object a line."""
    columns = tuple(columns)
    for some in _batches(rows, ROWS_AT_A_TIME):
        lines = (json.dumps({name: _plain(row[name]) for name in columns}, ensure_ascii=False) for row in some)
        yield "\n".join(lines) + "\n"


FILE_FORMATS: dict[str, tuple[str, Callable[[Iterable[str], Iterable[Row]], Iterator[str]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "jsonl": ("application/x-ndjson; charset=utf-8", as_jsonl),
}


def _in_csv(value: Any) -> Any:
    """A cell. The writer itself writes numbers and nothing as they should be; most cells by far are these or text."""
    kind = type(value)
    if kind is int or value is None:
        return value
    return neutralised(value) if kind is str else cell(_plain(value))


def _plain(value: Any) -> Any:
    """Times in ISO 8601 and UTC, ids and amounts of money as text: what both formats can hold without loss."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case UUID() | Decimal():
            return str(value)
        case _:
            return value


def _batches(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch
