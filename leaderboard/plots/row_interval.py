"""One interval, small enough for a table's cell. All rows of a table share one scale. Pure.

A table has hundreds of them, and both server and browser feel every element. So this is not made of ``drawing``'s
shapes but of two paths for a page, whose style sheet has their colours: the band with a gap at zero, and the interval
with its mark.
"""

from collections.abc import Iterable
from html import escape

from leaderboard.plots.axis import Axis
from leaderboard.plots.marks import colour

WIDTH, HEIGHT = 220, 26
MARGIN = 8
MIDDLE = HEIGHT // 2
# Outlines of the marks of plots/marks.py around the point they start from, and how far they reach to the side.
OUTLINES = {
    "imperceptible": ("m-4.5 0a4.5 4.5 0 1 1 9 0a4.5 4.5 0 1 1-9 0z", 0.0),
    # The inner circle turns the other way, and so is a hole.
    "inconclusive": (
        "m-4.5 0a4.5 4.5 0 1 1 9 0a4.5 4.5 0 1 1-9 0zm1.75 0a2.75 2.75 0 1 0 5.5 0a2.75 2.75 0 1 0-5.5 0z",
        4.0,
    ),
    "perceptible": ("m0-5.6l5.6 5.6-5.6 5.6-5.6-5.6z", 0.0),
}


def shared_axis(values: Iterable[float | None], bound: float) -> Axis:
    """The scale of a table: all values, the bounds and zero lie on it."""
    known = [value for value in values if value is not None]
    low, high = min([-1.5 * bound, *known]), max([1.5 * bound, *known])
    return Axis(low, high, MARGIN, WIDTH - MARGIN)


class RowIntervals:
    """The drawings of one table: differences and intervals on the band of no difference."""

    def __init__(self, axis: Axis, bound: float) -> None:
        self._axis = axis
        left, zero, right = axis.at(-bound), axis.at(0), axis.at(bound)
        self._size = f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
        self._band = (
            f'<path class="f-zone" d="M{left:.2f} 0H{zero - 0.5:.2f}V{HEIGHT}H{left:.2f}z'
            f'M{zero + 0.5:.2f} 0H{right:.2f}V{HEIGHT}H{zero + 0.5:.2f}z"/>'
        )

    def draw(self, difference: float | None, low: float | None, high: float | None, verdict: str, title: str) -> str:
        """One row's, as an element for a page; only the band where there is no result."""
        path = ""
        if difference is not None:
            at = self._axis.at(difference)
            outline, hole = OUTLINES[verdict]
            if low is not None and high is not None:
                path = self._line(low, high, at, hole)
            path = f'<path class="f-{colour(verdict)}" d="{path}M{at:.2f} {MIDDLE}{outline}"/>'
        return f'{self._size} aria-label="{escape(title)}">{self._band}{path}</svg>'

    def _line(self, low: float, high: float, at: float, hole: float) -> str:
        """The interval as a bar of two pixels, with a gap where the mark has its hole."""
        start, end = self._axis.at(low), self._axis.at(high)
        if not hole:
            return _bar(start, end)
        return _bar(start, at - hole) + _bar(at + hole, end)


def _bar(start: float, end: float) -> str:
    return f"M{start:.2f} {MIDDLE - 1}H{end:.2f}v2H{start:.2f}z" if end > start else ""
