"""What participants post, checked before it reaches a service."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms

from studies.feedback import LONGEST_ANSWER, NOT_OFFERED, TOO_LONG, FeedbackItem


class ConsentForm(forms.Form):
    """The decision, and the window it was made in."""

    decision = forms.ChoiceField(choices=[("accept", "accept"), ("decline", "decline")])
    viewport_width = forms.CharField(required=False)
    viewport_height = forms.CharField(required=False)
    device_pixel_ratio = forms.CharField(required=False)

    # A browser that measures oddly must not keep anybody out: what is not a number is left out.
    def clean_viewport_width(self) -> int | None:
        return _pixels(self.cleaned_data["viewport_width"])

    def clean_viewport_height(self) -> int | None:
        return _pixels(self.cleaned_data["viewport_height"])

    def clean_device_pixel_ratio(self) -> float | None:
        try:
            ratio = float(self.cleaned_data["device_pixel_ratio"])
        except ValueError:
            return None
        return ratio if math.isfinite(ratio) else None


def _pixels(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else None


class ChoiceForm(forms.Form):
    """The answer to one colour plate or one comprehension pair."""

    token = forms.UUIDField()
    answer = forms.CharField(max_length=10)


def as_counted(text: str) -> str:
    """Browsers count a line break as one character and send two."""
    return text.replace("\r\n", "\n").replace("\0", "")


class FeedbackForm(forms.Form):
    """The optional questions after the main study. Their fields have a prefix, so that any name is possible."""

    prefix = "item"

    def __init__(self, items: Iterable[FeedbackItem], data: Mapping[str, str] | None = None) -> None:
        super().__init__(None if data is None else {name: as_counted(text) for name, text in data.items()})
        for item in items:
            self.fields[item.name] = _choice(item) if item.choices else _words(item)

    def answers(self) -> dict[str, str]:
        """What was posted, by the names of the questions, fit or unfit."""
        return {name: self.data.get(self.add_prefix(name), "") for name in self.fields}


def _choice(item: FeedbackItem) -> forms.Field:
    numbered = [(str(number), choice) for number, choice in enumerate(item.choices, start=1)]
    return forms.ChoiceField(
        label=item.question,
        choices=numbered,
        required=False,
        widget=forms.RadioSelect,
        error_messages={"invalid_choice": NOT_OFFERED},
    )


def _words(item: FeedbackItem) -> forms.Field:
    return forms.CharField(
        label=item.question,
        max_length=LONGEST_ANSWER,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        error_messages={"max_length": TOO_LONG},
    )


@dataclass(frozen=True)
class PostedRating:
    """A rating as the page posts it; studies.services.rating.Timings says what each measurement means.

    ``start_position``: where the scale stood before it was touched; None when it showed no position.
    ``revises``: it is another answer to an item that has one.
    """

    token: UUID
    value: int
    start_position: int | None
    response_ms: int | None
    first_interaction_ms: int
    last_interaction_ms: int | None
    focus_losses: int | None
    visible_ms: int | None
    shown_width: int | None
    shown_height: int | None
    client_ms: int | None
    revises: bool


def parse_token(body: bytes) -> UUID:
    """Read JSON that names an item by its token. Raises ValueError with a sentence."""
    return _token(_json_object(body))


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        posted = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError("The answer is not valid JSON.") from error
    if not isinstance(posted, dict):
        raise ValueError("The answer must be a JSON object.")  # noqa: TRY004 - one kind of error for the caller
    return posted


def _token(posted: dict[str, Any]) -> UUID:
    token = posted.get("token")
    try:
        if isinstance(token, str):
            return UUID(token)
    except ValueError:
        pass
    raise ValueError("token: this is not the token of an item.")


def parse_rating(body: bytes) -> PostedRating:
    """Read the JSON of a rating. Raises ValueError with a sentence that names the field."""
    posted = _json_object(body)
    token = _token(posted)
    value = _integer(posted, "value")
    if value is None:
        raise ValueError("value is missing: the scale has not been answered.")
    if posted.get("touched", True) is not True:
        raise ValueError("touched must be true: the scale has not been touched, so there is no answer yet.")
    first_interaction_ms = _integer(posted, "first_interaction_ms")
    if first_interaction_ms is None:
        raise ValueError("first_interaction_ms is missing: it says when the scale was touched.")
    return PostedRating(
        token=token,
        value=value,
        start_position=_integer(posted, "start_position"),
        response_ms=_integer(posted, "response_ms"),
        first_interaction_ms=first_interaction_ms,
        last_interaction_ms=_integer(posted, "last_interaction_ms"),
        focus_losses=_integer(posted, "focus_losses"),
        visible_ms=_integer(posted, "visible_ms"),
        shown_width=_integer(posted, "shown_width"),
        shown_height=_integer(posted, "shown_height"),
        client_ms=_integer(posted, "client_ms"),
        revises=posted.get("revision") is True,
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _integer(posted: dict[str, Any], name: str) -> int | None:
    number = posted.get(name)
    if number is None:
        return None
    # bool is an int to Python; true is not an answer on a scale.
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{name} must be a whole number.")  # noqa: TRY004 - one kind of error for the caller
    return number
