"""Plates hide their digit from the simulated deficiency and show it to everybody else.

Simulations are the published ones of daltonlens: Machado, Oliveira & Fernandes 2009 and Viénot, Brettel & Mollon 1999
for protans and deutans, Brettel, Viénot & Mollon 1997 for tritans (the only one of the three valid for them).
"""

import functools
import io

import numpy as np
import pytest
from daltonlens import simulate
from PIL import Image
from scipy.spatial import cKDTree
from scipy.stats import ks_2samp, rankdata
from skimage.color import deltaE_ciede2000

from studies import plates
from studies.services.plate_pool import PLATE_POOL
from tests.colour_difference import lab

DEFICIENCIES = {
    "protan": simulate.Deficiency.PROTAN,
    "deutan": simulate.Deficiency.DEUTAN,
    "tritan": simulate.Deficiency.TRITAN,
}
MACHADO, VIENOT, BRETTEL = (
    simulate.Simulator_Machado2009(),
    simulate.Simulator_Vienot1999(),
    simulate.Simulator_Brettel1997(),
)
SIMULATIONS = [
    pytest.param("protan", MACHADO, id="protan-Machado2009"),
    pytest.param("protan", VIENOT, id="protan-Vienot1999"),
    pytest.param("protan", BRETTEL, id="protan-Brettel1997"),
    pytest.param("deutan", MACHADO, id="deutan-Machado2009"),
    pytest.param("deutan", VIENOT, id="deutan-Vienot1999"),
    pytest.param("deutan", BRETTEL, id="deutan-Brettel1997"),
    pytest.param("tritan", BRETTEL, id="tritan-Brettel1997"),
]
SEED = 20
both_digits = pytest.mark.parametrize("digit", [2, 8])


class Plate:
    """A plate once as dots, once as the 8-bit image that people get."""

    def __init__(self, kind, digit, seed=SEED):
        self.kind, self.digit = kind, digit
        self.dots = plates.make_dots(kind, digit, seed)
        self.image = plates.draw(self.dots, 560)

    def dot_pixels(self):
        """8-bit sRGB of each dot, computed, shape (n, 3)."""
        return np.round(plates.srgb_from_linear(self.dots.colour) * 255).astype(np.uint8)

    def simulated(self, pixels, simulator):
        return simulator.simulate_cvd(np.asarray(pixels), DEFICIENCIES[self.kind], severity=1.0)

    @functools.cached_property
    def owners(self):
        """For each pixel of a dot its flat index and the dot's number; two arrays."""
        size = self.image.width
        rows, columns = (np.indices((size, size)) + 0.5) / size
        distance, nearest = cKDTree(np.column_stack([self.dots.x, self.dots.y])).query(
            np.column_stack([columns.ravel(), rows.ravel()]), distance_upper_bound=self.dots.radius.max()
        )
        inside = np.flatnonzero(np.isfinite(distance))
        inside = inside[distance[inside] <= self.dots.radius[nearest[inside]]]
        return inside, nearest[inside]

    def measured_in(self, pixels):
        """Mean L*a*b* per dot in image ``pixels`` (h, w, 3), edges included, shape (n, 3)."""
        inside, owner = self.owners
        values = lab(pixels.reshape(-1, 3)[inside])
        return np.column_stack([np.bincount(owner, channel) for channel in values.T]) / np.bincount(owner)[:, None]


@functools.cache
def plate_of(kind, digit):
    """Each plate is made once."""
    return Plate(kind, digit)


@functools.cache
def pool_plate(kind, digit):
    """The plate of the pool, as every study shows it."""
    (seed,) = (seed for *plate, seed in PLATE_POOL if plate == [kind, digit])
    return Plate(kind, digit, seed)


def area_under_curve(values, is_figure):
    """How well ``values`` alone tell figure dots from ground dots: 0.5 = not at all, 1 = completely."""
    figures, grounds = is_figure.sum(), (~is_figure).sum()
    area = (rankdata(values)[is_figure].sum() - figures * (figures + 1) / 2) / (figures * grounds)
    return max(area, 1 - area)


def linear_separation(colours, is_figure):
    """The same for the best linear combination of three coordinates (Fisher's discriminant)."""
    figure, ground = colours[is_figure], colours[~is_figure]
    spread = np.cov(figure.T) + np.cov(ground.T) + 1e-6 * np.eye(3)
    return area_under_curve(colours @ np.linalg.solve(spread, figure.mean(0) - ground.mean(0)), is_figure)


