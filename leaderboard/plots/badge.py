"""A badge for a README or a project page: rank and verdict of one entry. Pure."""

from leaderboard.plots.drawing import Box, Drawing, Label, text_width
from leaderboard.plots.marks import colour

HEIGHT = 22
PADDING = 9
SIZE = 12


def draw_badge(board: str, verdict: str, text: str) -> Drawing:
    """``board`` on the left, ``text`` on the right on the verdict's colour, as badges of builds look."""
    left, right = (text_width(part, SIZE, is_bold=True) * 1.04 + 2 * PADDING for part in (board, text))
    drawing = Drawing(round(left + right), HEIGHT, f"{board}: {text}")
    drawing.add(
        Box(0, 0, left + 6, HEIGHT, fill="ink", radius=4),
        Box(left, 0, right, HEIGHT, fill=colour(verdict), radius=4),
        Box(left, 0, 6, HEIGHT, fill=colour(verdict)),
        Label(left / 2, 15.3, board, SIZE, "paper", "middle", is_bold=True),
        Label(left + right / 2, 15.3, text, SIZE, "paper", "middle", is_bold=True),
    )
    return drawing
