"""What can go wrong between us and Prolific.

``str()`` of an error names the operation and the kind of failure and is fit for logs; ``text`` has the service's own
words, and is for pages. Ids are taken out of it: it is kept, and shown to people who may not know who took part.
"""

import re
from typing import Any

LONGEST_TEXT = 1000
ID = re.compile(r"\b[0-9a-f]{24}\b", re.IGNORECASE)  # of people, submissions and studies alike


class ProlificError(Exception):
    """Prolific did not do what was asked; nothing is known to have changed there unless a subclass says so."""

    def __init__(self, operation: str, *, status: int | None = None, text: str = "") -> None:
        answered = f"HTTP {status}" if status else "no answer"
        super().__init__(f"Prolific, {operation}: {answered}")
        self.operation = operation
        self.status = status
        self.text = ID.sub("(id)", text)[:LONGEST_TEXT] or str(self)


class Refused(ProlificError):
    """The service understood and said no (4xx): the same request would be refused again."""


class NotAllowed(ProlificError):
    """The token is wrong, or its account may not do this (401, 403). What was asked for stays to be done."""


class NotFound(Refused):
    """There is no such thing (404)."""


class TooManyRequests(ProlificError):
    """The service asked to wait (429). It has done nothing."""


class Unavailable(ProlificError):
    """No connection, or for a call that may be repeated no good answer to any try. Later is worth a try."""


class Ambiguous(ProlificError):
    """The request was sent and its answer is lost, or neither yes nor no: it may have been done or not.

    Only raised for calls that must not be repeated. Read the service's own state before doing anything else.
    """


def error_text(body: Any, raw: str) -> str:
    """The service's words in the body of an error, whichever of its shapes it has; else the body as it came.

    Shapes: ``{"error": {"title", "detail", ...}}``, the inner object alone, and ``{"message", "detail"}``; ``detail``
    is a text, a list, or an object of texts or lists by field.
    """
    if not isinstance(body, dict):
        return raw.strip()[:LONGEST_TEXT]
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return _flat(inner) or raw.strip()[:LONGEST_TEXT]
    parts = [
        _flat(inner.get("title")),
        _flat(inner.get("message")),
        _flat(inner.get("detail")),
        _flat(inner.get("additional_information")),
    ]
    said = ". ".join(dict.fromkeys(part.rstrip(".") for part in parts if part))
    return said or raw.strip()[:LONGEST_TEXT]


def _flat(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(_flat(inner) for inner in value)
    return str(value).strip()
