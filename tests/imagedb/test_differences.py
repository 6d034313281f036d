"""Distances of a modified image from its source, against scikit-image and published values."""

import numpy as np
import pytest
from PIL import Image
from skimage.color import rgb2gray, rgb2lab
from skimage.metrics import structural_similarity

from imagedb import differences
from imagedb.differences import Difference, amplified, ciede2000, lab, measure, same_proportions
from imagedb.models import Comparison
from tests import colour_difference
from tests.imagedb.pictures import noise

# Sharma, Wu and Dalal (2005), table 1: L*a*b* of two colours, and CIEDE2000 between them.
SHARMA = np.array(
    [
        [50.0000, 2.6772, -79.7751, 50.0000, 0.0000, -82.7485, 2.0425],
        [50.0000, 3.1571, -77.2803, 50.0000, 0.0000, -82.7485, 2.8615],
        [50.0000, 2.8361, -74.0200, 50.0000, 0.0000, -82.7485, 3.4412],
        [50.0000, -1.3802, -84.2814, 50.0000, 0.0000, -82.7485, 1.0000],
        [50.0000, -1.1848, -84.8006, 50.0000, 0.0000, -82.7485, 1.0000],
        [50.0000, -0.9009, -85.5211, 50.0000, 0.0000, -82.7485, 1.0000],
        [50.0000, 0.0000, 0.0000, 50.0000, -1.0000, 2.0000, 2.3669],
        [50.0000, -1.0000, 2.0000, 50.0000, 0.0000, 0.0000, 2.3669],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0009, 7.1792],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0010, 7.1792],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0011, 7.2195],
        [50.0000, 2.4900, -0.0010, 50.0000, -2.4900, 0.0012, 7.2195],
        [50.0000, -0.0010, 2.4900, 50.0000, 0.0009, -2.4900, 4.8045],
        [50.0000, -0.0010, 2.4900, 50.0000, 0.0010, -2.4900, 4.8045],
        [50.0000, -0.0010, 2.4900, 50.0000, 0.0011, -2.4900, 4.7461],
        [50.0000, 2.5000, 0.0000, 50.0000, 0.0000, -2.5000, 4.3065],
        [50.0000, 2.5000, 0.0000, 73.0000, 25.0000, -18.0000, 27.1492],
        [50.0000, 2.5000, 0.0000, 61.0000, -5.0000, 29.0000, 22.8977],
        [50.0000, 2.5000, 0.0000, 56.0000, -27.0000, -3.0000, 31.9030],
        [50.0000, 2.5000, 0.0000, 58.0000, 24.0000, 15.0000, 19.4535],
        [50.0000, 2.5000, 0.0000, 50.0000, 3.1736, 0.5854, 1.0000],
        [50.0000, 2.5000, 0.0000, 50.0000, 3.2972, 0.0000, 1.0000],
        [50.0000, 2.5000, 0.0000, 50.0000, 1.8634, 0.5757, 1.0000],
        [50.0000, 2.5000, 0.0000, 50.0000, 3.2592, 0.3350, 1.0000],
        [60.2574, -34.0099, 36.2677, 60.4626, -34.1751, 39.4387, 1.2644],
        [63.0109, -31.0961, -5.8663, 62.8187, -29.7946, -4.0864, 1.2630],
        [61.2901, 3.7196, -5.3901, 61.4292, 2.2480, -4.9620, 1.8731],
        [35.0831, -44.1164, 3.7933, 35.0232, -40.0716, 1.5901, 1.8645],
        [22.7233, 20.0904, -46.6940, 23.0331, 14.9730, -42.5619, 2.0373],
        [36.4612, 47.8580, 18.3852, 36.2715, 50.5065, 21.2231, 1.4146],
        [90.8027, -2.0831, 1.4410, 91.1528, -1.6435, 0.0447, 1.4441],
        [90.9257, -0.5406, -0.9208, 88.6381, -0.8985, -0.7239, 1.5381],
        [6.7747, -0.2908, -2.4247, 5.8714, -0.0985, -2.2286, 0.6377],
        [2.0776, 0.0795, -1.1350, 0.9033, -0.0636, -0.5514, 0.9082],
    ]
)


def array(image: Image.Image) -> np.ndarray:
    return np.asarray(image)


def shifted(pixels: np.ndarray, most: int, seed: int = 1) -> np.ndarray:
    """The pixels with every value moved by up to ``most`` levels."""
    change = np.random.default_rng(seed).integers(-most, most + 1, pixels.shape)
    return np.clip(pixels.astype(int) + change, 0, 255).astype(np.uint8)


