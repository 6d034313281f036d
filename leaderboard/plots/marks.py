"""The mark of each verdict: told by shape as well as by colour. Pure."""

from leaderboard.plots.drawing import Box, Circle, Drawing, Label, Line, Polygon, Shape, text_width

VERDICTS = {
    "imperceptible": "Imperceptible",
    "inconclusive": "Inconclusive",
    "perceptible": "Perceptible",
}


def mark(verdict: str, x: float, y: float, size: float = 5) -> tuple[Shape, ...]:
    """A dot for imperceptible, an open ring for inconclusive, a diamond for perceptible, a cross for anything else."""
    match verdict:
        case "imperceptible":
            return (Circle(x, y, size, fill="imperceptible"),)
        case "inconclusive":
            return (Circle(x, y, size - 0.75, fill="paper", stroke="inconclusive", stroke_width=1.75),)
        case "perceptible":
            reach = size * 1.25
            corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
            return (Polygon(corners, fill="perceptible"),)
        case _:
            reach = size * 0.8
            return (
                Line(x - reach, y - reach, x + reach, y + reach, stroke="soft", width=1.5),
                Line(x - reach, y + reach, x + reach, y - reach, stroke="soft", width=1.5),
            )


def colour(verdict: str) -> str:
    """The role that lines of a verdict are drawn in."""
    return verdict if verdict in VERDICTS else "soft"


def add_legend(drawing: Drawing, x: float, y: float, *, bound: float | None = None, remark: str = "") -> None:
    """The three marks with their names in a row, and what the shaded band is; ``y`` is the base line."""
    for verdict, name in VERDICTS.items():
        drawing.add(*mark(verdict, x + 5, y - 4.5), Label(x + 16, y, name, size=12, fill="soft"))
        x += 16 + text_width(name, 12) + 22
    if bound is not None:
        text = f"Counts as no difference: ±{bound:g}{'; ' if remark else ''}{remark}"
        drawing.add(Box(x, y - 9, 22, 11), Label(x + 30, y, text, size=12, fill="soft"))
        drawing.add(*(Line(end, y - 9, end, y + 2, stroke="accent", dashes=True) for end in (x, x + 22)))
