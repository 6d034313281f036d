"""What Prolific answers, as typed values. The service's IP addresses and other extras are dropped on reading.

What is not of the expected form raises one of the errors that ``http.understood`` turns into a ProlificError.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus, study_status, submission_status


@dataclass(frozen=True)
class PanelStudyState:
    """A study as the service has it. Money in minor units of its currency."""

    id: str
    raw_status: str
    internal_name: str
    places: int
    places_taken: int | None
    reward_minor: int
    codes: tuple[Mapping[str, Any], ...]

    @property
    def status(self) -> PanelStudyStatus:
        return study_status(self.raw_status)

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "PanelStudyState":
        return cls(
            id=identifier(row["id"]),
            raw_status=str(row.get("status") or ""),
            internal_name=str(row.get("internal_name") or ""),
            places=_number(row.get("total_available_places")) or 0,
            places_taken=_number(row.get("places_taken")),
            reward_minor=_number(row.get("reward")) or 0,
            codes=tuple(dict(code) for code in row.get("completion_codes") or ()),
        )


@dataclass(frozen=True)
class SubmissionState:
    """A submission as the service has it.

    Rows of lists and the single submission name some of these differently, and only the single one has
    ``bonuses_minor`` (each bonus paid, in minor units); None there means "not said", which is not "none".
    """

    id: str
    participant_id: str
    study_id: str
    raw_status: str
    entered_code: str
    started_at: datetime | None
    completed_at: datetime | None
    return_requested: bool
    bonuses_minor: tuple[int, ...] | None

    @property
    def status(self) -> SubmissionStatus:
        return submission_status(self.raw_status)

    @classmethod
    def read(cls, row: Mapping[str, Any], *, study_id: str = "") -> "SubmissionState":
        bonuses = row.get("bonus_payments")
        return cls(
            id=identifier(row["id"]),
            participant_id=str(row.get("participant_id") or row.get("participant") or ""),
            study_id=str(row.get("study_id") or study_id),
            raw_status=str(row.get("status") or ""),
            entered_code=str(row.get("study_code") or row.get("entered_code") or ""),
            started_at=read_time(row.get("started_at")),
            completed_at=read_time(row.get("completed_at")),
            return_requested=bool(row.get("return_requested")),
            bonuses_minor=None if bonuses is None else tuple(whole(amount) for amount in bonuses),
        )


@dataclass(frozen=True)
class BonusBatch:
    """Bonuses set up and not yet paid; all amounts in minor units."""

    id: str
    amount_minor: int
    fees_minor: int
    vat_minor: int
    total_minor: int

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "BonusBatch":
        return cls(
            id=identifier(row["id"]),
            amount_minor=whole(row["amount"]),
            fees_minor=whole(row["fees"]),
            vat_minor=whole(row["vat"]),
            total_minor=whole(row["total_amount"]),
        )


@dataclass(frozen=True)
class PanelFilter:
    """A prescreener; ``choices`` maps the service's key to what participants chose from."""

    id: str
    title: str
    question: str
    type: str
    choices: Mapping[str, str]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "PanelFilter":
        return cls(
            id=identifier(row["filter_id"]),
            title=str(row.get("title") or ""),
            question=str(row.get("question") or row.get("description") or ""),
            type=str(row.get("type") or ""),
            choices={str(key): str(label) for key, label in (row.get("choices") or {}).items()},
        )


@dataclass(frozen=True)
class WebhookSubscription:
    """An event type and the address that is told of it."""

    id: str
    event_type: str
    target_url: str
    is_enabled: bool

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "WebhookSubscription":
        return cls(
            id=identifier(row["id"]),
            event_type=str(row["event_type"]),
            target_url=str(row["target_url"]),
            is_enabled=bool(row.get("is_enabled")),
        )


def read_time(value: Any) -> datetime | None:
    """A time of the service, which is UTC where it names no zone; None where there is none or it cannot be read."""
    if not isinstance(value, str) or not value:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def identifier(value: Any) -> str:
    """Raises ValueError for what nothing could be asked about."""
    if not isinstance(value, (str, int)) or not str(value):
        raise ValueError(f"{type(value).__name__} in place of an id")
    return str(value)


def whole(value: Any) -> int:
    """Pence, or how many of something. Raises ValueError or TypeError for anything else: nothing is rounded here."""
    number = int(value)
    if isinstance(value, bool) or number != float(value):
        raise ValueError(f"{value} is no whole number")
    return number


def _number(value: Any) -> int | None:
    return None if value is None else whole(value)
