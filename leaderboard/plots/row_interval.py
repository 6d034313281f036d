"""One interval, small enough for a table's cell. All rows of a table share one scale. Pure."""

from collections.abc import Iterable

from leaderboard.plots.axis import Axis
from leaderboard.plots.drawing import Box, Drawing, Line
from leaderboard.plots.marks import colour, mark

WIDTH, HEIGHT = 220, 26
MARGIN = 8


def shared_axis(values: Iterable[float | None], bound: float) -> Axis:
    """The scale of a table: all values, the bounds and zero lie on it."""
    known = [value for value in values if value is not None]
    low, high = min([-1.5 * bound, *known]), max([1.5 * bound, *known])
    return Axis(low, high, MARGIN, WIDTH - MARGIN)


def draw_row_interval(
    axis: Axis,
    bound: float,
    *,
    difference: float | None,
    low: float | None,
    high: float | None,
    verdict: str,
    title: str,
) -> Drawing:
    """Difference and interval on the band of no difference; only the band where there is no result."""
    middle = HEIGHT / 2
    drawing = Drawing(WIDTH, HEIGHT, title)
    drawing.add(Box(axis.at(-bound), 0, axis.at(bound) - axis.at(-bound), HEIGHT))
    drawing.add(Line(axis.at(0), 0, axis.at(0), HEIGHT, stroke="soft", width=0.75))
    if low is not None and high is not None:
        drawing.add(Line(axis.at(low), middle, axis.at(high), middle, stroke=colour(verdict), width=2))
    if difference is not None:
        drawing.add(*mark(verdict, axis.at(difference), middle, 4.5))
    return drawing
