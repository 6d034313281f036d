"""What the stand-in remembers, and the rules that hold for all of it: ids, time, errors, money paid."""

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

WORKSPACE_ID = "5f" * 12
PROJECT_ID = "6a" * 12
TOKEN = "fake-token"  # noqa: S105 - opens nothing but the stand-in

# Prolific's own fees and taxes differ by account; these are the stand-in's, so that totals are more than rewards.
FEE_PER_CENT = 33
VAT_PER_CENT_OF_FEE = 20

Row = dict[str, Any]


class ApiError(Exception):
    """An answer that is an error; ``detail`` may be a text, a list, or an object by field."""

    def __init__(self, status: int, title: str, detail: Any, code: int = 0) -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.detail = detail
        self.code = code or status * 100

    def body(self, shape: str = "wrapped") -> Row:
        """The three shapes that Prolific's endpoints use: "wrapped", "inner" and "message"."""
        if shape == "message":
            return {"message": self.title, "detail": self.detail}
        inner = {
            "status": self.status,
            "error_code": self.code,
            "title": self.title,
            "detail": self.detail,
            "additional_information": "",
        }
        return inner if shape == "inner" else {"error": inner}


def not_found(what: str) -> ApiError:
    return ApiError(404, "Not found", f"{what} was not found.")


@dataclass
class Settings:
    """How the stand-in behaves; a test may change any of it while it runs."""

    refuses_fixed_screen_outs: bool = False  # as for workspaces without that feature
    bonus_lag_reads: int = 0  # so many readings of a submission do not show a bonus yet
    webhook_retry_seconds: float = 0.05
    page_size_at_most: int = 1000


@dataclass
class World:
    """Everything there is. ``lock`` is held by whoever reads or changes it."""

    settings: Settings = field(default_factory=Settings)
    lock: threading.RLock = field(default_factory=threading.RLock)
    studies: dict[str, Row] = field(default_factory=dict)
    submissions: dict[str, Row] = field(default_factory=dict)
    batches: dict[str, Row] = field(default_factory=dict)
    messages: list[Row] = field(default_factory=list)
    payments: list[Row] = field(default_factory=list)  # every penny that reached a participant
    announce: Callable[[Row], None] = lambda event: None

    def pay(self, submission: Mapping[str, Any], kind: str, amount_minor: int) -> None:
        """``kind``: reward, screen_out or bonus."""
        self.payments.append(
            {
                "submission_id": submission["id"],
                "participant_id": submission["participant"],
                "study_id": submission["study_id"],
                "kind": kind,
                "amount_minor": amount_minor,
            }
        )


def new_id() -> str:
    """24 hexadecimal characters, as Prolific's."""
    return secrets.token_hex(12)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def with_fees(amount_minor: int) -> tuple[int, int, int]:
    """Fees, VAT and total of an amount paid to participants; each rounded up to a whole penny."""
    fees = -(-amount_minor * FEE_PER_CENT // 100)
    vat = -(-fees * VAT_PER_CENT_OF_FEE // 100)
    return fees, vat, amount_minor + fees + vat