def colour_difference(colours, is_figure):
    return deltaE_ciede2000(colours[is_figure].mean(0), colours[~is_figure].mean(0))


def assert_digit_is_invisible(colours, is_figure):
    assert colour_difference(colours, is_figure) < 2
    assert linear_separation(colours, is_figure) < 0.65
    assert area_under_curve(colours[:, 0], is_figure) < 0.6


@both_digits
@pytest.mark.parametrize("kind", plates.KINDS)
def test_normal_vision_tells_figure_from_ground(kind, digit):
    plate = plate_of(kind, digit)
    for colours in (lab(plate.dot_pixels()), plate.measured_in(np.asarray(plate.image))):
        assert colour_difference(colours, plate.dots.is_figure) > 20
        assert linear_separation(colours, plate.dots.is_figure) > 0.99


@both_digits
@pytest.mark.parametrize(("kind", "simulator"), SIMULATIONS)
def test_dichromat_cannot_tell_figure_from_ground_by_the_dots(kind, digit, simulator):
    plate = plate_of(kind, digit)
    seen = plate.simulated(plate.dot_pixels()[None], simulator)[0]
    assert_digit_is_invisible(lab(seen), plate.dots.is_figure)


@both_digits
@pytest.mark.parametrize(("kind", "simulator"), SIMULATIONS)
def test_dichromat_cannot_tell_figure_from_ground_by_the_pixels(kind, digit, simulator):
    plate = plate_of(kind, digit)
    seen = plate.simulated(plate.image, simulator)
    assert_digit_is_invisible(plate.measured_in(seen), plate.dots.is_figure)


@pytest.mark.parametrize("digit", range(10))
@pytest.mark.parametrize(("kind", "simulator"), SIMULATIONS)
def test_each_plate_that_participants_get_hides_its_digit(kind, digit, simulator):
    plate = pool_plate(kind, digit)
    seen = plate.simulated(plate.image, simulator)
    assert_digit_is_invisible(plate.measured_in(seen), plate.dots.is_figure)


@pytest.mark.parametrize("digit", range(10))
@pytest.mark.parametrize("kind", plates.KINDS)
def test_each_plate_that_participants_get_is_plain_for_normal_vision(shapes, kind, digit):
    plate = pool_plate(kind, digit)
    colours = plate.measured_in(np.asarray(plate.image))
    assert colour_difference(colours, plate.dots.is_figure) > 20
    assert linear_separation(colours, plate.dots.is_figure) > 0.99
    assert fits_of_digits(plate, shapes).argmax() == digit


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, digit, seed in PLATE_POOL if digit is None])
def test_nothing_is_read_on_the_blank_plates_that_participants_get(shapes, kind, seed):
    assert fits_of_digits(Plate(kind, None, seed), shapes).max() < 0.2


@pytest.mark.parametrize(("kind", "simulator"), SIMULATIONS)
def test_a_plate_for_one_deficiency_is_readable_with_another(kind, simulator):
    """The check itself can fail: a red-green deficiency does not hide a tritan plate, nor the reverse."""
    other = plate_of("deutan" if kind == "tritan" else "tritan", 8)
    seen = simulator.simulate_cvd(np.asarray(other.image), DEFICIENCIES[kind], severity=1.0)
    assert colour_difference(other.measured_in(seen), other.dots.is_figure) > 10


@both_digits
@pytest.mark.parametrize("kind", plates.KINDS)
def test_size_of_dots_does_not_give_the_digit_away(kind, digit):
    dots = plate_of(kind, digit).dots
    assert area_under_curve(dots.radius, dots.is_figure) < 0.6


@pytest.fixture(scope="module")
def shapes():
    """Each digit's shape in the middle of a raster of 150 x 150 points."""
    rows, columns = (np.indices((150, 150)) + 0.5) / 150 - 0.5
    distances = (plates.distance_to_digit(digit, columns.ravel(), rows.ravel()) for digit in range(10))
    return [distance.reshape(150, 150) <= plates.STROKE_WIDTH / 2 for distance in distances]


def fits_of_digits(plate, shapes):
    """How well each digit's shape, moved a little, fits the hues of the rendered dots: ten correlations, 0..1."""
    hues = plate.measured_in(np.asarray(plate.image))[:, 1:]
    centred = hues - hues.mean(0)
    values = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    moves = range(-3, 4, 1)
    rows, columns = (plate.dots.y * 150).astype(int), (plate.dots.x * 150).astype(int)

    def fit(shape, down, right):
        return abs(np.corrcoef(values, np.roll(shape, (down, right), axis=(0, 1))[rows, columns])[0, 1])

    return np.array([max(fit(shape, down, right) for down in moves for right in moves) for shape in shapes])


