import numpy as np
import pytest
import skimage.data
from PIL import Image

from scooter_site.demo.stand_in_attacks import strong_recolouring, subtle_recolouring
from tests.colour_difference import differences


def photograph(name):
    image = Image.fromarray(getattr(skimage.data, name)())
    image.thumbnail((200, 200))
    return image


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea", "camera", "rocket"])
def test_strong_is_seen_at_once_and_subtle_is_slight(name, seed):
    original = photograph(name)
    strong = differences(original.convert("RGB"), strong_recolouring(original, seed)).mean()
    subtle = differences(original.convert("RGB"), subtle_recolouring(original, seed)).mean()
    assert strong > 12
    assert 1 < subtle < 11
    assert strong > 2.5 * subtle


@pytest.mark.parametrize("attack", [strong_recolouring, subtle_recolouring])
def test_size_mode_light_and_seed(attack):
    original = photograph("coffee")
    modified = attack(original, 1)
    assert modified.mode == "RGB"
    assert modified.size == original.size
    assert modified.tobytes() == attack(original, 1).tobytes()
    assert modified.tobytes() != attack(original, 2).tobytes()
    light = np.asarray(original.convert("L"), float)
    assert np.corrcoef(light.ravel(), np.asarray(modified.convert("L"), float).ravel())[0, 1] > 0.9
