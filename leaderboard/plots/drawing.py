"""What a plot is made of: a few shapes in user units, each in a role of the palette.

A plot is drawn once, as a list of shapes, and written twice: ``svg`` for pages and papers, ``png`` for slides. That
needs neither a browser nor a graphics library on the server beside Pillow, which reads the images anyway.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from PIL import ImageFont

FONTS = Path(__file__).parent / "fonts"

# Roles and their colours on white paper. In a page the style sheet may give a role another colour (dark mode).
# Blue and vermilion stay apart for every kind of colour blindness (Okabe and Ito 2008), and in grey print each mark
# also has a shape of its own.
PALETTE = {
    "ink": "#1a1a1a",
    "soft": "#595959",
    "line": "#d0d0d0",
    "paper": "#ffffff",
    "zone": "#e9edf6",
    "accent": "#3038b0",
    "imperceptible": "#0b5fa5",
    "perceptible": "#b4430a",
    "inconclusive": "#5f5f5f",
}
NONE = "none"
MARGIN = 16  # of paper around a drawing in a file of its own


@dataclass(frozen=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str = "ink"
    width: float = 1
    dashes: bool = False


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    fill: str = "zone"
    opacity: float = 1
    radius: float = 0


@dataclass(frozen=True)
class Circle:
    x: float
    y: float
    radius: float
    fill: str = "ink"
    stroke: str = NONE
    stroke_width: float = 1.5


@dataclass(frozen=True)
class Polygon:
    points: tuple[tuple[float, float], ...]
    fill: str = "ink"
    opacity: float = 1


@dataclass(frozen=True)
class Label:
    """One line of text; ``y`` is its base line. ``turned`` reads upwards, from the anchor."""

    x: float
    y: float
    text: str
    size: float = 13
    fill: str = "ink"
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False
    turned: bool = False
    length: float = 0  # of an SVG's text, where it must fit whatever font the reader has


@dataclass(frozen=True)
class Group:
    """Shapes that mean one thing: a text to read out or show on hovering, and where a click leads."""

    shapes: tuple["Shape", ...]
    title: str
    address: str = ""


Shape = Line | Box | Circle | Polygon | Label | Group


@dataclass
class Drawing:
    """``title`` and ``description`` are the text alternative; sizes are in user units (CSS pixels)."""

    width: float
    height: float
    title: str
    description: str = ""
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        self.shapes.extend(shapes)


@cache
def font(size: float, is_bold: bool = False) -> ImageFont.FreeTypeFont:
    """The shipped font in a size of pixels; the basic layout is the same on every machine."""
    path = FONTS / ("Inter-SemiBold.otf" if is_bold else "Inter-Regular.otf")
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


def has_letters_of(text: str) -> bool:
    """Whether the shipped font can write all of a text."""
    return not any(_is_missing(character) for character in text)


@cache
def _is_missing(character: str) -> bool:
    """A letter that the font lacks looks like one that no font has."""
    return not character.isspace() and _glyph(character) == _glyph("\uffff")


def _glyph(character: str) -> tuple[tuple[int, int], bytes]:
    mask = font(20).getmask(character)
    return mask.size, bytes(mask)


@cache
def _widths(is_bold: bool) -> dict[str, float]:
    """Advance widths of the characters met so far, in units of the size: a page has the same few hundred letters."""
    return {}


def text_width(text: str, size: float = 13, *, is_bold: bool = False) -> float:
    """How wide a line of text is, in user units. Browsers may use a font that is some 8 % wider."""
    known = _widths(is_bold)
    total = 0.0
    for character in text:
        width = known.get(character)
        if width is None:
            width = known[character] = font(100, is_bold).getlength(character) / 100
        total += width
    return total * size


def shortened(text: str, width: float, size: float = 13, *, is_bold: bool = False) -> str:
    """The text, or its beginning and an ellipsis, so that it fits into ``width``."""
    if text_width(text, size, is_bold=is_bold) <= width:
        return text
    while text and text_width(f"{text}…", size, is_bold=is_bold) > width:
        text = text[:-1].rstrip()
    return f"{text}…"
