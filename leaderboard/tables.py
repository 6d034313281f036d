"""Stored entries as the tables that the leaderboard page shows: order, rank, formatting and figure geometry."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from imagedb.models import Attack, TargetModel
from leaderboard.models import Board, Entry

FIGURE_WIDTH = 240  # in the units of the drawing
FIGURE_MARGIN = 10  # room for half a marker at either end of the scale


@dataclass(frozen=True)
class Figure:
    """Where the two means lie on the drawn scale; None where there is no mean. Horizontal positions only."""

    minimum: float
    middle: float
    maximum: float
    clean: float | None
    modified: float | None
    bar_start: float
    bar_width: float
    description: str


@dataclass(frozen=True)
class Row:
    """One entry, ready to show."""

    entry: Entry
    rank: int | None
    images: int
    difference: str
    mean_modified: str
    sd_modified: str
    mean_clean: str
    sd_clean: str
    figure: Figure


@dataclass(frozen=True)
class Table:
    """The entries of one board, most imperceptible first; demonstration data never stands among real data."""

    board: Board
    is_demo: bool
    minimum: str
    maximum: str
    rows: list[Row]
    computed_at: datetime


def make_tables(entries: Iterable[Entry]) -> list[Table]:
    """Sort entries into tables: real data before demonstration data, then by the board's name.

    In a table the smallest absolute difference comes first. Entries with equal ones share a rank and stand in the
    order of attack and target model; entries without a difference come last and have no rank.
    """
    leagues: dict[int, list[Entry]] = {}
    for entry in entries:
        leagues.setdefault(entry.snapshot.board_id, []).append(entry)
    tables = [_table(league) for league in leagues.values()]
    return sorted(tables, key=lambda table: (table.is_demo, table.board.name))


def only(
    tables: Iterable[Table], *, attack: Attack | None = None, target_model: TargetModel | None = None
) -> list[Table]:
    """Leave the rows of an attack, or of a target model; their ranks stay those among all. Empty tables go."""
    left = [
        replace(
            table,
            rows=[
                row
                for row in table.rows
                if (attack is None or row.entry.attack_id == attack.pk)
                and (target_model is None or row.entry.target_model_id == target_model.pk)
            ],
        )
        for table in tables
    ]
    return [table for table in left if table.rows]


def _table(league: list[Entry]) -> Table:
    ordered = sorted(league, key=_most_imperceptible_first)
    board = ordered[0].snapshot.board
    return Table(
        board=board,
        is_demo=board.is_demo,
        minimum=format_number(board.scale_minimum, 0),
        maximum=format_number(board.scale_maximum, 0),
        rows=[_row(entry, entry.rank, board) for entry in ordered],
        computed_at=max(entry.computed_at for entry in ordered),
    )


def _most_imperceptible_first(entry: Entry) -> tuple[bool, float, str, str]:
    unscored = entry.difference is None
    return (unscored, abs(entry.difference or 0), entry.attack.name.casefold(), entry.target_model.name.casefold())


def _row(entry: Entry, place: int | None, board: Board) -> Row:
    # A whole point of a 200-point slider is little; on a five-point scale it is a lot.
    decimals = 1 if board.scale_maximum - board.scale_minimum >= 20 else 2
    mean_modified = format_number(entry.mean_modified, decimals)
    mean_clean = format_number(entry.mean_clean, decimals)
    return Row(
        entry=entry,
        rank=place,
        images=entry.images_modified + entry.images_clean,
        difference=format_number(entry.difference, decimals, always_signed=True),
        mean_modified=mean_modified,
        sd_modified=format_number(entry.sd_modified, decimals),
        mean_clean=mean_clean,
        sd_clean=format_number(entry.sd_clean, decimals),
        figure=draw(
            board,
            clean=entry.mean_clean,
            modified=entry.mean_modified,
            description=f"Mean of clean images {mean_clean}, of modified images {mean_modified}",
        ),
    )


def format_number(value: float | None, decimals: int, *, always_signed: bool = False) -> str:
    """Write a number with a true minus sign; what rounds to zero has no sign, and what is not defined is a dash."""
    if value is None:
        return "–"
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0:
        return text
    if value < 0:
        return f"\N{MINUS SIGN}{text}"
    return f"+{text}" if always_signed else text


def draw(board: Board, *, clean: float | None, modified: float | None, description: str) -> Figure:
    """Place the two means (points of the scale) on a drawing of the board's scale."""

    def position(value: float) -> float:
        share = (value - board.scale_minimum) / (board.scale_maximum - board.scale_minimum)
        return round(FIGURE_MARGIN + share * (FIGURE_WIDTH - 2 * FIGURE_MARGIN), 2)

    ends = [] if clean is None or modified is None else [position(clean), position(modified)]
    return Figure(
        minimum=position(board.scale_minimum),
        middle=position((board.scale_minimum + board.scale_maximum) / 2),
        maximum=position(board.scale_maximum),
        clean=None if clean is None else position(clean),
        modified=None if modified is None else position(modified),
        bar_start=min(ends, default=0),
        bar_width=round(max(ends, default=0) - min(ends, default=0), 2),
        description=description,
    )
