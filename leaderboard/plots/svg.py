"""A drawing as SVG. Pure.

Every shape has its colour as an attribute and the role as a class: a file by itself, in a paper or on a slide, looks as
on white paper, and within a page the style sheet decides, so that it follows dark mode and print. No ``style``
element or attribute, which the site's content security policy would refuse.
"""

from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

from leaderboard.plots.drawing import MARGIN, NONE, PALETTE, Box, Circle, Drawing, Group, Label, Line, Polygon, Shape

FONT_FAMILY = "Inter, system-ui, Helvetica, Arial, sans-serif"


def svg(drawing: Drawing, *, identifier: str = "", is_file: bool = True, margin: float = MARGIN) -> str:
    """The drawing as a whole file, or as an element to put into a page (``identifier`` is then unique in it).

    ``margin`` is the paper around it in a file; a page has its own.
    """
    margin = margin if is_file else 0
    width, height = _number(drawing.width + 2 * margin), _number(drawing.height + 2 * margin)
    corner = f"{-margin} {-margin}"
    parts = []
    if is_file:
        parts.append('<?xml version="1.0" encoding="UTF-8"?>\n')
    font = f' font-family="{FONT_FAMILY}"' if is_file else ""
    namespace = ' xmlns="http://www.w3.org/2000/svg"' if is_file else ""
    # A picture with links in it is a group of things; one without is a single image.
    role = "group" if any(isinstance(shape, Group) and shape.address for shape in drawing.shapes) else "img"
    label = drawing.title + (f". {drawing.description}" if drawing.description else "")
    naming = f" id={quoteattr(identifier)}" if identifier else ""
    parts.append(
        f'<svg{namespace}{naming} class="plot" viewBox="{corner} {width} {height}" width="{width}" height="{height}" '
        f'role="{role}" aria-label={quoteattr(label)}{font}>'
    )
    if is_file:
        parts.append(f"<title>{escape(drawing.title)}</title>")
        parts.append(f'<rect x="{-margin}" y="{-margin}" width="{width}" height="{height}" fill="{PALETTE["paper"]}"/>')
    parts.extend(_element(shape, with_links=not is_file) for shape in drawing.shapes)
    parts.append("</svg>")
    return "".join(parts) + ("\n" if is_file else "")


def _element(shape: Shape, *, with_links: bool) -> str:
    if isinstance(shape, Group):
        inside = "".join(_element(part, with_links=with_links) for part in shape.shapes)
        if shape.address and with_links:
            named = f"<title>{escape(shape.title)}</title>"
            return f"<a href={quoteattr(shape.address)} aria-label={quoteattr(shape.title)}>{named}{inside}</a>"
        return f"<g><title>{escape(shape.title)}</title>{inside}</g>"
    return _simple_element(shape)


# Rows of a table have the same background, and marks the same colours.
@lru_cache(maxsize=1000)
def _simple_element(shape: Line | Box | Circle | Polygon | Label) -> str:
    match shape:
        case Line(x1, y1, x2, y2, stroke, width, dashes):
            dashing = ' stroke-dasharray="4 3"' if dashes else ""
            return (
                f'<path d="M{_number(x1)} {_number(y1)}L{_number(x2)} {_number(y2)}" {_stroke(stroke)} '
                f'stroke-width="{_number(width)}"{dashing}/>'
            )
        case Box(x, y, width, height, fill, opacity, radius):
            rounding = f' rx="{_number(radius)}"' if radius else ""
            return (
                f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}" '
                f"{_fill(fill, opacity)}{rounding}/>"
            )
        case Circle(x, y, radius, fill, stroke, stroke_width):
            edge = f' stroke="{PALETTE[stroke]}" stroke-width="{_number(stroke_width)}"' if stroke != NONE else ""
            classes = f"f-{fill}" + (f" s-{stroke}" if stroke != NONE else "")
            return (
                f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" class="{classes}" '
                f'fill="{PALETTE[fill]}"{edge}/>'
            )
        case Polygon(points, fill, opacity):
            corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
            return f'<polygon points="{corners}" {_fill(fill, opacity)}/>'
        case Label():
            return _text(shape)


def _text(label: Label) -> str:
    place = f'x="{_number(label.x)}" y="{_number(label.y)}"'
    turn = f' transform="rotate(-90 {_number(label.x)} {_number(label.y)})"' if label.turned else ""
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    weight = ' font-weight="600"' if label.is_bold else ""
    fitted = f' textLength="{_number(label.length)}" lengthAdjust="spacingAndGlyphs"' if label.length else ""
    return (
        f'<text {place} font-size="{_number(label.size)}" {_fill(label.fill, 1)}{anchor}{weight}{turn}{fitted}>'
        f"{escape(label.text)}</text>"
    )


def _fill(role: str, opacity: float) -> str:
    see_through = f' fill-opacity="{_number(opacity)}"' if opacity != 1 else ""
    return f'class="f-{role}" fill="{PALETTE[role]}"{see_through}'


def _stroke(role: str) -> str:
    return f'class="s-{role}" stroke="{PALETTE[role]}" fill="none"'


@lru_cache(maxsize=100_000)
def _number(value: float) -> str:
    """As short as it goes, to a hundredth of a pixel."""
    text = f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))
    return "0" if text == "-0" else text
