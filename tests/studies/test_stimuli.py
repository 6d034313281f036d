import numpy as np
import pytest
import skimage.data
from PIL import Image
from scipy import ndimage

from studies import stimuli
from studies.models import Modification
from tests.colour_difference import differences

# For each modification: least mean CIEDE2000, and least share of the picture that differs by more than 10 (a
# difference that nobody overlooks).
LEAST_CHANGE = {"colour": (2, 0.08), "filter": (10, 0.7), "pixel": (8, 0.5), "corruption": (18, 0.5)}
modifications = pytest.mark.parametrize("modification", LEAST_CHANGE)


def reduced(image, side=300):
    """As it is looked at: a copy with at most ``side`` pixels a side."""
    copy = image.convert("RGB")
    copy.thumbnail((side, side))
    return copy


def bundled(name):
    return Image.fromarray(getattr(skimage.data, name)())


def flat(colour, size=(120, 80)):
    return Image.new("RGB", size, colour)


def random_noise():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90, 3), np.uint8))


def assert_plainly_changed(original, modified, modification):
    change = differences(reduced(original), reduced(modified))
    mean, share = LEAST_CHANGE[modification]
    assert change.mean() >= mean
    assert (change > 10).mean() >= share


@modifications
@pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea", "camera"])
def test_photographs_are_plainly_changed(name, modification):
    original = bundled(name)
    modified = stimuli.modify(modification, original, seed=4)
    assert modified.mode == "RGB"
    assert modified.size == original.size
    assert_plainly_changed(original, modified, modification)


@modifications
def test_real_dataset_images_are_plainly_changed(shared_data, modification):
    grey = 0
    for seed, file in enumerate(sorted((shared_data / "images" / "imagenet").glob("*.JPEG"))):
        with Image.open(file) as original:
            grey += original.mode == "L"
            if seed % 12 == 0 or original.mode == "L":
                original = reduced(original)
                assert_plainly_changed(original, stimuli.modify(modification, original, seed), modification)
    assert grey >= 3


@modifications
@pytest.mark.parametrize(
    "original",
    [
        pytest.param(flat((128, 128, 128)), id="grey"),
        pytest.param(flat((0, 0, 0)), id="black"),
        pytest.param(flat((255, 255, 255)), id="white"),
        pytest.param(flat((220, 40, 30)), id="red"),
        pytest.param(random_noise(), id="noise"),
        pytest.param(flat((90, 140, 60), size=(3, 300)), id="strip"),
    ],
)
def test_pictures_that_are_no_photographs_are_changed_too(original, modification):
    modified = stimuli.modify(modification, original, seed=1)
    assert modified.size == original.size
    assert differences(original, modified).mean() > 2


@modifications
@pytest.mark.parametrize("side", [16, 32, 1600])
def test_small_and_large_pictures(side, modification):
    original = bundled("coffee").resize((side, side))
    assert_plainly_changed(original, stimuli.modify(modification, original, seed=2), modification)


@modifications
@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_any_mode_becomes_rgb(mode, modification):
    original = bundled("chelsea").resize((90, 60)).convert(mode)
    assert stimuli.modify(modification, original, seed=3).mode == "RGB"


@modifications
def test_same_seed_same_picture_and_the_original_is_left_alone(modification):
    original = bundled("astronaut").resize((128, 128))
    before = original.tobytes()
    first = stimuli.modify(modification, original, seed=5)
    assert original.tobytes() == before
    assert first.tobytes() == stimuli.modify(modification, original, seed=5).tobytes()
    assert len({stimuli.modify(modification, original, seed).tobytes() for seed in range(8)}) > 1


@pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea", "camera"])
def test_recolouring_changes_one_area_and_leaves_the_rest_alone(name):
    original = bundled(name).convert("RGB")
    changed = differences(original, stimuli.modify("colour", original, seed=4)) > 0
    assert 0.08 < changed.mean() < 0.6
    parts, count = ndimage.label(changed)
    largest = np.bincount(parts.ravel())[1:].max() / changed.sum() if count else 0
    assert largest > 0.9


@pytest.mark.parametrize("look", stimuli.LOOKS)
def test_every_filter_tints_a_grey_picture(look):
    original = bundled("camera").convert("RGB")
    tinted = np.asarray(look.apply(original)).astype(int)
    assert np.ptp(tinted, axis=2).mean() > 20
    assert differences(original, look.apply(original)).mean() > 10


def test_unknown_modification_is_refused():
    with pytest.raises(ValueError, match="colour, filter, pixel, corruption"):
        stimuli.modify("none", flat((1, 2, 3)), 0)


def test_every_modification_of_the_models_can_be_made():
    assert set(stimuli.MODIFICATIONS) == set(Modification.values) - {Modification.NONE}
