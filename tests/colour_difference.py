"""Colours as people see them, for the tests of plates and of modified pictures."""

import numpy as np
from PIL import Image
from skimage.color import deltaE_ciede2000, rgb2lab


def lab(pixels):
    """CIE L*a*b* (D65) of 8-bit sRGB values, any shape (..., 3)."""
    return rgb2lab(np.asarray(pixels) / 255)


def differences(one: Image.Image, other: Image.Image):
    """CIEDE2000 of each pixel of two pictures of the same size, shape (height, width). About 2 is just visible."""
    return deltaE_ciede2000(lab(one), lab(other))
