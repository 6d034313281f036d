"""Each participant's own difference, in order: do all notice a little, or a few a lot? Pure."""

from collections.abc import Sequence

from leaderboard.plots.axis import Axis, round_step, tick_label
from leaderboard.plots.drawing import Box, Circle, Drawing, Label, Line

WIDTH, HEIGHT = 960, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 8, 34, 36


def draw_participants(differences: Sequence[float], *, bound: float, title: str) -> Drawing:
    """``differences`` are mean rating of modified minus clean images of one participant each, in points."""
    drawing = Drawing(
        WIDTH, HEIGHT, title, f"{len(differences)} participants, from the lowest to the highest difference"
    )
    low, high = min([-bound * 1.5, *differences]), max([bound * 1.5, *differences])
    step = round_step((high - low) / 5)
    up = Axis(low - 0.2 * step, high + 0.2 * step, HEIGHT - BOTTOM, TOP)
    end = WIDTH - RIGHT
    drawing.add(Box(LEFT, up.at(bound), end - LEFT, up.at(-bound) - up.at(bound)))
    for value in up.ticks(5):
        if value:
            drawing.add(Line(LEFT, up.at(value), end, up.at(value), stroke="line", width=0.75))
        label = tick_label(value, step, always_signed=True)
        drawing.add(Label(LEFT - 8, up.at(value) + 4, label, 12, "soft", "end"))
    drawing.add(Line(LEFT, up.at(0), end, up.at(0), width=1.25))
    room = (end - LEFT) / max(len(differences), 1)
    for number, difference in enumerate(sorted(differences)):
        x = LEFT + (number + 0.5) * room
        drawing.add(Circle(x, up.at(difference), min(4.0, max(1.25, room / 2.4)), fill="accent"))
    drawing.add(
        Label(LEFT, 18, "Each participant's mean rating of modified minus clean images, in points", 12, "soft"),
        Label((LEFT + end) / 2, HEIGHT - 12, f"{len(differences)} participants, in order", 12, "soft", "middle"),
    )
    return drawing
