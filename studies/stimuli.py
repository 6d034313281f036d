"""Visible modifications of photographs, for the examples, the comprehension pairs and the attention checks of a study.

Pure: no Django. They stand for what attacks do (recolour an area, lay a filter over the picture, change pixels) and are
strong enough that an attentive person sees them at once; they are no attacks, and no classifier is asked. Every
function takes a picture of any mode and size, leaves it alone and returns a new RGB picture of the same size; the same
generator state gives the same picture.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance
from scipy import ndimage

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

NEUTRAL = 128.0  # Cb and Cr of grey

# Recolouring. Lengths in pixels of the copy that regions are looked for in.
SEGMENTATION_SIDE = 192
CLUSTERS = 6
PLACE_WEIGHT = 8.0  # what half the picture's side counts in clustering, in steps of colour
REGION_SHARE = (0.10, 0.50)  # of the picture; smaller is overlooked, larger reads as a filter
LEAST_CHROMA = 55.0  # of the recoloured region, so that grey areas are visibly coloured too
LEAST_LIGHT = 70.0  # of the recoloured region on average: what is nearly black shows no colour
# Violet, magenta and pink, as angles in the plane of Cb and Cr (degrees): seldom the colour of anything in a
# photograph, so that one can tell which picture of a pair is the modified one. What has one already turns turquoise.
ODD_HUES = (25.0, 52.0, 75.0)
TURQUOISE = -60.0

GRAINS_PER_SIDE = 200  # pixel-level noise: grains along the shorter side, so that it is seen on large pictures as well
BLOCKS_PER_SIDE = 7  # corruption


def modify(modification: str, image: Image.Image, seed: int) -> Image.Image:
    """``image`` changed by "colour", "filter", "pixel" or "corruption"; ValueError for another word."""
    if modification not in MODIFICATIONS:
        raise ValueError(f"unknown modification {modification!r}; known: {', '.join(MODIFICATIONS)}")
    return MODIFICATIONS[modification](image, np.random.default_rng(seed))


def recolour(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Give one coherent region, if possible an object, another hue; its shading stays."""
    picture = image.convert("RGB")
    soft_region = ndimage.gaussian_filter(find_region(picture, rng).astype(np.float32), 1.0)
    mask = Image.fromarray(np.round(soft_region * 255).astype(np.uint8)).resize(picture.size, Image.Resampling.BILINEAR)
    pixels = np.array(picture.convert("YCbCr"))
    light, chroma = pixels[:, :, 0].astype(np.float32), pixels[:, :, 1:] - np.float32(NEUTRAL)
    inside = np.asarray(mask) > 127
    mean = chroma[inside].mean(axis=0)
    hue, strength = float(np.degrees(np.arctan2(mean[1], mean[0]))), float(np.hypot(*mean))
    other_hues = [other for other in ODD_HUES if strength < 8 or hue_difference(other, hue) >= 60]
    new_hue = rng.choice(other_hues or [TURQUOISE])
    turn = np.radians(new_hue - hue)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]], np.float32)
    direction = np.array([np.cos(np.radians(new_hue)), np.sin(np.radians(new_hue))], np.float32)
    new_chroma = chroma @ rotation.T + direction * max(0.0, LEAST_CHROMA - strength)
    pixels[:, :, 1:] = np.clip(np.round(new_chroma + NEUTRAL), 0, 255)
    pixels[:, :, 0] = np.minimum(light + max(0.0, LEAST_LIGHT - float(light[inside].mean())), 255)
    return Image.composite(Image.fromarray(pixels, "YCbCr").convert("RGB"), picture, mask)


def hue_difference(one: float, other: float) -> float:
    """The angle between two hues, 0 to 180 degrees."""
    return abs((one - other + 180) % 360 - 180)


def find_region(picture: Image.Image, rng: np.random.Generator) -> Mask:
    """The region of a small copy of ``picture`` that is best recoloured: a mask of the small copy's shape.

    Pixels are clustered by colour and place; the connected region of the greatest ``merit`` is taken. A picture
    without such a region (one flat colour, or noise) gets an ellipse in its middle.
    """
    small = picture.convert("YCbCr")
    small.thumbnail((SEGMENTATION_SIDE, SEGMENTATION_SIDE))
    pixels = np.asarray(small, np.float32)
    y, x = np.mgrid[-1 : 1 : pixels.shape[0] * 1j, -1 : 1 : pixels.shape[1] * 1j].astype(np.float32)
    for blur in (1.5, 5.0):  # the second for busy pictures, whose regions are torn to shreds without it
        smooth = ndimage.gaussian_filter(pixels, (blur, blur, 0))
        if regions := list(regions_of(smooth, x, y, rng)):
            return max(regions, key=lambda region: merit(region, smooth, x, y))
    return x**2 + y**2 < 0.6**2


def regions_of(pixels: Floats, x: Floats, y: Floats, rng: np.random.Generator) -> Iterator[Mask]:
    """Connected regions of one colour whose size is within REGION_SHARE; YCbCr pixels (h, w, 3) -> masks (h, w)."""
    features = np.dstack(
        [pixels[:, :, 0] * 0.5, (pixels[:, :, 1:] - NEUTRAL) * 1.5, x * PLACE_WEIGHT, y * PLACE_WEIGHT]
    )
    clusters = cluster(features.reshape(-1, 5), rng).reshape(x.shape)
    for number in range(CLUSTERS):
        parts, _ = ndimage.label(ndimage.gaussian_filter((clusters == number).astype(np.float32), 2.0) > 0.5)
        sizes = np.bincount(parts.ravel()) / parts.size
        for part in np.flatnonzero(sizes[1:] >= REGION_SHARE[0]) + 1:
            region = ndimage.binary_fill_holes(parts == part)
            if region.mean() <= REGION_SHARE[1]:
                yield region


