"""The parameters of an attack, stored as JSON, as lines that people read. Pure."""

from typing import Any

SEPARATOR = " › "
NOT_GIVEN = "–"
NOTHING: tuple[Any, ...] = (None, "", [], {})


def parameter_lines(parameters: Any) -> list[tuple[str, str]]:
    """(name, value) of each parameter; a nested one is named by its whole way, such as "schedule › steps"."""
    if isinstance(parameters, dict) and parameters:
        return [line for name, value in parameters.items() for line in _lines(str(name), value)]
    return [("value", _text(parameters))] if parameters not in NOTHING else []


def _lines(name: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [(f"{name}{SEPARATOR}{inner}", text) for inner, text in parameter_lines(value)]
    return [(name, _text(value))]


def _text(value: Any) -> str:
    if value in NOTHING:
        return NOT_GIVEN
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(_text(one) for one in value)
        case dict():
            return "; ".join(f"{name}: {text}" for name, text in parameter_lines(value))
        case _:
            return str(value)
