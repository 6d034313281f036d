"""Prescreeners found by what they say: the service's ids and keys are not documented and have changed before.

What is found is a proposal; a person sees the service's own question and answers and confirms them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from studies.recruitment.answers import PanelFilter


@dataclass(frozen=True)
class Wanted:
    """A prescreener that a study of images wants: how it and its right answers are recognised."""

    name: str
    label: str
    title: re.Pattern[str]
    answers: re.Pattern[str]


WANTED = (
    Wanted(
        "colour_vision",
        "Colour vision",
        re.compile(r"colou?r.?(blind|vision|deficien)", re.IGNORECASE),
        re.compile(r"^(no\b|normal\b|none\b)", re.IGNORECASE),
    ),
    Wanted(
        "english",
        "English",
        re.compile(r"fluent languages?", re.IGNORECASE),
        re.compile(r"^english$", re.IGNORECASE),
    ),
)


@dataclass(frozen=True)
class Candidate:
    """A prescreener that may be the wanted one; ``proposed`` has the keys of the answers that look right."""

    wanted: Wanted
    filter: PanelFilter
    proposed: tuple[str, ...]


def candidates(filters: Iterable[PanelFilter]) -> list[Candidate]:
    """All that may be meant, in the order of WANTED. A wanted one that is missing has none."""
    known = [one for one in filters if one.type == "select" and one.choices]
    return [
        Candidate(
            wanted,
            one,
            tuple(key for key, label in one.choices.items() if wanted.answers.search(label.strip())),
        )
        for wanted in WANTED
        for one in known
        if wanted.title.search(f"{one.title} {one.question}")
    ]


def selection(candidate: Candidate, keys: Iterable[str]) -> dict[str, Any]:
    """As it is sent with a study. Raises ValueError for a key that is no answer of the filter."""
    chosen = list(keys)
    if unknown := [key for key in chosen if key not in candidate.filter.choices]:
        raise ValueError(f"“{candidate.filter.title}” has no answer {unknown[0]}.")
    return {"filter_id": candidate.filter.id, "selected_values": chosen}


def in_words(candidate: Candidate, keys: Iterable[str]) -> str:
    """For people: the filter's title and the answers it lets in."""
    choices: Mapping[str, str] = candidate.filter.choices
    return f"{candidate.filter.title}: {' or '.join(choices[key] for key in keys)}"
