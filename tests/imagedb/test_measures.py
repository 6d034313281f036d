import pytest

from imagedb.measures import MEASURES, suitable_factor
from imagedb.models import Image
from imagedb.parameters import parameter_lines

BY_NAME = {measure.name: measure for measure in MEASURES}


def test_every_distance_of_an_image_is_explained():
    columns = {field.name for field in Image._meta.get_fields()}
    assert set(BY_NAME) == {"linf", "l2", "changed_share", "ssim", "ciede2000"}
    assert set(BY_NAME) <= columns
    assert all(measure.meaning.endswith(".") for measure in MEASURES)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("linf", 8, "8"),
        ("linf", 0, "0"),
        ("linf", None, "–"),
        ("l2", 4.567, "4.57"),
        ("ssim", 0.98149, "0.981"),
        ("ssim", 1.0, "1.000"),
        ("ciede2000", 0.0, "0.00"),
        ("changed_share", 0.0, "0 %"),
        ("changed_share", 1.0, "100 %"),
        ("changed_share", 0.5, "50.0 %"),
        # What is nearly nothing, or nearly all, is not said to be it.
        ("changed_share", 0.0001, "< 0.1 %"),
        ("changed_share", 0.9999, "> 99.9 %"),
        ("changed_share", None, "–"),
    ],
)
def test_values_as_people_read_them(name, value, text):
    assert BY_NAME[name].text(value) == text


@pytest.mark.parametrize(
    ("typical_change", "factor"),
    [(0.5, 50), (1.2, 50), (1.21, 20), (5.9, 10), (6.1, 5), (12.1, 2), (30.1, 1), (200, 1)],
)
def test_a_change_is_amplified_until_it_is_seen_and_no_further(typical_change, factor):
    width, height = 224, 160
    l2 = typical_change / 255 * (3 * width * height) ** 0.5
    assert suitable_factor(l2, width, height) == factor


def test_a_change_that_was_not_measured_is_amplified_as_usual():
    assert suitable_factor(None, 224, 224) == 10


@pytest.mark.parametrize(
    ("parameters", "lines"),
    [
        ({}, []),
        (None, []),
        ([], []),
        ({"epsilon": 8, "steps": 100}, [("epsilon", "8"), ("steps", "100")]),
        ({"lr": 0.0001, "zero": 0}, [("lr", "0.0001"), ("zero", "0")]),
        ({"early_stop": True, "restart": False}, [("early_stop", "yes"), ("restart", "no")]),
        (
            {"mask": None, "hints": [], "note": "", "more": {}},
            [(name, "–") for name in ("mask", "hints", "note", "more")],
        ),
        (
            {"optimizer": {"name": "Adam", "betas": [0.9, 0.999], "schedule": {"warm_up": 5}}},
            [
                ("optimizer › name", "Adam"),
                ("optimizer › betas", "0.9, 0.999"),
                ("optimizer › schedule › warm_up", "5"),
            ],
        ),
        ({"stages": [{"size": 64, "steps": 10}, {"size": 128}]}, [("stages", "size: 64; steps: 10, size: 128")]),
        ([1, 2], [("value", "1, 2")]),
        ("default", [("value", "default")]),
        (0, [("value", "0")]),
    ],
)
def test_parameters_as_lines(parameters, lines):
    assert parameter_lines(parameters) == lines