def photograph(width: int = 90, height: int = 60) -> np.ndarray:
    """Smooth shapes and colours, as photographs have and noise has not."""
    y, x = np.mgrid[0:height, 0:width]
    channels = [np.sin(x / 9 + phase) * np.cos(y / 7 - phase) for phase in (0, 1, 2)]
    return (127.5 + 127 * np.stack(channels, axis=-1)).astype(np.uint8)


def ssim_of_scikit_image(one: np.ndarray, other: np.ndarray) -> float:
    return structural_similarity(
        rgb2gray(one), rgb2gray(other), data_range=1, gaussian_weights=True, use_sample_covariance=False
    )


class TestColourDifference:
    @pytest.mark.parametrize("swapped", [False, True])
    def test_published_pairs(self, swapped):
        pair = [SHARMA[:, :3].T, SHARMA[:, 3:6].T]
        found = ciede2000(*(pair[::-1] if swapped else pair))
        assert np.abs(found - SHARMA[:, 6]).max() <= 0.00005 + 1e-9

    def test_published_pairs_with_32_bits(self):
        # Without the pairs that are about which of two sides of a jump 0.0001 is on.
        pairs = np.delete(SHARMA, range(8, 15), axis=0).astype(np.float32)
        assert np.abs(ciede2000(pairs[:, :3].T, pairs[:, 3:6].T) - pairs[:, 6]).max() < 0.0005

    def test_lab_of_every_fifth_level(self):
        levels = np.arange(0, 256, 5, dtype=np.uint8)
        colours = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(-1, 3)
        assert np.abs(lab(colours.T).T - rgb2lab(colours)).max() < 0.002

    def test_any_pair_of_colours_is_as_far_apart_as_scikit_image_says(self):
        one, other = np.random.default_rng(3).integers(0, 256, (2, 200_000, 3), dtype=np.uint8)
        lab_1, lab_2 = lab(one.T), lab(other.T)
        found = ciede2000(lab_1, lab_2)
        assert found.dtype == np.float32
        wrong = np.abs(found - colour_difference.differences(one, other)) > 0.005
        # Where hues are opposite, the formula jumps, and rounding decides which side of the jump a pair is on.
        hues = np.arctan2(lab_1[2], lab_1[1]) - np.arctan2(lab_2[2], lab_2[1])
        assert wrong.sum() < 50
        assert (np.cos(hues[wrong]) < -0.99999).all()

    def test_neighbouring_colours(self):
        one = np.random.default_rng(4).integers(1, 255, (200_000, 3), dtype=np.uint8)
        other = shifted(one, 1)
        expected = colour_difference.differences(one, other)
        assert np.abs(ciede2000(lab(one.T), lab(other.T)) - expected).max() < 0.002


class TestSameSize:
    @pytest.mark.parametrize("band_pixels", [1, 500, 65_536], ids=["row by row", "some rows", "at once"])
    @pytest.mark.parametrize("most", [1, 8, 200])
    def test_all_five_measures(self, most, band_pixels, monkeypatch):
        monkeypatch.setattr(differences, "_BAND_PIXELS", band_pixels)
        source = photograph()
        modified = shifted(source, most)
        found = measure(modified, source)
        change = modified.astype(float) - source
        assert found.comparison == "same_size"
        assert found.linf == np.abs(change).max()
        assert found.l2 == pytest.approx(np.linalg.norm(change.ravel() / 255), rel=1e-6)
        assert found.changed_share == change.any(axis=-1).mean()
        assert found.ssim == pytest.approx(ssim_of_scikit_image(modified, source), abs=1e-5)
        expected = colour_difference.differences(Image.fromarray(modified), Image.fromarray(source)).mean()
        assert found.ciede2000 == pytest.approx(expected, abs=1e-3)

    def test_numbers_that_can_be_worked_out_by_hand(self):
        source = np.zeros((20, 10, 3), np.uint8)
        modified = source.copy()
        modified[3, 4] = (0, 51, 0)
        modified[5, 6] = (68, 0, 0)
        found = measure(modified, source)
        assert (found.linf, found.changed_share) == (68, 0.01)
        assert found.l2 == pytest.approx(np.hypot(0.2, 68 / 255))
        assert measure(source, modified).linf == 68  # darker is as far as lighter

    def test_black_and_white_are_100_apart(self):
        white, black = np.full((12, 12, 3), 255, np.uint8), np.zeros((12, 12, 3), np.uint8)
        found = measure(white, black)
        assert (found.linf, found.changed_share) == (255, 1)
        assert found.l2 == pytest.approx(np.sqrt(12 * 12 * 3))
        assert found.ciede2000 == pytest.approx(100, abs=0.01)
        assert found.ssim == pytest.approx(0.01**2 / (1 + 0.01**2), rel=1e-3)

    def test_identical(self):
        assert measure(photograph(), photograph()) == Difference(
            "same_size", linf=0, l2=0, changed_share=0, ssim=1, ciede2000=0
        )

    @pytest.mark.parametrize("size", [(1, 1), (1, 40), (10, 10), (11, 11), (10, 30), (12, 11)])
    def test_small_images_have_all_values_too(self, size):
        source = array(noise(0, size))
        found = measure(shifted(source, 5), source)
        assert -1 <= found.ssim < 1
        assert found.ciede2000 > 0
        if min(size) >= 11:
            assert found.ssim == pytest.approx(ssim_of_scikit_image(shifted(source, 5), source), abs=1e-5)

    def test_arguments_stay_as_they_are(self):
        source = photograph()
        source.flags.writeable = False
        modified = shifted(source, 3)
        before = modified.copy()
        measure(modified, source)
        amplified(modified, source)
        assert np.array_equal(modified, before)