def merit(region: Mask, pixels: Floats, x: Floats, y: Floats) -> float:
    """How well a region is suited to be recoloured: large, colourful, central, neither dark nor blown out."""
    light, *chroma = pixels[region].mean(axis=0)
    large = min(region.mean(), 0.25) / 0.25
    colourful = min(float(np.hypot(*(np.array(chroma) - NEUTRAL))) / 30, 1.0)
    central = 1 - float(np.hypot(x[region], y[region]).mean())
    dull = max(0.0, LEAST_LIGHT - light, light - 190) / 25
    return float(2 * large + colourful + 2 * central - dull)


def cluster(features: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """k-means: the number 0..CLUSTERS-1 of each row's cluster; features (n, d) -> (n,)."""
    centres = features[[rng.integers(len(features))]]
    for _ in range(CLUSTERS - 1):  # k-means++: far from the centres there are
        distances = ((features[:, None, :] - centres) ** 2).sum(axis=2).min(axis=1) + 1e-6
        centres = np.vstack([centres, features[rng.choice(len(features), p=distances / distances.sum())]])
    numbers = np.zeros(len(features), np.intp)
    for _ in range(12):
        numbers = ((features[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for number in range(CLUSTERS):
            if (members := numbers == number).any():
                centres[number] = features[members].mean(axis=0)
    return numbers


def apply_filter(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Lay a photo-app look over the whole picture: at random one of the two that change this picture most."""
    picture = image.convert("RGB")
    sample = picture.copy()
    sample.thumbnail((64, 64))

    def change(look: Look) -> float:
        return float(np.abs(np.asarray(look.apply(sample), np.float32) - np.asarray(sample)).mean())

    return sorted(LOOKS, key=change)[-1 - rng.integers(2)].apply(picture)


@dataclass(frozen=True)
class Look:
    """A filter: colour saturation and the tone curves of red, green and blue through evenly spaced points, 0..1."""

    saturation: float
    curves: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]

    def apply(self, picture: Image.Image) -> Image.Image:
        steps = np.linspace(0, 1, 256)
        table = np.concatenate([np.interp(steps, np.linspace(0, 1, len(curve)), curve) for curve in self.curves])
        return ImageEnhance.Color(picture).enhance(self.saturation).point([round(255 * value) for value in table])


FADED_WARM = Look(
    saturation=0.7,
    curves=((0.24, 0.52, 0.78, 0.95, 1.0), (0.12, 0.34, 0.57, 0.77, 0.88), (0.14, 0.22, 0.33, 0.44, 0.52)),
)
FADED_COLD = Look(
    saturation=0.6,
    curves=((0.06, 0.18, 0.34, 0.52, 0.66), (0.16, 0.36, 0.58, 0.78, 0.90), (0.34, 0.56, 0.76, 0.92, 1.0)),
)
# Hard contrast, blue shadows, yellow lights: film developed in the wrong chemicals.
CROSS_PROCESSED = Look(
    saturation=1.7,
    curves=((0.00, 0.10, 0.50, 0.92, 1.0), (0.00, 0.20, 0.58, 0.92, 1.0), (0.26, 0.36, 0.48, 0.58, 0.68)),
)
LOOKS = (FADED_WARM, FADED_COLD, CROSS_PROCESSED)


def pixel_noise(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Change single pixels: coloured noise all over the picture, visible at normal size."""
    picture = image.convert("RGB")
    noise = coloured_noise(picture.size, rng) * 65
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))


def coloured_noise(size: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Noise from -1 to 1 in square grains, shape (height, width, 3); each channel on its own."""
    grain = max(1, round(min(size) / GRAINS_PER_SIDE))
    width, height = size
    grains = rng.uniform(-1, 1, (-(-height // grain), -(-width // grain), 3)).astype(np.float32)
    return grains.repeat(grain, axis=0).repeat(grain, axis=1)[:height, :width]


def corrupt(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Break the picture so that nobody takes it for a photograph: blocks swapped, inverted or turned into noise."""
    picture = np.array(image.convert("RGB"))
    height, width = picture.shape[:2]
    broken = picture.copy()
    noise = np.round(coloured_noise((width, height), rng) * 127.5 + 127.5).astype(np.uint8)
    rows, columns = (np.linspace(0, side, BLOCKS_PER_SIDE + 1).astype(int) for side in (height, width))
    # Equal shares of each kind of damage, in random places.
    damage = rng.permutation(np.arange(BLOCKS_PER_SIDE**2) % 4).reshape(BLOCKS_PER_SIDE, BLOCKS_PER_SIDE)
    for row in range(BLOCKS_PER_SIDE):
        for column in range(BLOCKS_PER_SIDE):
            block = slice(rows[row], rows[row + 1]), slice(columns[column], columns[column + 1])
            if damage[row, column] == 0:
                broken[block] = noise[block]
            elif damage[row, column] == 1:
                broken[block] = 255 - picture[block]
            elif damage[row, column] == 2:
                rolled = np.roll(picture, rng.integers(1, (height, width)), axis=(0, 1))[block]
                broken[block] = np.roll(rolled, 1, axis=2)
    return Image.fromarray(broken)


MODIFICATIONS: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    "colour": recolour,
    "filter": apply_filter,
    "pixel": pixel_noise,
    "corruption": corrupt,
}
