"""A badge for a README or a project page: rank and verdict of one entry. Pure."""

from leaderboard.plots.drawing import Box, Drawing, Label, text_width
from leaderboard.plots.marks import colour

HEIGHT = 22
PADDING = 9
SIZE = 12


def draw_badge(board: str, verdict: str, text: str) -> Drawing:
    """``board`` on the left, ``text`` on the right on the verdict's colour, as badges of builds look."""
    lengths = [text_width(part, SIZE, is_bold=True) for part in (board, text)]
    left, right = (length + 2 * PADDING for length in lengths)
    drawing = Drawing(round(left + right), HEIGHT, f"{board}: {text}")
    drawing.add(
        Box(0, 0, left + 6, HEIGHT, fill="ink", radius=4),
        Box(left, 0, right, HEIGHT, fill=colour(verdict), radius=4),
        Box(left, 0, 6, HEIGHT, fill=colour(verdict)),
        Label(left / 2, 15.3, board, SIZE, "paper", "middle", is_bold=True, length=lengths[0]),
        Label(left + right / 2, 15.3, text, SIZE, "paper", "middle", is_bold=True, length=lengths[1]),
    )
    return drawing
