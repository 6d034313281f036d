"""How far a modified image is from its source. Pure: numpy, scipy and Pillow, no Django.

Five measures, each by its published definition; ``tests/imagedb/test_differences.py`` holds them against scikit-image
and the published test data. Images are handled a band of rows at a time: the intermediate values of a band fit the
processor's cache, which is faster, and memory stays small for large images.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

# How the two images were brought together; the values of ``imagedb.models.Comparison``.
SAME_SIZE = "same_size"
RESAMPLED = "resampled"
NOT_COMPARABLE = "not_comparable"

NO_CHANGE = 128  # the grey of unchanged channels in an amplified difference

Pixels = npt.NDArray[np.uint8]  # (height, width, 3), sRGB
Floats = npt.NDArray[np.floating[Any]]

_BAND_PIXELS = 32_768

# SSIM as Wang, Bovik, Sheikh and Simoncelli (2004) define it: a Gaussian window of 11 x 11 pixels with sigma 1.5,
# K1 = 0.01, K2 = 0.03, and the mean taken over the pixels whose window lies within the image.
_SIGMA, _RADIUS = 1.5, 5
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2

# Luminance of ITU-R BT.709 from the values as stored (what scikit-image calls grey).
_LUMINANCE = (0.2125, 0.7154, 0.0721)

# IEC 61966-2-1: light of each of the 256 levels, and the way from red, green and blue light to CIE XYZ, divided by
# the white point D65 (2 degrees).
_LEVELS = np.arange(256) / 255
_LIGHT = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4).astype(np.float32)
_RGB_TO_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
_WHITE = (0.95047, 1.0, 1.08883)
_RGB_TO_RELATIVE_XYZ = tuple(
    tuple(weight / white for weight in row) for row, white in zip(_RGB_TO_XYZ, _WHITE, strict=True)
)


@dataclass(frozen=True)
class Difference:
    """The distances of a modified image from its source; all None if the two cannot be compared."""

    comparison: str  # SAME_SIZE, RESAMPLED or NOT_COMPARABLE
    linf: int | None = None  # largest change of a channel, of 255 levels
    l2: float | None = None  # over all pixels and channels, with values from 0 to 1
    changed_share: float | None = None  # of pixels in which any channel differs, 0 to 1
    ssim: float | None = None  # mean structural similarity of the luminance; 1 is identical
    ciede2000: float | None = None  # mean over the pixels


def measure(modified: Pixels, source: Pixels) -> Difference:
    """Measure ``modified`` against ``source``, both (height, width, 3) sRGB of 8 bits.

    Images of one size are compared pixel by pixel. If the proportions are the same (see ``same_proportions``), the
    source is first resampled to the size of the modified image: an attack that works at the input size of its model
    is judged there. Otherwise nothing is measured.
    """
    comparison, reference = _at_size_of(modified, source)
    if reference is None:
        return Difference(comparison)
    largest, sum_of_squares, changed, colour_difference = 0, 0, 0, 0.0
    for rows in _bands(modified):
        one, other = _by_channel(modified[rows]), _by_channel(reference[rows])
        change = one.astype(np.int16) - other
        differs = (change[0] | change[1] | change[2]) != 0
        changed_here = int(np.count_nonzero(differs))
        if not changed_here:
            continue
        changed += changed_here
        largest = max(largest, int(change.max()), -int(change.min()))
        sum_of_squares += int(np.square(change, dtype=np.int32).sum(dtype=np.int64))
        if changed_here < differs.size // 2:  # picking pixels costs time too
            one, other = one[:, differs], other[:, differs]
        colour_difference += float(ciede2000(lab(one), lab(other)).sum(dtype=np.float64))
    pixel_count = modified.shape[0] * modified.shape[1]
    return Difference(
        comparison,
        linf=largest,
        l2=sum_of_squares**0.5 / 255,
        changed_share=changed / pixel_count,
        ssim=_mean_ssim(modified, reference) if changed else 1.0,
        ciede2000=colour_difference / pixel_count,
    )


def amplified(modified: Pixels, source: Pixels, factor: float = 10) -> Image.Image:
    """Picture what was changed: mid grey plus ``factor`` times the change of each channel, clipped to 0 to 255.

    The source is resampled as for ``measure``. Raises ValueError if the two cannot be compared.
    """
    _, reference = _at_size_of(modified, source)
    if reference is None:
        raise ValueError("the proportions of the two images differ: there is no pixel by pixel difference")
    # One look-up per value: changes are whole numbers from -255 to 255.
    shown = np.clip(np.rint(NO_CHANGE + np.arange(-255, 256) * factor), 0, 255).astype(np.uint8)
    picture = np.empty_like(modified)
    for rows in _bands(modified):
        picture[rows] = shown[modified[rows].astype(np.int16) - reference[rows] + 255]
    return Image.fromarray(picture)


def same_proportions(size: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one size is the other times a factor, but for at most one pixel of each side, as rounding leaves."""
    width, height = size
    other_width, other_height = other
    least = max((width - 1) / other_width, (height - 1) / other_height)
    most = min((width + 1) / other_width, (height + 1) / other_height)
    return least <= most


