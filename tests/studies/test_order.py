import itertools
import random
from collections import Counter

import pytest

from studies.order import (
    OrderImpossible,
    PlateChoice,
    draw_instructed_values,
    draw_modified_sides,
    order_plates,
    order_trials,
)

PAPER_IMAGES = range(1, 101)
PAPER_CORRUPTED = [1001, 1002, 1003]
PAPER_INSTRUCTED = [75, -25, 100]


def check_positions(trials):
    return [position for position, trial in enumerate(trials) if trial.kind != "image"]


def assert_sound(trials, images, corrupted, instructed):
    kinds = Counter(trial.kind for trial in trials)
    assert (kinds["image"], kinds["corrupted"], kinds["instructed"]) == (len(images), len(corrupted), len(instructed))
    assert sorted(trial.image_id for trial in trials if trial.kind == "image") == sorted(images)
    assert sorted(trial.stimulus_id for trial in trials if trial.kind == "corrupted") == sorted(corrupted)
    assert sorted(trial.instructed_value for trial in trials if trial.kind == "instructed") == sorted(instructed)
    positions = check_positions(trials)
    assert 0 not in positions
    assert len(trials) - 1 not in positions
    assert all(later - earlier > 1 for earlier, later in itertools.pairwise(positions))


def test_checks_are_never_first_last_or_adjacent_in_1000_sequences():
    seen_positions, orders = Counter(), set()
    for seed in range(1000):
        trials = order_trials(PAPER_IMAGES, PAPER_CORRUPTED, PAPER_INSTRUCTED, random.Random(seed))
        assert_sound(trials, PAPER_IMAGES, PAPER_CORRUPTED, PAPER_INSTRUCTED)
        positions = check_positions(trials)
        # One in each sixth of the 99 gaps between images.
        gaps = [position - number - 1 for number, position in enumerate(positions)]
        assert all(99 * number // 6 <= gap < 99 * (number + 1) // 6 for number, gap in enumerate(gaps))
        seen_positions.update(positions)
        orders.add(tuple(trials))
    assert len(orders) == 1000
    assert len(seen_positions) == 99, "there is a gap that never gets a check"


@pytest.mark.parametrize(
    ("images", "corrupted", "instructed"),
    [(1, 0, 0), (2, 1, 0), (2, 0, 1), (3, 1, 1), (4, 2, 1), (7, 3, 3), (10, 0, 0), (0, 0, 0)],
)
def test_small_and_tight_sizes(images, corrupted, instructed):
    for seed in range(50):
        arguments = range(images), range(100, 100 + corrupted), range(-instructed, 0)
        assert_sound(order_trials(*arguments, random.Random(seed)), *arguments)


@pytest.mark.parametrize(("images", "checks"), [(0, 1), (1, 1), (2, 2), (6, 6)])
def test_too_many_checks_are_refused_with_the_number_that_fits(images, checks):
    with pytest.raises(OrderImpossible, match=f"use at most {max(images - 1, 0)}"):
        order_trials(range(images), range(checks), [], random.Random(0))


def test_a_value_of_0_may_be_instructed():
    trials = order_trials([1, 2], [], [0], random.Random(0))
    assert [(trial.kind, trial.instructed_value) for trial in trials] == [
        ("image", None),
        ("instructed", 0),
        ("image", None),
    ]


def test_instructed_values_differ_as_long_as_they_can():
    for seed in range(50):
        assert len(set(draw_instructed_values([-100, -50, 50, 100], 3, random.Random(seed)))) == 3
        assert Counter(draw_instructed_values([-2, 2], 3, random.Random(seed))).most_common()[0][1] == 2
    assert draw_instructed_values([-2, 2], 0, random.Random(0)) == []


KINDS = ["protan", "deutan", "tritan"]
POOL = [PlateChoice(digit, KINDS[digit % 3], digit) for digit in range(10)]
POOL += [PlateChoice(10 + number, kind, None) for number, kind in enumerate(KINDS)]


@pytest.mark.parametrize("count", [4, 5, 10])
def test_plates_have_one_blank_different_digits_and_every_kind(count):
    blank_positions = set()
    for seed in range(200):
        plates = order_plates(POOL, count, random.Random(seed))
        digits = [plate.digit for plate in plates if plate.digit is not None]
        assert (len(plates), len(digits), len(set(digits))) == (count, count - 1, count - 1)
        assert {plate.kind for plate in plates if plate.digit is not None} == set(KINDS)
        blank_positions.add([plate.digit for plate in plates].index(None))
    assert blank_positions == set(range(count))


def test_few_plates():
    assert order_plates(POOL, 1, random.Random(0))[0].digit is not None
    assert sum(plate.digit is None for plate in order_plates(POOL, 2, random.Random(0))) == 1


@pytest.mark.parametrize("pool", [[], POOL[:3], POOL[:10]], ids=["empty", "few", "no blank"])
def test_a_pool_that_is_too_small_is_refused(pool):
    with pytest.raises(OrderImpossible, match="too small"):
        order_plates(pool, 5, random.Random(0))


def test_sides_are_half_left_and_half_right_in_any_order():
    drawn = {tuple(draw_modified_sides(6, random.Random(seed))) for seed in range(300)}
    assert all(sides.count("left") == 3 for sides in drawn)
    assert len(drawn) == 20
    assert {draw_modified_sides(1, random.Random(seed))[0] for seed in range(20)} == {"left", "right"}
