import pytest

from studies import checks
from studies.scale import Scale

SLIDER = Scale(-100, 100, higher_is_modified=True)
LIKERT = Scale(-2, 2, higher_is_modified=False)
ONE_TO_SEVEN = Scale(1, 7, higher_is_modified=True)
ONE_TO_SIX = Scale(1, 6, higher_is_modified=False)


@pytest.mark.parametrize(
    ("digit", "answer", "is_right"),
    [(0, "0", True), (7, "7", True), (7, "1", False), (None, "none", True), (None, "0", False), (0, "none", False)],
)
def test_plates(digit, answer, is_right):
    assert checks.plate_is_right(digit, answer) is is_right


def test_counts():
    assert checks.count_right_plates([(0, "0"), (None, "none"), (3, "8")]) == 2
    assert checks.count_right_pairs([("left", "left"), ("right", "left"), ("right", "right")]) == 2


@pytest.mark.parametrize(
    ("scale", "value", "passes"),
    [
        (SLIDER, 1, True),
        (SLIDER, 100, True),
        (SLIDER, 0, False),
        (SLIDER, -1, False),
        (LIKERT, -1, True),
        (LIKERT, -2, True),
        (LIKERT, 0, False),
        (LIKERT, 2, False),
        (ONE_TO_SEVEN, 4, False),
        (ONE_TO_SEVEN, 5, True),
        (ONE_TO_SIX, 3, True),
        (ONE_TO_SIX, 4, False),
    ],
)
def test_a_corrupted_image_passes_strictly_on_the_modified_side(scale, value, passes):
    assert checks.corrupted_check_passed(value, scale) is passes


@pytest.mark.parametrize(
    ("value", "instructed", "tolerance", "passes"),
    [
        (75, 75, 0, True),
        (76, 75, 0, False),
        (85, 75, 10, True),
        (64, 75, 10, False),
        (-100, -100, 0, True),
        (0, 0, 0, True),
    ],
)
def test_instructed_responses(value, instructed, tolerance, passes):
    assert checks.instructed_check_passed(value, instructed, tolerance) is passes


@pytest.mark.parametrize(
    ("scale", "value", "oriented"),
    [(SLIDER, -37, -37), (LIKERT, 2, -2), (LIKERT, 0, 0), (ONE_TO_SEVEN, 2, 2), (ONE_TO_SIX, 1, 6), (ONE_TO_SIX, 6, 1)],
)
def test_orientation_mirrors_about_the_middle(scale, value, oriented):
    assert scale.oriented(value) == oriented


def test_values_that_may_be_asked_for():
    assert SLIDER.instructable_values() == [-100, -75, -50, -25, 25, 50, 75, 100]
    assert Scale(0, 100, True).instructable_values() == [0, 25, 75, 100]
    assert LIKERT.instructable_values() == [-2, 2]
    assert ONE_TO_SEVEN.instructable_values() == [1, 7]


@pytest.mark.parametrize(("value", "inside"), [(-100, True), (0, True), (100, True), (101, False), (-101, False)])
def test_bounds_belong_to_the_scale(value, inside):
    assert SLIDER.contains(value) is inside
