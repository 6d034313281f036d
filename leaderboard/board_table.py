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
from leaderboard.models import Board, Entry, Flag, Snapshot
from leaderboard.plots.axis import Axis
from leaderboard.plots.drawing import Drawing
from leaderboard.plots.marks import mark
from leaderboard.plots.row_interval import draw_row_interval, shared_axis
from leaderboard.plots.svg import svg


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
    rows: Sequence[SafeString]

    @property
    def scale(self) -> tuple[str, str]:
        """Both ends of the board's scale, as text."""
        return scale_ends(self.snapshot.board)


def make_table(snapshot: Snapshot, entries: Sequence[Entry], query: BoardQuery) -> Table:
    """The table of these entries, all of ``snapshot`` and in the order to show."""
    columns = [BY_KEY[key] for key in query.columns]
    board = snapshot.board
    decimals = decimals_of(board.scale_minimum, board.scale_maximum)
    axis = shared_axis(
        (value for entry in entries for value in (entry.difference, entry.ci90_low, entry.ci90_high)), snapshot.bound
    )
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
        rows=[_row(columns, entry, decimals, axis, snapshot) for entry in entries],
    )


def scale_ends(board: Board) -> tuple[str, str]:
    """Minimum and maximum of a board's scale, with true minus signs."""
    return format_number(board.scale_minimum, 0), format_number(board.scale_maximum, 0)


def entry_address(entry: Entry) -> str:
    """The permanent address of an entry: in this snapshot, whatever comes later."""
    board = _address("board", entry.snapshot.board.slug)
    # A board's page asks for hundreds of them, and Django takes its time; tests hold that both are the same.
    return f"{board}{entry.attack.slug}/{entry.target_model.slug}/?snapshot={entry.snapshot.number}"


@lru_cache(maxsize=10_000)
def _address(name: str, slug: str) -> str:
    return reverse(name, args=[slug])


def by_snapshot(entries: Iterable[Entry]) -> list[tuple[Snapshot, list[Entry]]]:
    """The entries of each snapshot, in the order they come."""
    found: dict[int, tuple[Snapshot, list[Entry]]] = {}
    for entry in entries:
        found.setdefault(entry.snapshot_id, (entry.snapshot, []))[1].append(entry)
    return list(found.values())


def verdict_mark(verdict: str) -> SafeString:
    """The verdict's mark as a small picture, which only repeats the word beside it."""
    drawing = Drawing(14, 14, "")
    drawing.add(*mark(verdict, 7, 7, 4.5))
    return mark_safe(  # noqa: S308 - of numbers and names of our own
        svg(drawing, is_file=False).replace('role="img" aria-label=""', 'aria-hidden="true"')
    )


VERDICT_MARKS = {
    verdict: verdict_mark(verdict) for verdict in ("imperceptible", "perceptible", "inconclusive", "not_estimable")
}


def _row(columns: Sequence[Column], entry: Entry, decimals: int, axis: Axis, snapshot: Snapshot) -> SafeString:
    """One row; cards on narrow screens. Roles keep it a table for screen readers when CSS lays it out otherwise."""
    cells = "".join(_cell(column, entry, decimals, axis, snapshot) for column in columns)
    return mark_safe(f'<tr role="row">{cells}</tr>')  # noqa: S308 - every part is escaped in _cell


def _cell(column: Column, entry: Entry, decimals: int, axis: Axis, snapshot: Snapshot) -> str:
    match column.key:
        case "attack":
            content = _link(entry_address(entry), entry.attack.name)
        case "target_model":
            content = _link(_address("target-model", entry.target_model.slug), entry.target_model.name)
        case "interval":
            content = interval_picture(entry, axis, snapshot.bound, decimals)
        case "verdict":
            content = f"{VERDICT_MARKS[entry.verdict]} {escape(column.show(entry, decimals))}"
        case "flags":
            content = "".join(f'<span class="flag">{escape(Flag(flag).label)}</span> ' for flag in entry.flags) or "–"
        case _:
            content = _escaped(column.show(entry, decimals))
    note = column.note(entry, decimals) if column.note else ""
    if note:
        content = f'{content} <span class="soft">{_escaped(note)}</span>'
    if column.key == "attack":
        return f'<th scope="row" role="rowheader" class="cell-attack">{content}</th>'
    number = " number" if column.is_number else ""
    return f'<td role="cell" class="cell-{column.key}{number}" data-label="{_escaped(column.name)}">{content}</td>'


def interval_picture(entry: Entry, axis: Axis, bound: float, decimals: int) -> SafeString:
    """The small drawing of a row."""
    number = format_number(entry.difference, decimals, always_signed=True)
    interval = format_interval(entry.ci90_low, entry.ci90_high, decimals)
    title = "No result" if entry.difference is None else f"Difference {number}, 90 % interval {interval}"
    drawing = draw_row_interval(
        axis,
        bound,
        difference=entry.difference,
        low=entry.ci90_low,
        high=entry.ci90_high,
        verdict=entry.verdict,
        title=title,
    )
    return mark_safe(svg(drawing, is_file=False))  # noqa: S308 - svg escapes what it writes


# Numbers, families and names of columns come again and again.
_escaped = lru_cache(maxsize=10_000)(escape)


def _link(address: str, name: str) -> str:
    return f'<a href="{escape(address)}">{escape(name)}</a>'
