"""What a board shows, as its address says it: filters, order, columns, snapshot. Pure but for what it reads of entries.

Every address with the same meaning has one spelling, so that it can be cited and cached.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from imagedb.models import AttackFamily
from leaderboard.columns import ALWAYS, BY_KEY, COLUMNS, DEFAULT_KEYS
from leaderboard.models import EntryVerdict
from leaderboard.selectors.rows import Row

# In the order of the form and of the address; of these only columns may be given more than once.
FILTERS = ("target_model", "family", "verdict", "year", "min_raters")
PARAMETERS = (*FILTERS, "sort", "columns", "snapshot")
LARGEST_NUMBER = 2**31 - 1


class UnclearQuery(ValueError):
    """Parameters that make no sense: a message for each of them by its name."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {message}" for name, message in problems.items()))
        self.problems = dict(problems)


@dataclass(frozen=True)
class BoardQuery:
    """Empty values are no filter. ``sort`` is a column's key, with a minus in front for the reverse order."""

    target_model: str = ""
    family: str = ""
    verdict: str = ""
    year: int | None = None
    min_raters: int | None = None
    sort: str = "rank"
    columns: tuple[str, ...] = DEFAULT_KEYS
    snapshot: int | None = None

    @property
    def is_filtered(self) -> bool:
        return any(getattr(self, name) not in ("", None) for name in FILTERS)

    @property
    def is_common(self) -> bool:
        """Whether it is one of the few that many ask for; filters and chosen columns have no end of combinations."""
        return not self.is_filtered and self.columns == DEFAULT_KEYS

    def encoded(self, **changes: Any) -> str:
        """The query string of this query with some changes; empty when everything is as it comes."""
        wanted, plain = replace(self, **changes), BoardQuery()
        pairs = [(name, value) for name in PARAMETERS if (value := getattr(wanted, name)) != getattr(plain, name)]
        return urlencode(
            [(name, item) for name, value in pairs for item in (value if isinstance(value, tuple) else (value,))]
        )

    def sorted_by(self, key: str) -> str:
        """The query string for a click on a column's head: a second click turns the order round."""
        return self.encoded(sort=f"-{key}" if self.sort == key else key)

    def apply(self, entries: Iterable[Row]) -> list[Row]:
        """The entries that pass the filters, in order; those without the value sorted by come last either way."""
        left = [entry for entry in entries if self._passes(entry)]
        order = BY_KEY[self.sort.removeprefix("-")].order
        known = [entry for entry in left if order(entry) is not None]
        known.sort(key=order, reverse=self.sort.startswith("-"))
        return known + [entry for entry in left if order(entry) is None]

    def _passes(self, entry: Row) -> bool:
        return (
            (not self.target_model or entry.target_model.slug == self.target_model)
            and (not self.family or entry.attack.family == self.family)
            and (not self.verdict or entry.verdict == self.verdict)
            and (self.year is None or entry.attack.year == self.year)
            and (self.min_raters is None or entry.participants >= self.min_raters)
        )


@dataclass(frozen=True)
class Choices:
    """What a board's entries can be filtered by: value and label."""

    target_model: Sequence[tuple[str, str]]
    family: Sequence[tuple[str, str]]
    verdict: Sequence[tuple[str, str]]
    year: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, entries: Sequence[Row]) -> "Choices":
        models = {entry.target_model.slug: entry.target_model.name for entry in entries}
        families = {entry.attack.family for entry in entries}
        verdicts = {entry.verdict for entry in entries}
        years = {entry.attack.year for entry in entries if entry.attack.year is not None}
        return cls(
            target_model=sorted(models.items(), key=lambda item: item[1].casefold()),
            family=[(value, str(label)) for value, label in AttackFamily.choices if value in families],
            verdict=[(value, str(label)) for value, label in EntryVerdict.choices if value in verdicts],
            year=[(str(year), str(year)) for year in sorted(years, reverse=True)],
        )


def parse(parameters: Iterable[tuple[str, list[str]]]) -> BoardQuery:
    """Read a query string's (name, values). An empty value is what a form sends for "any". Raises UnclearQuery."""
    found: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, values in parameters:
        try:
            value = _read(name, values)
        except ValueError as error:
            problems[name] = str(error)
        else:
            if value is not None:
                found[name] = value
    if problems:
        raise UnclearQuery(problems)
    return BoardQuery(**found)


def _read(name: str, values: list[str]) -> Any:
    """The value of a parameter; None stands for "any". Raises ValueError with a message for people."""
    if name not in PARAMETERS:
        raise ValueError(f"Unknown. Known are {', '.join(PARAMETERS)}.")
    if name == "columns":
        return _columns(values)
    if len(values) > 1:
        raise ValueError("Given more than once.")
    return _value(name, values[0].strip()) if values[0].strip() else None


def _columns(values: list[str]) -> tuple[str, ...]:
    if unknown := sorted(set(values) - BY_KEY.keys()):
        raise ValueError(f"{unknown[0]!r} is no column. Columns are {', '.join(BY_KEY)}.")
    return tuple(column.key for column in COLUMNS if column.key in values or column.key in ALWAYS)


def _value(name: str, text: str) -> str | int:
    if name in ("year", "min_raters", "snapshot"):
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= LARGEST_NUMBER):
            raise ValueError(f"{text!r} is no whole number.")
        return int(text)
    known = {
        "family": list(AttackFamily.values),
        "verdict": list(EntryVerdict.values),
        "sort": [sign + key for key in BY_KEY for sign in ("", "-")],
    }.get(name)
    if known is not None and text not in known:
        raise ValueError(f"{text!r} is none of {', '.join(known)}.")
    return text
