"""Stand-ins for attacks, so that the demo has modified images: a strong and a subtle recolouring.

They are NOT adversarial attacks. No target model is asked, nothing is optimised, and nobody has verified that any model
is misled; the demo marks what it makes as such. They only give people something to see (strong) or to overlook
(subtle), so that the two differ on the leaderboard.
"""

import numpy as np
from PIL import Image

NEUTRAL = 128.0  # Cb and Cr of grey
STRONG = {"turn_degrees": 110.0, "tint_levels": 30.0}
SUBTLE = {"turn_degrees": 8.0, "tint_levels": 5.0}


def strong_recolouring(image: Image.Image, seed: int) -> Image.Image:
    """``image`` in plainly wrong colours: hues turned by up to half a circle, differently across the picture.

    RGB, same size; the same seed gives the same picture.
    """
    return _recolour(image, seed, **STRONG)


def subtle_recolouring(image: Image.Image, seed: int) -> Image.Image:
    """``image`` with a slight drift of colour across the picture that is hard to see without the original.

    RGB, same size; the same seed gives the same picture.
    """
    return _recolour(image, seed, **SUBTLE)


def _recolour(image: Image.Image, seed: int, *, turn_degrees: float, tint_levels: float) -> Image.Image:
    """Turn hues and add a tint (8-bit levels), both varying smoothly across the picture; light stays."""
    rng = np.random.default_rng(seed)
    pixels = np.array(image.convert("RGB").convert("YCbCr"))
    size = image.size
    angle = np.radians(rng.choice([-1, 1]) * turn_degrees * (1 + 0.4 * _smooth_field(size, rng)))
    hue = rng.uniform(0, 2 * np.pi) + 0.8 * _smooth_field(size, rng)
    blue, red = pixels[:, :, 1] - NEUTRAL, pixels[:, :, 2] - NEUTRAL
    turned_blue = np.cos(angle) * blue - np.sin(angle) * red + tint_levels * np.cos(hue)
    turned_red = np.sin(angle) * blue + np.cos(angle) * red + tint_levels * np.sin(hue)
    for channel, chroma in ((1, turned_blue), (2, turned_red)):
        pixels[:, :, channel] = np.clip(np.round(chroma + NEUTRAL), 0, 255)
    return Image.fromarray(pixels, "YCbCr").convert("RGB")


def _smooth_field(size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """A smooth random field from about -1 to 1, shape (height, width)."""
    coarse = Image.fromarray(rng.uniform(-1, 1, (3, 3)).astype(np.float32))
    return np.asarray(coarse.resize(size, Image.Resampling.BICUBIC))
