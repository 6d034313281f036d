"""How often each part of the scale was chosen, for both kinds of images, back to back. Pure."""

from collections.abc import Sequence

from leaderboard.plots.axis import Axis, round_step, tick_label
from leaderboard.plots.drawing import Box, Drawing, Group, Label, Line, text_width

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 58
KINDS = (("clean", "Clean images", "soft"), ("modified", "Modified images", "accent"))


def draw_distributions(
    clean: Sequence[int], modified: Sequence[int], *, minimum: float, maximum: float, title: str
) -> Drawing:
    """Shares of the ratings per part of the scale: modified images upwards, clean ones downwards.

    ``clean`` and ``modified`` count the ratings in equally wide parts of the scale from ``minimum`` to ``maximum``. Of
    a kind that makes no difference the two halves mirror one another.
    """
    shares = {"clean": _shares(clean), "modified": _shares(modified)}
    highest = max([*shares["clean"], *shares["modified"], 0.01])
    drawing = Drawing(WIDTH, HEIGHT, title, "Shares of the ratings of clean and of modified images along the scale")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    up, down = Axis(0, highest, middle, TOP), Axis(0, highest, middle, HEIGHT - BOTTOM)
    along = Axis(minimum, maximum, LEFT, WIDTH - RIGHT)
    step = round_step(highest / 2)
    for value in up.ticks(2):
        for axis in (up, down):
            if value:
                drawing.add(Line(LEFT, axis.at(value), along.end, axis.at(value), stroke="line", width=0.75))
            if value or axis is up:
                text = f"{tick_label(100 * value, 100 * step)} %"
                drawing.add(Label(LEFT - 8, axis.at(value) + 4, text, 12, "soft", "end"))
    count = len(clean)
    part = (along.end - along.start) / count
    for (kind, name, role), axis in zip(KINDS, (down, up), strict=True):
        for number, share in enumerate(shares[kind]):
            y = axis.at(share)
            low = minimum + (maximum - minimum) * number / count
            high = low + (maximum - minimum) / count
            bar = Box(LEFT + number * part + 1, min(y, middle), part - 2, abs(y - middle), fill=role, opacity=0.85)
            drawing.add(
                Group((bar,), f"{name}, {low:g} to {high:g}: {100 * share:.1f} %".replace("-", "\N{MINUS SIGN}"))
            )
    drawing.add(Line(LEFT, middle, along.end, middle, width=1.25))
    distance = round_step((maximum - minimum) / 8)
    for value in along.ticks(8):
        label = tick_label(value, distance)
        drawing.add(Label(along.at(value), HEIGHT - BOTTOM + 18, label, 12, "soft", "middle"))
    drawing.add(
        Label(LEFT, HEIGHT - 14, "certainly unmodified", 12, "soft"),
        Label(along.end, HEIGHT - 14, "certainly modified", 12, "soft", "end"),
    )
    x: float = LEFT
    for _, name, role in reversed(KINDS):
        drawing.add(Box(x, 9, 12, 12, fill=role, opacity=0.85), Label(x + 18, 19, name, 12, "soft"))
        x += 18 + text_width(name, 12) + 26
    return drawing


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]
