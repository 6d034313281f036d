"""Attacks against target models, each cell the difference of a pair. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.plots.drawing import Box, Drawing, Group, Label, shortened, text_width
from leaderboard.plots.marks import add_legend, mark

CELL_WIDTH, CELL_HEIGHT = 92, 34
GAP = 2
LARGEST_NAME = 260
LEGEND = 44
STRONGEST = 0.55  # opacity: text on it stays readable, on white paper and on black


@dataclass(frozen=True)
class Cell:
    """One pair's difference in points; None was not scored. ``text`` is the number as the table shows it."""

    difference: float | None
    text: str
    verdict: str
    address: str = ""


def draw_heat_map(
    attacks: Sequence[str],
    target_models: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    *,
    title: str,
) -> Drawing:
    """Rows are attacks, columns target models, in the order given; pairs without an entry stay empty.

    Vermilion above zero (people notice), blue below (modified images look more genuine), as strong as the difference
    is large beside the largest one drawn. Number and verdict are in the cell too: nothing is told by colour alone.
    """
    names = min(LARGEST_NAME, max((1.08 * text_width(name) for name in attacks), default=0)) + 16
    longest = max((1.08 * text_width(name) for name in target_models), default=0)
    is_turned = longest > CELL_WIDTH - 8
    head = (min(LARGEST_NAME, longest) + 14) if is_turned else 26
    top = LEGEND + head
    largest = max((abs(cell.difference) for cell in cells.values() if cell.difference is not None), default=0) or 1
    width = max(names + len(target_models) * CELL_WIDTH, 460)
    drawing = Drawing(width, top + len(attacks) * CELL_HEIGHT + 30, title, f"{len(cells)} pairs")
    add_legend(drawing, 0, 16)
    for column, name in enumerate(target_models):
        middle = names + (column + 0.5) * CELL_WIDTH
        if is_turned:
            text = shortened(name, LARGEST_NAME)
            drawing.add(Label(middle + 4, top - 8, text, turned=True))
        else:
            drawing.add(Label(middle, top - 9, name, anchor="middle"))
    for row, attack in enumerate(attacks):
        y = top + row * CELL_HEIGHT
        drawing.add(Label(0, y + CELL_HEIGHT / 2 + 4.5, shortened(attack, LARGEST_NAME)))
        for column, target_model in enumerate(target_models):
            x = names + column * CELL_WIDTH
            if (cell := cells.get((attack, target_model))) is not None:
                drawing.add(_cell(cell, f"{attack} on {target_model}", x, y, largest))
            else:
                drawing.add(
                    Label(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, "·", fill="soft", anchor="middle"),
                )
    note = "Difference in points: mean rating of modified minus clean images."
    drawing.add(Label(0, drawing.height - 6, note, size=12, fill="soft"))
    drawing.width = max(drawing.width, text_width(note, 12) * 1.15)
    return drawing


def _cell(cell: Cell, name: str, x: float, y: float, largest: float) -> Group:
    size = 0 if cell.difference is None else abs(cell.difference) / largest
    role = "imperceptible" if (cell.difference or 0) < 0 else "perceptible"
    width, height = CELL_WIDTH - GAP, CELL_HEIGHT - GAP
    shapes: list = [
        Box(x, y, width, height, fill="zone", opacity=0.5, radius=3),
        Box(x, y, width, height, fill=role, opacity=STRONGEST * size, radius=3),
        *mark(cell.verdict, x + 14, y + height / 2, 4),
        Label(x + width - 10, y + height / 2 + 4.5, cell.text, anchor="end"),
    ]
    return Group(tuple(shapes), f"{name}: {cell.text}, {cell.verdict}", cell.address)
