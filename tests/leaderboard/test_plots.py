"""Plots as drawings, and both ways to write a drawing."""

import io
import itertools
import re
from xml.etree import ElementTree

import pytest
from PIL import Image

from leaderboard.plots.axis import Axis, round_step, tick_label
from leaderboard.plots.badge import draw_badge
from leaderboard.plots.distributions import draw_distributions
from leaderboard.plots.drawing import (
    MARGIN,
    Box,
    Circle,
    Drawing,
    Group,
    Label,
    Line,
    Polygon,
    has_letters_of,
    shortened,
    text_width,
)
from leaderboard.plots.heat_map import Cell, draw_heat_map
from leaderboard.plots.image_effects import Effect, draw_image_effects
from leaderboard.plots.intervals import Interval, draw_intervals
from leaderboard.plots.png import png
from leaderboard.plots.scatter import Point, draw_scatter
from leaderboard.plots.svg import svg

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [
    Interval("ACA on ResNet-50", "imperceptible", 1.0, -3.0, 5.0, "+1.0 [−3.0, 5.0]", "/entry/1/"),
    Interval("cAdv on ResNet-50", "perceptible", 40.0, 30.0, 50.0, "+40.0 [30.0, 50.0]", "/entry/2/"),
    Interval("StAdv on ResNet-50", "not_estimable", None, None, None, "–"),
]


def shapes_in(drawing, kind):
    """All shapes of a kind, those in groups too."""
    found, left = [], list(drawing.shapes)
    while left:
        shape = left.pop(0)
        if isinstance(shape, Group):
            left = [*shape.shapes, *left]
        elif isinstance(shape, kind):
            found.append(shape)
    return found


def parsed(text):
    return ElementTree.fromstring(text)  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-100, 100, [-100, -50, 0, 50, 100]), (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-0.31, 0.33, [-0.2, 0, 0.2])],
)
def test_ticks_are_round_and_within_the_scale(low, high, expected):
    assert Axis(low, high, 0, 1).ticks(5) == pytest.approx(expected)


def test_axis_places_values_and_keeps_what_lies_beyond_at_its_end():
    axis = Axis(-100, 100, 50, 250)
    assert [axis.at(value) for value in (-100, 0, 50, 500)] == [50, 150, 200, 250]


@pytest.mark.parametrize(("size", "step"), [(0.7, 1), (1, 1), (1.01, 2), (3, 5), (6, 10), (0.021, 0.05)])
def test_step_is_the_next_round_number(size, step):
    assert round_step(size) == pytest.approx(step)


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(-20, 20, "−20"), (20, 20, "+20"), (0.30000000000000004, 0.1, "+0.3"), (-1e-17, 0.1, "0")],
)
def test_tick_label_has_a_true_minus_and_the_decimals_of_the_step(value, step, text):
    assert tick_label(value, step, always_signed=True) == text


def test_interval_plot_draws_values_where_the_axis_has_them():
    drawing = draw_intervals(ROWS, bound=10, title="Intervals")
    first, second, third = [shape for shape in drawing.shapes if isinstance(shape, Group)]
    point = next(shape for shape in first.shapes if isinstance(shape, Circle))
    low, high = first.shapes[2].x1, first.shapes[2].x2
    assert (point.x - low) / (high - low) == pytest.approx(0.5)
    band = next(shape for shape in drawing.shapes if isinstance(shape, Box))
    assert band.width / (high - low) == pytest.approx(20 / 8)
    assert band.x < low < high < band.x + band.width
    diamond = next(shape for shape in second.shapes if isinstance(shape, Polygon))
    assert min(x for x, _ in diamond.points) > band.x + band.width
    assert [type(shape) for shape in third.shapes] == [Box, Label, Label]
    assert (first.title, first.address) == ("ACA on ResNet-50: +1.0 [−3.0, 5.0], imperceptible", "/entry/1/")
    assert drawing.description == "3 pairs against bounds of ±10 points: 1 imperceptible, 1 perceptible"


def test_verdicts_differ_in_shape_and_not_only_in_colour():
    rows = [Interval("a", verdict, 0.0, -1.0, 1.0, "0") for verdict in ("imperceptible", "perceptible", "inconclusive")]
    marks = [
        next(shape for shape in group.shapes if isinstance(shape, Circle | Polygon))
        for group in draw_intervals(rows, bound=10, title="").shapes
        if isinstance(group, Group)
    ]
    assert [type(mark) for mark in marks] == [Circle, Polygon, Circle]
    assert [marks[0].fill, marks[2].fill] == ["imperceptible", "paper"]


