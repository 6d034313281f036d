"""Form fields of the catalogue that say what is wrong with what was typed."""

import json
from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget

from imagedb.bibtex import problem_of


class ParametersField(forms.CharField):
    """The parameters of an attack: an object in JSON, shown as JSON with one key to a line."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false"})
    EXAMPLE = '{"epsilon": 8, "steps": 100}'

    def prepare_value(self, value: Any) -> Any:
        return json.dumps(value, indent=2, ensure_ascii=False) if isinstance(value, dict) else value

    def to_python(self, value: Any) -> Any:
        if not (value or "").strip():
            return {}
        try:
            found = json.loads(value, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise ValidationError(
                f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}. Write for example "
                f"{self.EXAMPLE}, with double quotes around names and texts."
            ) from error
        except ValueError as error:
            raise ValidationError(str(error)) from error
        if not isinstance(found, dict):
            raise ValidationError(f"Give names with values, in braces, for example {self.EXAMPLE}.")
        if any(not _can_be_stored(text) for text in _texts(found)):
            raise ValidationError("There is a character in it that cannot be stored (U+0000 or half of a pair).")
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return self.to_python(data) != (initial or {})
        except ValidationError:
            return True


class BibtexField(forms.CharField):
    """A BibTeX entry as others copy it."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 8, "spellcheck": "false"})

    def clean(self, value: Any) -> str:
        text = str(super().clean(value)).strip()
        if text and (problem := problem_of(text)):
            raise ValidationError(problem)
        return text


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value of JSON, names too."""
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for name, one in value.items():
                yield name
                yield from _texts(one)


def _can_be_stored(text: str) -> bool:
    """PostgreSQL stores neither U+0000 nor a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON. Write the value as a text, or leave it out.")