def lab(channels: Pixels) -> Floats:
    """CIE L*a*b* (D65, 2 degrees) of sRGB pixels, both as arrays (3, n)."""
    light = np.take(_LIGHT, channels)
    ratios = np.stack([_weighted(light, weights) for weights in _RGB_TO_RELATIVE_XYZ])
    # The cube root by way of the logarithm, which numpy has vector instructions for.
    x, y, z = root = np.exp(np.log(np.maximum(ratios, 1e-6)) * np.float32(1 / 3))
    np.copyto(root, ratios * np.float32(7.787) + np.float32(16 / 116), where=ratios <= 0.008856)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one: Floats, other: Floats) -> Floats:
    """CIEDE2000 (kL = kC = kH = 1) between L*a*b* colours, both (3, n); gives (n,).

    After Sharma, Wu and Dalal (2005), "The CIEDE2000 color-difference formula: implementation notes, supplementary
    test data, and mathematical observations". Angles are mostly kept as sines and cosines: the mean hue is the
    direction between the two hues, whichever way round is shorter, and cosines of its multiples are polynomials.
    """
    (lightness_1, a_1, b_1), (lightness_2, a_2, b_2) = one, other
    lightness_change, b_change = lightness_2 - lightness_1, b_2 - b_1

    mean_chroma = (np.sqrt(a_1 * a_1 + b_1 * b_1) + np.sqrt(a_2 * a_2 + b_2 * b_2)) / 2
    stretch = 1.5 - 0.5 * _saturation(mean_chroma)
    a_1, a_2, a_change = a_1 * stretch, a_2 * stretch, (a_2 - a_1) * stretch
    chroma_1, chroma_2 = np.sqrt(a_1 * a_1 + b_1 * b_1), np.sqrt(a_2 * a_2 + b_2 * b_2)
    tiny = np.finfo(one.dtype).tiny
    # Written so that nearly equal large numbers are not subtracted: 32 bits are then enough.
    chroma_change = (a_change * (a_1 + a_2) + b_change * (b_1 + b_2)) / np.maximum(chroma_1 + chroma_2, tiny)
    hue_change = np.sqrt(np.maximum(a_change * a_change + b_change * b_change - chroma_change * chroma_change, 0))
    hue_change = np.copysign(hue_change, a_1 * b_2 - a_2 * b_1)

    # A colour without chroma has no hue, and leaves the mean to the other.
    unit_1, unit_2 = 1 / np.maximum(chroma_1, tiny), 1 / np.maximum(chroma_2, tiny)
    cos, sin = a_1 * unit_1 + a_2 * unit_2, b_1 * unit_1 + b_2 * unit_2
    length = np.sqrt(cos * cos + sin * sin)
    opposite = length == 0
    cos, sin = cos / np.maximum(length, tiny), sin / np.maximum(length, tiny)
    if opposite.any():
        # Hues 180 degrees apart have their mean halfway up from the lesser; without any hue it is 0.
        upper = np.where((b_1 > 0) | ((b_1 == 0) & (a_1 > 0)), unit_1, -unit_1)
        grey = (chroma_1 == 0) & (chroma_2 == 0)
        cos = np.where(opposite, np.where(grey, 1, -b_1 * upper), cos)
        sin = np.where(opposite, np.where(grey, 0, a_1 * upper), sin)
    cos_2, sin_2 = 2 * cos * cos - 1, 2 * sin * cos
    cos_3, sin_3 = cos * (2 * cos_2 - 1), sin * (2 * cos_2 + 1)
    cos_4, sin_4 = 2 * cos_2 * cos_2 - 1, 2 * sin_2 * cos_2
    hue_weight = (
        1
        - 0.17 * _cos_of_difference(cos, sin, 30)
        + 0.24 * cos_2
        + 0.32 * _cos_of_difference(cos_3, sin_3, -6)
        - 0.20 * _cos_of_difference(cos_4, sin_4, 63)
    )

    mean_chroma = (chroma_1 + chroma_2) / 2
    from_middle = ((lightness_1 + lightness_2) / 2 - 50) ** 2
    lightness_term = lightness_change / (1 + 0.015 * from_middle / np.sqrt(20 + from_middle))
    chroma_term = chroma_change / (1 + 0.045 * mean_chroma)
    hue_term = hue_change / (1 + 0.015 * mean_chroma * hue_weight)

    # The turn of the ellipses in the blues, at 275 degrees. Beyond a right angle from there it is below 0.0001 degrees.
    cos_blue, sin_blue = _cos_of_difference(cos, sin, 275), _cos_of_difference(sin, -cos, 275)
    angle = np.full_like(cos, math.pi)
    np.arctan2(sin_blue, cos_blue, out=angle, where=cos_blue > 0)
    turn = math.radians(60) * np.exp(-((angle * (180 / math.pi / 25)) ** 2))
    turn_weight = -np.sin(turn) * 2 * _saturation(mean_chroma)

    squared = lightness_term**2 + chroma_term**2 + hue_term**2 + turn_weight * chroma_term * hue_term
    return np.sqrt(np.maximum(squared, 0))


