"""What Prolific answers, as typed values. The service's IP addresses and other extras are dropped on reading."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from studies.recruitment.errors import ProlificError
from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus, study_status, submission_status


@contextmanager
def readable(what: str) -> Iterator[None]:
    """An answer of another form than expected is a failure of the service, like any other."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        text = f"The answer about {what} has another form than expected ({type(error).__name__}: {error})."
        raise ProlificError(f"reading the answer about {what}", text=text) from None


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
    @readable("a study")
    def read(cls, row: Mapping[str, Any]) -> "PanelStudyState":
        return cls(
            id=str(row["id"]),
            raw_status=str(row.get("status") or ""),
            internal_name=str(row.get("internal_name") or ""),
            places=_number(row.get("total_available_places")) or 0,
            places_taken=_number(row.get("places_taken")),
            reward_minor=_number(row.get("reward")) or 0,
            codes=tuple(row.get("completion_codes") or ()),
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
    @readable("a submission")
    def read(cls, row: Mapping[str, Any], *, study_id: str = "") -> "SubmissionState":
        bonuses = row.get("bonus_payments")
        return cls(
            id=str(row["id"]),
            participant_id=str(row.get("participant_id") or row.get("participant") or ""),
            study_id=str(row.get("study_id") or study_id),
            raw_status=str(row.get("status") or ""),
            entered_code=str(row.get("study_code") or row.get("entered_code") or ""),
            started_at=read_time(row.get("started_at")),
            completed_at=read_time(row.get("completed_at")),
            return_requested=bool(row.get("return_requested")),
            bonuses_minor=None if bonuses is None else tuple(int(amount) for amount in bonuses),
        )


@dataclass(frozen=True)
class BonusBatch:
    """Bonuses set up and not yet paid; all amounts in minor units."""

    id: str
    amount_minor: int
    fees_minor: int
    vat_minor: int
    total_minor: int


@dataclass(frozen=True)
class PanelFilter:
    """A prescreener; ``choices`` maps the service's key to what participants chose from."""

    id: str
    title: str
    question: str
    type: str
    choices: Mapping[str, str]

    @classmethod
    @readable("a filter")
    def read(cls, row: Mapping[str, Any]) -> "PanelFilter":
        return cls(
            id=str(row["filter_id"]),
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


def read_time(value: Any) -> datetime | None:
    """A time of the service, which is UTC where it names no zone; None where there is none or it cannot be read."""
    if not isinstance(value, str) or not value:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _number(value: Any) -> int | None:
    return None if value is None else int(value)
