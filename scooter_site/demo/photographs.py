"""The demonstration's photographs: crops of the public-domain and CC0 colour photographs that scikit-image ships.

Licences are those named in the documentation of ``skimage.data``. Pictures without a clear one are left out (among
them the stereo motorcycle), and so are grey ones: recolouring would show at once.
"""

import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

CROP_SIDE = 224  # pixels of a crop, after scaling: what most ImageNet classifiers are given
LEAST_CONTRAST = 20  # standard deviation of the colour channels, 0-255: emptier crops show nothing to judge
LEAST_BRIGHTNESS = 18


@dataclass(frozen=True)
class Photograph:
    """One source picture. ``sides`` are the crops' sides in its own pixels; ``synset`` of the *nearest* class."""

    filename: str
    author: str
    licence: str
    synset: str
    sides: tuple[int, ...]
    most_crops: int

    @property
    def attribution(self) -> str:
        return (
            f"{self.author}, via scikit-image ({self.filename}); crops. The class is only the nearest one in ImageNet."
        )


CC0 = "CC0 1.0"
PUBLIC_DOMAIN = "Public domain"
PHOTOGRAPHS = [
    Photograph("astronaut.png", "Eileen Collins, NASA", PUBLIC_DOMAIN, "n04266014", (512, 256, 170, 113), 36),
    Photograph("chelsea.png", "Stéfan van der Walt", CC0, "n02123045", (300, 150, 100), 26),
    Photograph("coffee.png", "Rachel Michetti", CC0, "n07920052", (400, 200, 133), 28),
    Photograph("rocket.jpg", "SpaceX", PUBLIC_DOMAIN, "n04008634", (427, 213, 142), 14),
    Photograph(
        "hubble_deep_field.jpg", "NASA, ESA (Hubble eXtreme Deep Field)", PUBLIC_DOMAIN, "n03956157", (436, 218), 22
    ),
    Photograph("retina.jpg", "Mikael Häggström", CC0, "n03920288", (706, 352, 235), 24),
]


class PhotographsMissing(Exception):
    """scikit-image is not installed."""


def read(photograph: Photograph) -> Image.Image:
    """The whole picture in RGB, from the installed package; nothing is downloaded."""
    try:
        folder = importlib.resources.files("skimage") / "data"
    except ModuleNotFoundError as error:
        raise PhotographsMissing(
            "The demonstration's photographs come with scikit-image, which is not installed: "
            "pip install --require-hashes -r requirements-demo.txt"
        ) from error
    with (folder / photograph.filename).open("rb") as file:
        return Image.open(file).convert("RGB")


def crops(photograph: Photograph) -> Iterator[Image.Image]:
    """Square crops of CROP_SIDE pixels at several scales. Any two share at most half of the larger one."""
    whole = read(photograph)
    given = 0
    for side in photograph.sides:
        for left, top in grid(whole.size, side):
            crop = whole.crop((left, top, left + side, top + side))
            crop = crop.resize((CROP_SIDE, CROP_SIDE), Image.Resampling.LANCZOS)
            if given < photograph.most_crops and _shows_something(crop):
                given += 1
                yield crop


def grid(size: tuple[int, int], side: int) -> list[tuple[int, int]]:
    """Left upper corners of squares side by side, and of a second grid between them (a quarter of each shared).

    ``size`` is (width, height), ``side`` that of the squares, all in pixels.
    """
    columns, rows = size[0] // side, size[1] // side
    left, top = (size[0] - columns * side) // 2, (size[1] - rows * side) // 2
    first = [(left + side * column, top + side * row) for row in range(rows) for column in range(columns)]
    half = side // 2
    between = [(x + half, y + half) for x, y in first if x + half + side <= size[0] and y + half + side <= size[1]]
    return first + between


def _shows_something(crop: Image.Image) -> bool:
    pixels = np.asarray(crop.resize((64, 64)), np.float32)
    return float(pixels.std(axis=(0, 1)).mean()) >= LEAST_CONTRAST and float(pixels.mean()) >= LEAST_BRIGHTNESS