def _weighted(channels: npt.NDArray[Any], weights: tuple[float, ...]) -> Floats:
    """The weighted sum of three channels (3, ...), in 32 bits.

    Not as a product of matrices: numpy would spread it over all processors, at twice the computing time in all.
    """
    red, green, blue = (channel * np.float32(weight) for channel, weight in zip(channels, weights, strict=True))
    return red + green + blue


def _saturation(chroma: Floats) -> Floats:
    """sqrt(C^7 / (C^7 + 25^7)), of which the formula makes use twice."""
    ratio = chroma / 25
    cubed = ratio * ratio * ratio
    seventh = cubed * cubed * ratio
    return np.sqrt(seventh / (seventh + 1))


def _cos_of_difference(cos: Floats, sin: Floats, degrees: float) -> Floats:
    """The cosine of an angle, given by its cosine and sine, less some degrees."""
    return cos * math.cos(math.radians(degrees)) + sin * math.sin(math.radians(degrees))


def _mean_ssim(one: Pixels, other: Pixels) -> float:
    """Mean SSIM of the luminance. Images without a whole window are taken with their edges mirrored."""
    height, width = one.shape[:2]
    edge = _RADIUS if min(height, width) > 2 * _RADIUS else 0
    total = 0.0
    for rows in _bands(one):
        top, bottom = max(rows.start, edge), min(rows.stop, height - edge)
        if top >= bottom:
            continue
        first = max(top - _RADIUS, 0)
        seen = slice(first, bottom + _RADIUS)
        similarity = _ssim(_luminance(one[seen]), _luminance(other[seen]))
        total += float(similarity[top - first : bottom - first, edge : width - edge].sum(dtype=np.float64))
    return total / ((height - 2 * edge) * (width - 2 * edge))


def _luminance(pixels: Pixels) -> Floats:
    return _weighted(np.moveaxis(pixels, -1, 0), _LUMINANCE)


def _ssim(one: Floats, other: Floats) -> Floats:
    """SSIM of each pixel of two pictures (height, width) of values from 0 to 255."""
    # Variances do not mind a shift; the squares of smaller numbers lose less to rounding.
    one, other = one - 128, other - 128
    mean_1, mean_2 = _blurred(one), _blurred(other)
    variances = _blurred(one * one + other * other) - (mean_1 * mean_1 + mean_2 * mean_2)
    covariance = _blurred(one * other) - mean_1 * mean_2
    mean_1, mean_2 = mean_1 + 128, mean_2 + 128
    return (
        (2 * mean_1 * mean_2 + _C1)
        * (2 * covariance + _C2)
        / ((mean_1 * mean_1 + mean_2 * mean_2 + _C1) * (variances + _C2))
    )


def _blurred(values: Floats) -> Floats:
    return ndimage.gaussian_filter(values, _SIGMA, radius=_RADIUS)


def _by_channel(pixels: Pixels) -> Pixels:
    """Pixels (height, width, 3) as (3, n)."""
    return np.ascontiguousarray(pixels.reshape(-1, 3).T)


def _bands(pixels: Pixels) -> Iterator[slice]:
    """Rows of the image, some at a time."""
    height, width = pixels.shape[:2]
    step = max(1, _BAND_PIXELS // width)
    for top in range(0, height, step):
        yield slice(top, min(top + step, height))


def _at_size_of(modified: Pixels, source: Pixels) -> tuple[str, Pixels | None]:
    """The source at the size of the modified image, and how it came to be; None if that makes no sense."""
    if modified.shape == source.shape:
        return SAME_SIZE, source
    size = modified.shape[1], modified.shape[0]
    if not same_proportions(size, (source.shape[1], source.shape[0])):
        return NOT_COMPARABLE, None
    return RESAMPLED, np.asarray(Image.fromarray(source).resize(size, Image.Resampling.LANCZOS))
