"""Differences with their 90 % intervals against the equivalence bounds: a forest plot. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.plots.axis import Axis, round_step, tick_label
from leaderboard.plots.drawing import Box, Drawing, Group, Label, Line, shortened, text_width
from leaderboard.plots.marks import add_legend, colour, mark

WIDTH = 960
TOP = 58  # legend, and the names of the two directions
ROW = 26
FEW_ROWS = 40  # more are drawn closer together
CLOSE_ROW = 17
BOTTOM = 48
LARGEST_NAME = 300


@dataclass(frozen=True)
class Interval:
    """One pair: its difference (modified minus clean), the interval's ends, and where a click leads."""

    name: str
    verdict: str
    difference: float | None
    low: float | None
    high: float | None
    value_text: str
    address: str = ""


def draw_intervals(rows: Sequence[Interval], *, bound: float, title: str) -> Drawing:
    """One line per pair, in the order given; the shaded band is where a difference counts as none."""
    size, row = (13.0, ROW) if len(rows) <= FEW_ROWS else (11.0, CLOSE_ROW)
    names = min(LARGEST_NAME, max((1.08 * text_width(entry.name, size) for entry in rows), default=0)) + 18
    values = max((1.08 * text_width(entry.value_text, size) for entry in rows), default=0) + 18
    bottom = TOP + len(rows) * row
    drawing = Drawing(WIDTH, bottom + BOTTOM, title, _description(rows, bound))
    axis = _axis(rows, bound, names, WIDTH - values)
    step = round_step((axis.high - axis.low) / 8)
    drawing.add(Box(axis.at(-bound), TOP, axis.at(bound) - axis.at(-bound), bottom - TOP))
    for value in axis.ticks(8):
        at = axis.at(value)
        if value:
            drawing.add(Line(at, TOP, at, bottom, stroke="line", width=0.75))
        label = tick_label(value, step, always_signed=True)
        drawing.add(Label(at, bottom + 18, label, size=12, fill="soft", anchor="middle"))
    for end in (-bound, bound):
        drawing.add(Line(axis.at(end), TOP, axis.at(end), bottom, stroke="accent", dashes=True))
    drawing.add(Line(axis.at(0), TOP - 4, axis.at(0), bottom, stroke="ink", width=1.25))
    drawing.add(
        Label(axis.at(0) - 12, TOP - 10, "← modified look more genuine", size=12, fill="soft", anchor="end"),
        Label(axis.at(0) + 12, TOP - 10, "people notice →", size=12, fill="soft"),
    )
    for number, entry in enumerate(rows):
        drawing.add(_row(entry, axis, TOP + (number + 0.5) * row, size, names))
    drawing.add(
        Label(
            (axis.start + axis.end) / 2,
            bottom + 38,
            "Difference in points: mean rating of modified minus clean images, with 90 % interval",
            size=12,
            fill="soft",
            anchor="middle",
        )
    )
    add_legend(drawing, axis.start, 16, bound=bound)
    return drawing


def _axis(rows: Sequence[Interval], bound: float, start: float, end: float) -> Axis:
    values = [value for row in rows for value in (row.difference, row.low, row.high) if value is not None]
    low, high = min([-bound, *values]), max([bound, *values])
    step = round_step((high - low) / 8)
    return Axis(low - 0.4 * step, high + 0.4 * step, start, end)


def _row(entry: Interval, axis: Axis, y: float, size: float, names: float) -> Group:
    base = y + size * 0.35
    # Invisible, so that the whole row leads to the entry.
    row = Box(0, y - size, WIDTH, 2 * size, fill="paper", opacity=0)
    shapes: list = [row, Label(0, base, shortened(entry.name, names - 18, size), size=size)]
    if entry.low is not None and entry.high is not None:
        role = colour(entry.verdict)
        shapes.append(Line(axis.at(entry.low), y, axis.at(entry.high), y, stroke=role, width=2))
        shapes += [
            Line(axis.at(end), y - 4, axis.at(end), y + 4, stroke=role, width=2) for end in (entry.low, entry.high)
        ]
    if entry.difference is not None:
        shapes += mark(entry.verdict, axis.at(entry.difference), y, 4.5 if size > 12 else 3.5)
    shapes.append(Label(WIDTH, base, entry.value_text, size=size, anchor="end"))
    return Group(tuple(shapes), f"{entry.name}: {entry.value_text}, {entry.verdict}", entry.address)


def _description(rows: Sequence[Interval], bound: float) -> str:
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("imperceptible", "perceptible")}
    return (
        f"{len(rows)} pairs against bounds of ±{bound:g} points: {counts['imperceptible']} imperceptible, "
        f"{counts['perceptible']} perceptible"
    )
