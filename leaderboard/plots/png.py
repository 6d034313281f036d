"""A drawing as PNG. Pure; drawn with Pillow, larger and reduced, so that edges are smooth."""

import io
import itertools
import math

from PIL import Image, ImageColor, ImageDraw

from leaderboard.plots.drawing import (
    MARGIN,
    NONE,
    PALETTE,
    Box,
    Circle,
    Drawing,
    Group,
    Label,
    Line,
    Polygon,
    Shape,
    font,
)

SCALE = 2  # pixels per user unit: sharp on a projector and on a screen of high density
OVERSAMPLING = 3  # finer while shapes are drawn, which Pillow does not smooth
# A plot of very many rows is drawn less fine instead: its longer side in the file, and all pixels while it is drawn.
LARGEST_SIDE = 8000
MOST_PIXELS = 30_000_000  # of three bytes; anybody may ask for a plot, and several at once


def png(drawing: Drawing) -> bytes:
    """The drawing on white paper, in SCALE pixels per user unit (less where it would become too large)."""
    width, height = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    scale = min(SCALE, LARGEST_SIDE / max(width, height))
    finest = math.sqrt(MOST_PIXELS / (width * height))
    # Edges first, which stay smooth at two; then the scale.
    oversampling = OVERSAMPLING if scale * OVERSAMPLING <= finest else 2
    return _png(drawing, min(scale, finest / oversampling), oversampling)


def _png(drawing: Drawing, scale: float, oversampling: int) -> bytes:
    canvas = _Canvas(drawing, scale * oversampling)
    for shape in drawing.shapes:
        canvas.draw(shape)
    image = canvas.image.reduce(oversampling)
    # Text last and at its final size, where the font's own smoothing is best.
    canvas = _Canvas(drawing, scale, image)
    for shape in drawing.shapes:
        canvas.write(shape)
    buffer = io.BytesIO()
    canvas.image.save(buffer, "PNG")
    return buffer.getvalue()


class _Canvas:
    def __init__(self, drawing: Drawing, scale: float, image: Image.Image | None = None) -> None:
        size = (math.ceil((drawing.width + 2 * MARGIN) * scale), math.ceil((drawing.height + 2 * MARGIN) * scale))
        self.scale = scale
        self.image = image or Image.new("RGB", size, PALETTE["paper"])
        self.pen = ImageDraw.Draw(self.image)

    def draw(self, shape: Shape) -> None:
        match shape:
            case Line():
                self._line(shape)
            case Box(opacity=0):
                pass
            case Box(x, y, width, height, fill, opacity, radius):
                box = self._scaled(x, y, x + width, y + height)
                self.pen.rounded_rectangle(box, radius * self.scale, fill=_colour(fill, opacity))
            case Circle(x, y, radius, fill, stroke, stroke_width):
                outer = radius + (stroke_width / 2 if stroke != NONE else 0)
                if stroke != NONE:
                    self.pen.ellipse(self._scaled(x - outer, y - outer, x + outer, y + outer), fill=_colour(stroke))
                    outer -= stroke_width
                self.pen.ellipse(self._scaled(x - outer, y - outer, x + outer, y + outer), fill=_colour(fill))
            case Polygon(points, fill, opacity):
                self.pen.polygon(self._scaled(*itertools.chain(*points)), fill=_colour(fill, opacity))
            case Group(shapes):
                for part in shapes:
                    self.draw(part)

    def write(self, shape: Shape) -> None:
        if isinstance(shape, Group):
            for part in shape.shapes:
                self.write(part)
        elif isinstance(shape, Label):
            self._text(shape)

    def _line(self, line: Line) -> None:
        width = max(1, round(line.width * self.scale))
        length = math.hypot(line.x2 - line.x1, line.y2 - line.y1)
        if not line.dashes or length == 0:
            self.pen.line(self._scaled(line.x1, line.y1, line.x2, line.y2), _colour(line.stroke), width)
            return
        start = 0.0
        while start < length:
            ends = [
                (line.x1 + (line.x2 - line.x1) * share, line.y1 + (line.y2 - line.y1) * share)
                for share in (start / length, min(start + 4, length) / length)
            ]
            self.pen.line(self._scaled(*ends[0], *ends[1]), _colour(line.stroke), width)
            start += 7

    def _text(self, label: Label) -> None:
        face = font(label.size * self.scale, label.is_bold)
        horizontal = {"start": "l", "middle": "m", "end": "r"}[label.anchor]
        if not label.turned:
            x, y = self._scaled(label.x, label.y)
            self.pen.text((x, y), label.text, _colour(label.fill), face, anchor=f"{horizontal}s")
            return
        # Pillow writes from left to right only: write on a sheet of its own, turn it, and lay it on.
        length, height = math.ceil(face.getlength(label.text)), math.ceil(label.size * self.scale * 1.5)
        sheet = Image.new("L", (length, height))
        base = round(height * 0.75)
        ImageDraw.Draw(sheet).text((0, base), label.text, 255, face, anchor="ls")
        turned = sheet.transpose(Image.Transpose.ROTATE_90)
        up = {"start": length, "middle": length / 2, "end": 0}[label.anchor]
        x, y = self._scaled(label.x, label.y)
        corner = (round(x - base), round(y - up))
        self.image.paste(_colour(label.fill), corner, turned)

    def _scaled(self, *values: float) -> list[float]:
        """User units as pixels from the sheet's corner."""
        return [(value + MARGIN) * self.scale for value in values]


def _colour(role: str, opacity: float = 1) -> tuple[int, ...]:
    """The colour of a role as it looks on white paper."""
    colour, paper = ImageColor.getrgb(PALETTE[role]), ImageColor.getrgb(PALETTE["paper"])
    return tuple(round(opacity * over + (1 - opacity) * under) for over, under in zip(colour, paper, strict=True))