def test_heat_map_leaves_what_was_not_tested_empty():
    cells = {
        ("ACA", "ResNet"): Cell(40.0, "+40.0", "perceptible"),
        ("cAdv", "ViT"): Cell(-20.0, "−20.0", "perceptible"),
    }
    drawing = draw_heat_map(["ACA", "cAdv"], ["ResNet", "ViT"], cells, title="Map")
    tinted = [box for box in shapes_in(drawing, Box) if box.fill != "zone"]
    assert [(box.fill, round(box.opacity, 3)) for box in tinted] == [("perceptible", 0.55), ("imperceptible", 0.275)]
    assert [label.text for label in shapes_in(drawing, Label)].count("·") == 2


def test_scatter_puts_success_to_the_right_and_difference_upwards():
    points = [Point("a", "imperceptible", 0.0, 0.9, "0"), Point("b", "inconclusive", 30.0, 0.1, "30")]
    drawing = draw_scatter(points, bound=10, title="Scatter")
    low, high = [
        next(s for s in group.shapes if isinstance(s, Circle)) for group in drawing.shapes if isinstance(group, Group)
    ]
    assert low.x > high.x
    assert low.y > high.y


def test_scatter_writes_no_name_over_another():
    points = [Point(f"attack {number} on model", "perceptible", 20 + number / 10, 0.5, "20") for number in range(30)]
    names = [label for label in shapes_in(draw_scatter(points, bound=10, title=""), Label) if "attack" in label.text]
    assert 2 <= len(names) < 30
    for one in names:
        for other in names:
            if one is not other:
                apart = abs(one.y - other.y) >= 12 or abs(one.x - other.x) >= text_width("attack 1 on model", 12)
                assert apart, (one, other)


def test_distributions_are_shares_of_each_kind():
    drawing = draw_distributions([10, 0], [100, 300], minimum=-100, maximum=100, title="Ratings")
    titles = [group.title for group in drawing.shapes if isinstance(group, Group)]
    assert titles == [
        "Clean images, −100 to 0: 100.0 %",
        "Clean images, 0 to 100: 0.0 %",
        "Modified images, −100 to 0: 25.0 %",
        "Modified images, 0 to 100: 75.0 %",
    ]


@pytest.mark.parametrize("effects", [[], [Effect(True, 5.0, 0.0)]])
def test_image_effects_of_hardly_any_image_can_be_drawn(effects):
    counts = {True: len(effects), False: 0}
    assert svg(draw_image_effects(effects, counts=counts, minimum=-2, maximum=2, title="Effects"))


def test_image_effects_leave_a_gap_for_images_that_are_not_drawn():
    effects = [Effect(True, float(mean), 1.0) for mean in (*range(60), *range(100, 160))]
    effects += [Effect(False, float(mean), 1.0) for mean in range(20)]
    drawing = draw_image_effects(effects, counts={True: 3000, False: 20}, minimum=-200, maximum=200, title="Effects")
    texts = [label.text for label in shapes_in(drawing, Label)]
    assert {"Clean images (20)", "Modified images: 60 from either end of 3,000", "2,880 more"} <= set(texts)
    assert drawing.description == "140 of 3020 images with 95 % intervals"
    places = sorted(
        box.x + box.width / 2 for box in shapes_in(drawing, Box) if box.fill == "accent" and box.opacity == 1
    )
    steps = [right - left for left, right in itertools.pairwise(places)]
    assert len(places) == 120
    assert steps[59] == pytest.approx(37 * steps[0])  # 0.3 of 120 places, and the step itself
    assert max(steps[:59] + steps[60:]) == pytest.approx(steps[0])


def test_empty_plots_can_be_drawn():
    for drawing in (
        draw_intervals([], bound=10, title=""),
        draw_heat_map([], [], {}, title=""),
        draw_scatter([], bound=10, title=""),
        draw_distributions([0, 0], [0, 0], minimum=-2, maximum=2, title=""),
    ):
        parsed(svg(drawing))


def test_svg_file_is_whole_and_says_what_it_shows():
    root = parsed(svg(draw_intervals(ROWS, bound=10, title="A < B & C")))
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title").text == "A < B & C"
    assert root.find(f".//{SVG}a") is None
    assert not [element for element in root.iter() if "style" in element.attrib or element.tag.endswith("style")]


def test_svg_in_a_page_leads_to_the_entries_and_takes_the_colours_of_the_page():
    text = svg(draw_intervals(ROWS, bound=10, title="Intervals"), is_file=False)
    assert re.findall(r'<a href="([^"]+)"', text) == ["/entry/1/", "/entry/2/"]
    assert 'role="group"' in text
    assert "f-imperceptible" in text


def test_names_cannot_break_out_of_the_svg():
    name = '"><script>alert(1)</script>'
    text = svg(
        draw_intervals([Interval(name, "perceptible", 1.0, 0.0, 2.0, "1", name)], bound=10, title=name), is_file=False
    )
    assert "<script" not in text
    assert name in [element.text for element in parsed(text).iter("text")]


