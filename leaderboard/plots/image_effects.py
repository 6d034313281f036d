"""What an average person would answer to each image, in order, with an interval. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.plots.axis import Axis, round_step, tick_label
from leaderboard.plots.drawing import Box, Drawing, Label, Line, text_width

WIDTH, HEIGHT = 960, 360
LEFT, RIGHT, TOP, BOTTOM = 62, 8, 34, 44
NORMAL_95 = 1.96
# Where images between both ends are left out, a gap as wide as this share of those that are drawn.
GAP_SHARE = 0.3


@dataclass(frozen=True)
class Effect:
    """Predicted mean rating of one image and its standard error, in points."""

    is_modified: bool
    mean: float
    standard_error: float


def draw_image_effects(
    effects: Sequence[Effect], *, counts: Mapping[bool, int], minimum: float, maximum: float, title: str
) -> Drawing:
    """One upright line per image, from the most genuine to the most conspicuous; clean and modified side by side.

    ``counts`` says how many images of each kind (modified: True) there are; where ``effects`` has fewer, it has as many
    from either end of their order, and a gap stands for the others.
    """
    kinds = [
        (
            name,
            role,
            sorted((e for e in effects if e.is_modified is is_modified), key=lambda e: e.mean),
            counts[is_modified],
        )
        for name, role, is_modified in (("Clean images", "soft", False), ("Modified images", "accent", True))
    ]
    drawing = Drawing(WIDTH, HEIGHT, title, f"{len(effects)} of {sum(counts.values())} images with 95 % intervals")
    ends = [effect.mean + sign * NORMAL_95 * effect.standard_error for effect in effects for sign in (-1, 1)]
    low, high = max(minimum, min(ends, default=minimum)), min(maximum, max(ends, default=maximum))
    if low >= high:
        low, high = minimum, maximum
    up = Axis(low, high, HEIGHT - BOTTOM, TOP)
    step = round_step((high - low) / 6)
    for value in up.ticks(6):
        drawing.add(Line(LEFT, up.at(value), WIDTH - RIGHT, up.at(value), stroke="line", width=0.75))
        drawing.add(Label(LEFT - 8, up.at(value) + 4, tick_label(value, step), 12, "soft", "end"))
    gap = 24
    room = WIDTH - LEFT - RIGHT - gap
    places = [len(ordered) * (1 + GAP_SHARE * (count > len(ordered))) for _, _, ordered, count in kinds]
    x: float = LEFT
    for (name, role, ordered, count), own_places in zip(kinds, places, strict=True):
        width = room * own_places / (sum(places) or 1)
        left_out, below_gap = count - len(ordered), len(ordered) // 2
        for number, effect in enumerate(ordered):
            place = number + 0.5 + (own_places - len(ordered) if number >= below_gap else 0)
            at = x + width * place / own_places
            spread = NORMAL_95 * effect.standard_error
            thickness = min(6.0, max(0.5, 0.7 * width / own_places))
            top, bottom = up.at(effect.mean + spread), up.at(effect.mean - spread)
            drawing.add(Box(at - thickness / 2, top, thickness, bottom - top, fill=role, opacity=0.3))
            drawing.add(Box(at - thickness / 2, up.at(effect.mean) - 1.25, thickness, 2.5, fill=role))
        if ordered:
            text = f"{name} ({count:,})"
            if left_out:
                text = f"{name}: {below_gap} from either end of {count:,}"
                drawing.add(
                    Label(x + width / 2, (TOP + HEIGHT - BOTTOM) / 2, f"{left_out:,} more", 12, "soft", "middle")
                )
            middle = min(max(x + width / 2, LEFT + text_width(text, 12) / 2), WIDTH - text_width(text, 12) / 2)
            drawing.add(Label(middle, HEIGHT - 18, text, 12, "soft", "middle"))
        x += width + gap
    drawing.add(Label(LEFT, 18, "What an average person answers to each image, with 95 % interval", 12, "soft"))
    return drawing