class TestSizes:
    @pytest.mark.parametrize(
        ("size", "other"),
        [
            ((500, 375), (500, 375)),
            ((224, 168), (500, 375)),
            ((1000, 750), (500, 375)),
            ((224, 149), (500, 333)),  # 149.2
            ((224, 150), (500, 333)),
            ((299, 224), (500, 375)),  # 224.25
            ((499, 375), (500, 375)),
            ((1, 1), (2, 2)),
        ],
    )
    def test_same_proportions(self, size, other):
        assert same_proportions(size, other)

    @pytest.mark.parametrize(
        ("size", "other"),
        [
            ((224, 224), (500, 375)),  # squeezed or cropped to a square
            ((375, 500), (500, 375)),
            ((224, 151), (500, 333)),
            ((500, 372), (500, 375)),
        ],
    )
    def test_other_proportions(self, size, other):
        assert not same_proportions(size, other)

    @pytest.mark.parametrize("size", [(45, 30), (180, 120), (44, 30)])
    def test_source_is_resampled_to_the_modified_image(self, size):
        source = photograph(90, 60)
        resampled = np.asarray(Image.fromarray(source).resize(size, Image.Resampling.LANCZOS))
        modified = shifted(resampled, 4)
        found = measure(modified, source)
        assert found.comparison == "resampled"
        expected = measure(modified, resampled)
        assert expected.comparison == "same_size"
        assert (found.linf, found.l2, found.ssim) == (expected.linf, expected.l2, expected.ssim)
        assert found.linf == 4

    def test_other_proportions_are_not_measured(self):
        assert measure(photograph(60, 60), photograph(90, 60)) == Difference("not_comparable")
        assert Difference("not_comparable").ciede2000 is None

    def test_names_are_those_of_the_catalogue(self):
        assert {differences.SAME_SIZE, differences.RESAMPLED, differences.NOT_COMPARABLE} == set(Comparison.values)


class TestAmplified:
    def test_no_change_is_mid_grey(self):
        assert set(np.unique(array(amplified(photograph(), photograph())))) == {128}

    def test_each_channel_by_itself_and_clipped(self):
        source = np.full((1, 2, 3), 100, np.uint8)
        modified = np.array([[[101, 98, 100], [120, 50, 112]]], np.uint8)
        assert array(amplified(modified, source)).tolist() == [[[138, 108, 128], [255, 0, 248]]]
        assert array(amplified(modified, source, factor=1)).tolist() == [[[129, 126, 128], [148, 78, 140]]]

    def test_resampled_source(self):
        source = photograph(90, 60)
        resampled = np.asarray(Image.fromarray(source).resize((45, 30), Image.Resampling.LANCZOS))
        picture = amplified(resampled, source)
        assert (picture.mode, picture.size) == ("RGB", (45, 30))
        assert set(np.unique(array(picture))) == {128}

    def test_other_proportions(self):
        with pytest.raises(ValueError, match="proportions"):
            amplified(photograph(60, 60), photograph(90, 60))
