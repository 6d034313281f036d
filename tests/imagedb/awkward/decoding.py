"""What the tests of decoding share."""

import numpy as np
import pytest
from PIL import Image

from imagedb.pixels import UnreadableImage, decode


def array(image: Image.Image) -> np.ndarray:
    return np.asarray(image).astype(int)


def refusal(content: bytes) -> str:
    """Why content is refused."""
    with pytest.raises(UnreadableImage) as caught:
        decode(content)
    return caught.value.reason
