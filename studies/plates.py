"""Pseudo-isochromatic plates: a digit of coloured dots that a person with a colour-vision deficiency cannot see.

Pure: no Django. Everything follows from (kind, digit, seed), so a plate can be made again exactly.

Figure and ground differ in the response of one cone type only, so a person without that cone type sees one colour
(confusion lines; cone space of Smith & Pokorny 1975 as in Viénot, Brettel & Mollon 1999, Color Research and
Application 24(4), 243-252). Dots vary at random in lightness, as on printed plates (Stilling, Ishihara), and in a
second cone type, so that neither gives the digit away. docs/colour_plates.md has the measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float64]

# Linear sRGB -> CIE XYZ (D65), IEC 61966-2-1.
XYZ_FROM_LINEAR_RGB = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# CIE XYZ -> Smith & Pokorny cone responses, as given by Viénot, Brettel & Mollon (1999).
LMS_FROM_XYZ = np.array([[0.15514, 0.54312, -0.03286], [-0.15514, 0.45684, 0.03286], [0.0, 0.0, 0.01608]])
LINEAR_RGB_FROM_LMS: Floats = np.linalg.inv(LMS_FROM_XYZ @ XYZ_FROM_LINEAR_RGB)

LONG, MIDDLE, SHORT = 0, 1, 2


@dataclass(frozen=True)
class PlateColours:
    """The colours of one kind of plate.

    ``base`` is the sRGB colour (0..1) between figure and ground. Figure and ground differ along the ``cone`` axis by
    ``contrast``, a share of the largest difference the screen can show around the base. ``jitter_cone`` is the axis
    of the chroma jitter and ``jitter`` its share of what the screen can show around figure and ground.
    """

    cone: int
    base: tuple[float, float, float]
    contrast: float
    jitter_cone: int
    jitter: float


COLOURS = {
    "protan": PlateColours(cone=LONG, base=(0.60, 0.53, 0.42), contrast=0.45, jitter_cone=SHORT, jitter=0.5),
    "deutan": PlateColours(cone=MIDDLE, base=(0.60, 0.53, 0.42), contrast=0.30, jitter_cone=SHORT, jitter=0.5),
    "tritan": PlateColours(cone=SHORT, base=(0.60, 0.53, 0.42), contrast=0.70, jitter_cone=LONG, jitter=0.3),
}
KINDS = tuple(COLOURS)

# Each dot's light is scaled by a random factor in this range.
LIGHTNESS_RANGE = (0.6, 1.4)
BACKGROUND = 1.0  # linear light of each channel: neutral white

# Lengths are shares of the image's side.
PLATE_RADIUS = 0.485
DOT_RADII = (0.0200, 0.0175, 0.0150, 0.0130, 0.0110, 0.0095, 0.0080)
# Share of the plate covered once dots of this radius are placed; the last is whatever still fits.
COVERAGE_AFTER = (0.08, 0.17, 0.27, 0.38, 0.48, 0.56, 1.0)
GAP = 0.0020
LATTICE = 400  # dot centres lie on a lattice of this many points a side

DIGIT_HEIGHT = 0.62
DIGIT_WIDTH = 0.46
STROKE_WIDTH = 0.105
POSITION_JITTER = 0.02

SMALLEST_SIZE = 200  # pixels; below that the smallest dots would be specks


@dataclass(frozen=True)
class Dots:
    """The n dots of a plate. Lengths are shares of the image's side, origin top left.

    ``x``, ``y``, ``radius``: shape (n,). ``colour``: shape (n, 3), linear sRGB, 0..1. ``is_figure``: shape (n,),
    True where the dot has the figure's colour; on a plate without a digit such dots lie anywhere.
    """

    x: Floats
    y: Floats
    radius: Floats
    colour: Floats
    is_figure: NDArray[np.bool_]


def make_plate(kind: str, digit: int | None, seed: int, size: int = 560) -> Image.Image:
    """A square RGB image of ``size`` pixels: a round plate on white, showing ``digit`` or, with None, no digit.

    ``kind`` names the deficiency that hides the digit: "protan", "deutan" or "tritan".
    Raises ValueError for another kind, a digit outside 0..9, or a size below SMALLEST_SIZE.
    """
    if size < SMALLEST_SIZE:
        raise ValueError(f"a plate needs at least {SMALLEST_SIZE} pixels a side, not {size}")
    return draw(make_dots(kind, digit, seed), size)


def make_dots(kind: str, digit: int | None, seed: int) -> Dots:
    """The dots of a plate. Arguments as for ``make_plate``; raises ValueError for another kind or digit."""
    if kind not in COLOURS:
        raise ValueError(f"unknown kind of plate {kind!r}; known: {', '.join(COLOURS)}")
    if digit is not None and digit not in STROKES:
        raise ValueError(f"a plate shows a digit from 0 to 9 or none, not {digit!r}")
    rng = np.random.default_rng([seed, KINDS.index(kind), 10 if digit is None else digit])
    x, y, radius = place_dots(rng)
    shown = int(rng.integers(10)) if digit is None else digit
    centre = 0.5 + rng.uniform(-POSITION_JITTER, POSITION_JITTER, 2)
    is_figure = distance_to_digit(shown, x - centre[0], y - centre[1]) <= STROKE_WIDTH / 2
    if digit is None:
        # As many dots of either colour as on a plate with a digit, dealt out at random.
        is_figure = rng.permutation(is_figure)
    return Dots(x, y, radius, choose_colours(COLOURS[kind], is_figure, rng), is_figure)


def place_dots(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Fill the plate with discs that do not touch, big ones first: x, y and radius, each of shape (n,)."""
    points = (np.arange(LATTICE) + 0.5) / LATTICE
    # How far each lattice point is from the plate's rim or the nearest dot.
    clearance = PLATE_RADIUS - np.hypot(points[:, None] - 0.5, points[None, :] - 0.5)
    plate_area = np.pi * PLATE_RADIUS**2
    covered = 0.0
    placed: list[tuple[float, float, float]] = []
    for radius, coverage in zip(DOT_RADII, COVERAGE_AFTER, strict=True):
        reach = round((radius + GAP + max(DOT_RADII)) * LATTICE) + 1
        for index in rng.permutation(np.flatnonzero(clearance >= radius + GAP)):
            if covered >= coverage * plate_area:
                break
            row, column = divmod(int(index), LATTICE)
            if clearance[row, column] < radius + GAP:
                continue
            rows = slice(max(row - reach, 0), row + reach + 1)
            columns = slice(max(column - reach, 0), column + reach + 1)
            to_dot = np.hypot(points[rows, None] - points[row], points[None, columns] - points[column]) - radius
            np.minimum(clearance[rows, columns], to_dot, out=clearance[rows, columns])
            placed.append((points[column], points[row], radius))
            covered += np.pi * radius**2
    x, y, radii = np.array(placed).T
    return x, y, radii


