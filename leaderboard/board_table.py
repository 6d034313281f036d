"""Stored entries as the tables that pages show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from leaderboard.board_query import BoardQuery
from leaderboard.columns import BY_KEY, Column
from leaderboard.formatting import decimals_of, format_interval, format_number
from leaderboard.models import Board, Snapshot
from leaderboard.plots.row_interval import RowIntervals, shared_axis
from leaderboard.selectors.rows import AnyEntry, Row


@dataclass(frozen=True)
class Head:
    """A column's head: where a click sorts, and how it is sorted now (``ascending``, ``descending`` or nothing)."""

    column: Column
    sort_query: str
    direction: str


@dataclass(frozen=True)
class Table:
    """Rows of one snapshot, with the chosen columns.

    ``rows`` are elements made here: as a template's loop over 2,000 cells they took half of the time of a page.
    """

    snapshot: Snapshot
    heads: Sequence[Head]
    rows: SafeString

    @property
    def scale(self) -> tuple[str, str]:
        """Both ends of the board's scale, as text."""
        return scale_ends(self.snapshot.board)


def make_table(snapshot: Snapshot, entries: Sequence[Row], query: BoardQuery) -> Table:
    """The table of these entries, all of ``snapshot`` and in the order to show."""
    columns = [BY_KEY[key] for key in query.columns]
    board = snapshot.board
    decimals = decimals_of(board.scale_minimum, board.scale_maximum)
    values = (value for entry in entries for value in (entry.difference, entry.ci90_low, entry.ci90_high))
    rows = _Rows(columns, decimals, RowIntervals(shared_axis(values, snapshot.bound), snapshot.bound))
    return Table(
        snapshot=snapshot,
        heads=[
            Head(
                column,
                query.sorted_by(column.key),
                {column.key: "ascending", f"-{column.key}": "descending"}.get(query.sort, ""),
            )
            for column in columns
        ],
        rows=mark_safe("\n".join(map(rows.write, entries))),  # noqa: S308 - write escapes what is in them,
    )


def scale_ends(board: Board) -> tuple[str, str]:
    """Minimum and maximum of a board's scale, with true minus signs."""
    return format_number(board.scale_minimum, 0), format_number(board.scale_maximum, 0)


def entry_address(entry: AnyEntry) -> str:
    """The permanent address of an entry: in this snapshot, whatever comes later."""
    snapshot = entry.snapshot
    board = _address("board", snapshot.board.slug)
    # A board's page asks for hundreds of them, and Django takes its time; tests hold that both are the same.
    return f"{board}{entry.attack.slug}/{entry.target_model.slug}/?snapshot={snapshot.number}"


@lru_cache(maxsize=10_000)
def _address(name: str, slug: str) -> str:
    return reverse(name, args=[slug])


def by_snapshot(entries: Iterable[Row]) -> list[tuple[Snapshot, list[Row]]]:
    """The entries of each snapshot, in the order they come."""
    found: dict[int, tuple[Snapshot, list[Row]]] = {}
    for entry in entries:
        found.setdefault(entry.snapshot.pk, (entry.snapshot, []))[1].append(entry)
    return list(found.values())


def verdict_mark(verdict: str) -> SafeString:
    """The verdict's mark, drawn by the style sheet; it only repeats the word beside it."""
    return mark_safe(f'<span class="mark mark-{verdict}" aria-hidden="true"></span>')  # noqa: S308 - a name of our own


def interval_picture(entry: Row, intervals: RowIntervals, decimals: int) -> SafeString:
    """The small drawing of an entry, with its numbers as a text alternative."""
    return mark_safe(_interval_picture(entry, intervals, decimals))  # noqa: S308 - drawn by us from numbers


def _interval_picture(entry: Row, intervals: RowIntervals, decimals: int) -> str:
    number = format_number(entry.difference, decimals, always_signed=True)
    interval = format_interval(entry.ci90_low, entry.ci90_high, decimals)
    title = "No result" if entry.difference is None else f"Difference {number}, 90 % interval {interval}"
    return intervals.draw(entry.difference, entry.ci90_low, entry.ci90_high, entry.verdict, title)


class _Rows:
    """Writes the rows of one table: what is the same in all of them is put together once."""

    def __init__(self, columns: Sequence[Column], decimals: int, intervals: RowIntervals) -> None:
        self._decimals = decimals
        self._intervals = intervals
        special = {
            "attack": self._attack,
            "target_model": self._target_model,
            "interval": self._interval,
            "verdict": self._verdict,
            "flags": self._flags,
        }
        self._cells = [(*_tags(column), special.get(column.key), column.show, column.note) for column in columns]

    def write(self, entry: Row) -> str:
        """One row. Whatever stands in a cell is escaped."""
        decimals = self._decimals
        parts = ['<tr role="row">']
        for opening, closing, special, show, note in self._cells:
            parts += opening, special(entry) if special else _escaped(show(entry, decimals))
            if note and (text := note(entry, decimals)):
                parts += ' <span class="soft">', _escaped(text), "</span>"
            parts.append(closing)
        parts.append("</tr>")
        return "".join(parts)

    def _attack(self, entry: Row) -> str:
        return _link(entry_address(entry), entry.attack.name)

    def _target_model(self, entry: Row) -> str:
        return _link(_address("target-model", entry.target_model.slug), entry.target_model.name)

    def _interval(self, entry: Row) -> str:
        return _interval_picture(entry, self._intervals, self._decimals)

    def _verdict(self, entry: Row) -> str:
        return _verdict(entry.verdict, entry.verdict_label)

    def _flags(self, entry: Row) -> str:
        return "".join(f'<span class="flag">{_escaped(label)}</span> ' for label in entry.flag_labels) or "–"


def _tags(column: Column) -> tuple[str, str]:
    """Around a cell. On narrow screens rows are cards: roles keep them a table for screen readers all the same."""
    if column.key == "attack":
        return '<th scope="row" role="rowheader" class="cell-attack">', "</th>"
    number = " number" if column.is_number else ""
    return f'<td role="cell" class="cell-{column.key}{number}" data-label="{_escaped(column.name)}">', "</td>"


# Numbers, names and families come again and again.
_escaped = lru_cache(maxsize=10_000)(escape)


@lru_cache
def _verdict(verdict: str, label: str) -> str:
    return f"{verdict_mark(verdict)} {_escaped(label)}"


def _link(address: str, name: str) -> str:
    return f'<a href="{_escaped(address)}">{_escaped(name)}</a>'
