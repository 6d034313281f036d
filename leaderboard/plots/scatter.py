"""Attack success against perceptibility: the right end of the band fools the model and nobody notices. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.plots.axis import Axis, round_step, tick_label
from leaderboard.plots.drawing import Box, Drawing, Group, Label, Line, shortened, text_width
from leaderboard.plots.marks import add_legend, mark

WIDTH, HEIGHT = 960, 520
LEFT, RIGHT, TOP, BOTTOM = 62, 24, 40, 60
LARGEST_NAME = 220


@dataclass(frozen=True)
class Point:
    """One pair; ``success`` is the share of its modified images that the target model gets wrong, 0 to 1."""

    name: str
    verdict: str
    difference: float
    success: float
    value_text: str
    address: str = ""


def draw_scatter(points: Sequence[Point], *, bound: float, title: str) -> Drawing:
    """Success rate to the right, difference upwards; the band of no difference is shaded."""
    drawing = Drawing(WIDTH, HEIGHT, title, f"{len(points)} pairs with a difference and a success rate")
    across = Axis(0, 1, LEFT, WIDTH - RIGHT)
    low = min([-bound * 1.5, *(point.difference for point in points)])
    high = max([bound * 1.5, *(point.difference for point in points)])
    step = round_step((high - low) / 6)
    up = Axis(low - 0.3 * step, high + 0.3 * step, HEIGHT - BOTTOM, TOP)
    drawing.add(Box(LEFT, up.at(bound), across.end - LEFT, up.at(-bound) - up.at(bound)))
    for value in up.ticks(6):
        y = up.at(value)
        if value:
            drawing.add(Line(LEFT, y, across.end, y, stroke="line", width=0.75))
        drawing.add(Label(LEFT - 8, y + 4, tick_label(value, step, always_signed=True), 12, "soft", "end"))
    for value in across.ticks(5):
        x = across.at(value)
        drawing.add(Line(x, TOP, x, up.start, stroke="line", width=0.75))
        drawing.add(Label(x, up.start + 18, f"{round(100 * value)} %", 12, "soft", "middle"))
    for end in (-bound, bound):
        drawing.add(Line(LEFT, up.at(end), across.end, up.at(end), stroke="accent", dashes=True))
    drawing.add(Line(LEFT, up.at(0), across.end, up.at(0), width=1.25))
    middle = (LEFT + across.end) / 2
    xname = "Attack success rate: share of attempts that the target model gets wrong"
    drawing.add(Label(middle, HEIGHT - 16, xname, 12, "soft", "middle"))
    yname = "Difference in points"
    drawing.add(Label(14, (TOP + up.start) / 2, yname, 12, "soft", "middle", turned=True))
    taken: list[tuple[float, float, float, float]] = []
    spots = [(across.at(point.success), up.at(point.difference)) for point in points]
    taken += [(x - 6, y - 6, x + 6, y + 6) for x, y in spots]
    taken += [(LEFT, up.at(value) - 1, across.end, up.at(value) + 1) for value in (-bound, 0, bound)]
    for point, (x, y) in zip(points, spots, strict=True):
        shapes = [*mark(point.verdict, x, y), *_name(point, x, y, taken)]
        drawing.add(Group(tuple(shapes), f"{point.name}: {point.value_text}, {point.verdict}", point.address))
    add_legend(drawing, LEFT, 18, bound=bound, remark="on its right the model is fooled and nobody notices")
    return drawing


def _name(point: Point, x: float, y: float, taken: list[tuple[float, float, float, float]]) -> list[Label]:
    """The pair's name beside its mark where there is room; with many points some go without (hovering names them)."""
    text = shortened(point.name, LARGEST_NAME, 12)
    width = text_width(text, 12) * 1.05
    for left, base in ((x + 10, y + 4), (x - 10 - width, y + 4), (x - width / 2, y - 10), (x - width / 2, y + 18)):
        box = (left, base - 10, left + width, base + 3)
        inside = left >= LEFT + 2 and box[2] <= WIDTH - RIGHT and box[1] >= TOP and box[3] <= HEIGHT - BOTTOM
        if inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return [Label(left, base, text, 12)]
    return []


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