def choose_colours(colours: PlateColours, is_figure: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """A linear sRGB colour per dot, shape (n, 3), all within the gamut."""
    base = linear_from_srgb(np.array(colours.base))
    axis = LINEAR_RGB_FROM_LMS[:, colours.cone]
    jitter_axis = LINEAR_RGB_FROM_LMS[:, colours.jitter_cone]
    difference = colours.contrast * excursion(base, axis) * axis
    # Which of the two colours the figure has varies, so that nobody can learn to look for one of them.
    sign = rng.choice([-1.0, 1.0])
    ends = np.stack([base - difference, base + difference])
    jitter = colours.jitter * min(excursion(end, jitter_axis) for end in ends) * jitter_axis
    colour = base + np.where(is_figure, sign, -sign)[:, None] * difference
    colour = colour + evenly_spread(-1.0, 1.0, is_figure, rng)[:, None] * jitter
    # Scaling a colour scales all cone responses alike: figure and ground still differ in one cone type only.
    return colour * evenly_spread(*LIGHTNESS_RANGE, is_figure, rng)[:, None]


def evenly_spread(low: float, high: float, is_figure: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """A random value per dot from low to high, shape (n,), spread evenly among figure dots and among ground dots.

    Independent draws would make the figure a little lighter or darker than the ground by chance.
    """
    values = np.empty(len(is_figure))
    for group in (is_figure, ~is_figure):
        count = int(group.sum())
        values[group] = low + (high - low) * (rng.permutation(count) + rng.uniform(0, 1, count)) / count
    return values


def excursion(base: Floats, axis: Floats) -> float:
    """The largest t for which base - t * axis and base + t * axis are in the gamut under every lightness."""
    room = np.minimum(base, 1 / LIGHTNESS_RANGE[1] - base)
    return float((room / np.abs(axis)).min())


def draw(dots: Dots, size: int) -> Image.Image:
    """Draw the dots with smooth edges on white: an RGB image of size x size pixels.

    Edges are mixed in linear light, as the eye does it, which keeps them on the same confusion lines.
    """
    canvas = np.full((size, size, 3), BACKGROUND)
    for x, y, radius, colour in zip(dots.x * size, dots.y * size, dots.radius * size, dots.colour, strict=True):
        left, right = int(x - radius) - 1, int(x + radius) + 2
        top, bottom = int(y - radius) - 1, int(y + radius) + 2
        # The share of a pixel that the disc covers, from the distance of the pixel's centre to the disc's edge.
        rows, columns = np.arange(top, bottom)[:, None] + 0.5, np.arange(left, right)[None, :] + 0.5
        covered = np.clip(radius - np.hypot(rows - y, columns - x) + 0.5, 0.0, 1.0)[:, :, None]
        canvas[top:bottom, left:right] += covered * (colour - BACKGROUND)
    return Image.fromarray(np.round(srgb_from_linear(np.clip(canvas, 0, 1)) * 255).astype(np.uint8))


def linear_from_srgb(srgb: Floats) -> Floats:
    """sRGB values 0..1 to linear light."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def srgb_from_linear(linear: Floats) -> Floats:
    """Linear light 0..1 to sRGB values."""
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


Path = list[tuple[float, float]]


def _arc(centre: tuple[float, float], radii: tuple[float, float], start: float, stop: float) -> Path:
    """Points on an ellipse. Angles in degrees, clockwise as seen, 0 = right, -90 = top."""
    angles = np.radians(np.linspace(start, stop, max(2, int(abs(stop - start) / 6))))
    return [(centre[0] + radii[0] * np.cos(a), centre[1] + radii[1] * np.sin(a)) for a in angles]


# Middle lines of the strokes in a box from (0, 0), top left, to (1, 1), bottom right.
STROKES: dict[int, Sequence[Path]] = {
    0: [_arc((0.5, 0.5), (0.5, 0.5), 0, 360)],
    1: [[(0.14, 0.24), (0.54, 0.0), (0.54, 1.0)], [(0.12, 1.0), (0.96, 1.0)]],
    2: [[*_arc((0.5, 0.29), (0.48, 0.29), -175, 25), (0.0, 1.0), (1.0, 1.0)]],
    3: [_arc((0.46, 0.25), (0.44, 0.25), -165, 90), _arc((0.46, 0.75), (0.52, 0.25), -90, 165)],
    4: [[(0.78, 1.0), (0.78, 0.0), (0.0, 0.74), (1.0, 0.74)]],
    5: [[(0.92, 0.0), (0.14, 0.0), (0.08, 0.46), *_arc((0.46, 0.68), (0.52, 0.32), -130, 155)]],
    6: [_arc((0.5, 0.68), (0.5, 0.32), 0, 360), _arc((0.9, 0.68), (0.9, 0.70), -180, -80)],
    7: [[(0.0, 0.0), (1.0, 0.0), (0.36, 1.0)]],
    8: [_arc((0.5, 0.24), (0.43, 0.24), 0, 360), _arc((0.5, 0.74), (0.5, 0.26), 0, 360)],
    9: [_arc((0.5, 0.32), (0.5, 0.32), 0, 360), _arc((0.1, 0.32), (0.9, 0.70), 0, 100)],
}


def distance_to_digit(digit: int, x: Floats, y: Floats) -> Floats:
    """Distance of points to the middle line of a digit that is centred on (0, 0); all shares of the image's side."""
    width, height = DIGIT_WIDTH - STROKE_WIDTH, DIGIT_HEIGHT - STROKE_WIDTH
    points = np.stack([x, y], axis=-1)[:, None]
    nearest = np.full(x.shape, np.inf)
    for path in STROKES[digit]:
        line = (np.array(path) - 0.5) * (width, height)
        start, along = line[:-1], np.diff(line, axis=0)
        share = np.clip(((points - start) * along).sum(-1) / (along**2).sum(-1), 0, 1)
        distance = np.linalg.norm(points - (start + share[..., None] * along), axis=-1)
        nearest = np.minimum(nearest, distance.min(axis=1))
    return nearest