def test_png_shows_every_kind_of_shape_where_it_is():
    drawing = Drawing(100, 60, "Shapes")
    drawing.add(
        Box(0, 0, 20, 20, fill="accent"),
        Circle(50, 10, 8, fill="paper", stroke="perceptible", stroke_width=4),
        Polygon(((80, 0), (100, 0), (90, 20)), fill="imperceptible"),
        Line(0, 40, 100, 40, stroke="ink", width=4, dashes=True),
    )
    image = Image.open(io.BytesIO(png(drawing))).convert("RGB")
    assert image.size == (264, 184)  # twice the drawing and its margins

    def at(x, y):
        return image.getpixel(((x + 16) * 2, (y + 16) * 2))

    assert at(10, 10) == (0x30, 0x38, 0xB0)
    assert at(50, 10) == (255, 255, 255)
    assert at(50, 2) == (0xB4, 0x43, 0x0A)
    assert at(90, 5) == (0x0B, 0x5F, 0xA5)
    assert at(2, 40) == (0x1A, 0x1A, 0x1A)
    assert at(5.5, 40) == (255, 255, 255)
    assert at(-10, -10) == (255, 255, 255)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("anchor", "low", "high"), [("start", 50, 90), ("middle", 30, 70), ("end", 10, 50)])
def test_png_writes_text_from_its_anchor(turned, anchor, low, high):
    drawing = Drawing(100, 100, "Text", shapes=[Label(50, 50, "HHHH", 14, anchor=anchor, turned=turned)])
    image = Image.open(io.BytesIO(png(drawing))).convert("L").point(lambda value: 255 - value)
    left, top, right, bottom = [value / 2 - 16 for value in image.getbbox()]
    along = (100 - bottom, 100 - top) if turned else (left, right)
    assert low - 1 <= along[0] <= along[1] <= high + 1
    assert (39 <= left < right <= 51) if turned else (39 <= top < bottom <= 51)


def test_png_of_very_many_rows_stays_within_what_programs_open():
    rows = [Interval(f"Attack {number}", "perceptible", 5.0, 1.0, 9.0, "5") for number in range(600)]
    assert max(Image.open(io.BytesIO(png(draw_intervals(rows, bound=10, title="")))).size) <= 8000


@pytest.mark.parametrize(("rows", "is_whole"), [(20, True), (60, True), (200, False), (3000, False)])
def test_png_is_never_drawn_on_a_sheet_that_fills_the_memory(monkeypatch, rows, is_whole):
    sheets = []
    new = Image.new

    def recorded(mode, size, *colour):
        sheets.append(size)
        return new(mode, size, *colour)

    monkeypatch.setattr("leaderboard.plots.png.Image.new", recorded)
    drawing = Drawing(960, 106 + 17 * rows, "", "")
    found = Image.open(io.BytesIO(png(drawing)))
    assert max(width * height for width, height in sheets) <= 30_100_000  # sides are rounded up
    assert (found.width == 2 * (960 + 2 * MARGIN)) is is_whole
    assert found.height / found.width == pytest.approx((drawing.height + 2 * MARGIN) / (960 + 2 * MARGIN), rel=0.01)


def test_signs_that_results_are_written_with_are_in_the_font():
    missing = text_width("\U000f0000", 100)
    assert all(text_width(sign, 100) != missing for sign in "−±≤≥–…×éüßłΔεЖ")


def test_long_names_are_shortened_to_the_room():
    assert shortened("ACA", 100) == "ACA"
    short = shortened("A very long name of an attack", 100)
    assert short.endswith("…")
    assert text_width(short) <= 100


def test_badge_tells_board_and_verdict():
    text = svg(draw_badge("Scooter", "imperceptible", "#1 · imperceptible"), margin=0)
    assert "<title>Scooter: #1 · imperceptible</title>" in text
    assert 'fill="#0b5fa5"' in text
    # Whatever font the reader has, the text is as long as the badge has room for.
    width = float(re.search(r'<svg [^>]*width="([0-9.]+)"', text).group(1))
    lengths = [float(length) for length in re.findall(r'textLength="([0-9.]+)" lengthAdjust="spacingAndGlyphs"', text)]
    assert len(lengths) == 2
    assert sum(lengths) == pytest.approx(width - 4 * 9, abs=1)


@pytest.mark.parametrize("text", ["cAdv on ResNet-50 (ε = 8/255)", "Атака", "Ångström–µ ±3 “x”", "", "a\u00a0b"])
def test_the_font_writes_latin_greek_and_cyrillic(text):
    assert has_letters_of(text)


@pytest.mark.parametrize("text", ["色彩", "cAdv 攻撃", "هجوم", "התקפה", "공격", "हमला", "😀"])
def test_the_font_knows_what_it_cannot_write(text):
    assert not has_letters_of(text)