@pytest.mark.parametrize("digit", range(10))
def test_each_digit_is_read_and_not_mistaken_for_another(shapes, digit):
    fits = fits_of_digits(plate_of(plates.KINDS[digit % 3], digit), shapes)
    assert fits.argmax() == digit
    assert fits[digit] > 0.7
    assert fits[digit] - np.delete(fits, digit).max() > 0.05


@pytest.mark.parametrize("kind", plates.KINDS)
def test_nothing_is_read_on_a_plate_without_a_digit(shapes, kind):
    assert fits_of_digits(plate_of(kind, None), shapes).max() < 0.2


def same_coloured_neighbours(dots):
    """The share of dots whose nearest dot has the same colour."""
    points = np.column_stack([dots.x, dots.y])
    nearest = cKDTree(points).query(points, k=2)[1][:, 1]
    return (dots.is_figure == dots.is_figure[nearest]).mean()


@pytest.mark.parametrize("kind", plates.KINDS)
def test_plate_without_a_digit_has_the_same_dots_in_random_places(kind):
    with_digit, without = plate_of(kind, 8).dots, plate_of(kind, None).dots
    shares = [plate_of(plates.KINDS[digit % 3], digit).dots.is_figure.mean() for digit in range(10)]
    share = without.is_figure.mean()
    assert min(shares) - 0.02 <= share <= max(shares) + 0.02
    assert len(without.x) == pytest.approx(len(with_digit.x), rel=0.1)
    assert ks_2samp(without.radius, with_digit.radius).pvalue > 0.01
    assert colour_difference(lab(plate_of(kind, None).dot_pixels()), without.is_figure) > 20
    by_chance = share**2 + (1 - share) ** 2
    assert same_coloured_neighbours(without) == pytest.approx(by_chance, abs=0.06)
    assert same_coloured_neighbours(with_digit) > by_chance + 0.12


def test_dots_lie_apart_within_the_plate_and_fill_it():
    for kind in plates.KINDS:
        dots = plate_of(kind, 8).dots
        points = np.column_stack([dots.x, dots.y])
        close = np.array(list(cKDTree(points).query_pairs(2 * max(plates.DOT_RADII))))
        distance = np.linalg.norm(points[close[:, 0]] - points[close[:, 1]], axis=1)
        assert (distance >= dots.radius[close[:, 0]] + dots.radius[close[:, 1]]).all()
        assert (np.hypot(dots.x - 0.5, dots.y - 0.5) + dots.radius <= plates.PLATE_RADIUS).all()
        assert 0.5 < (dots.radius**2).sum() / plates.PLATE_RADIUS**2 < 0.7
        assert dots.colour.min() >= 0
        assert dots.colour.max() <= 1


def test_the_figure_is_not_always_of_the_same_colour():
    reddish = set()
    for seed in range(8):
        dots = plates.make_dots("deutan", 3, seed)
        reddish.add(bool(dots.colour[dots.is_figure, 0].mean() > dots.colour[~dots.is_figure, 0].mean()))
    assert reddish == {True, False}


def test_image_is_a_round_plate_on_white_without_metadata():
    plate = plate_of("protan", 8)
    assert plate.image.mode == "RGB"
    assert plate.image.size == (560, 560)
    assert plates.make_plate("protan", 8, SEED, size=300).size == (300, 300)
    pixels = np.asarray(plate.image).astype(int)
    rows, columns = np.indices((560, 560)) + 0.5
    outside = np.hypot(rows - 280, columns - 280) > 280
    assert (pixels[outside] == 255).all()
    assert plate.image.info == {}
    file = io.BytesIO()
    plate.image.save(file, "PNG")
    assert Image.open(io.BytesIO(file.getvalue())).info == {}


def test_same_arguments_make_the_same_plate_and_others_do_not():
    first = plate_of("deutan", 4).image
    assert np.array_equal(first, plates.make_plate("deutan", 4, SEED))
    assert not np.array_equal(first, plates.make_plate("deutan", 4, SEED + 1))
    assert not np.array_equal(first, plate_of("protan", 4).image)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="protan, deutan, tritan"):
        plates.make_plate("achromat", 1, 0)
    with pytest.raises(ValueError, match="0 to 9"):
        plates.make_plate("protan", 10, 0)
    with pytest.raises(ValueError, match="200 pixels"):
        plates.make_plate("protan", 1, 0, size=100)
