import csv
import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.statistics import descriptives
from leaderboard.statistics.descriptives import Descriptives, KindSummary
from leaderboard.statistics.ratings import Ratings

M, C = True, False


def describe(values, is_modified, participants, images) -> Descriptives:
    return descriptives.describe(Ratings.from_columns(values, is_modified, participants, images))


def test_hand_computed():
    result = describe(
        values=[100, 0, -40, -100, 0],
        is_modified=[M, M, M, C, C],
        participants=[1, 1, 2, 1, 2],
        images=[10, 11, 10, 10, 12],
    )
    # Modified: mean 60/3 = 20, squared deviations 80² + 20² + 60² = 10400, SD sqrt(10400/2).
    # Clean: mean -50, squared deviations 50² + 50² = 5000, SD sqrt(5000/1). Image 10 exists as both kinds.
    assert result == Descriptives(
        ratings=5,
        participants=2,
        modified=KindSummary(ratings=3, images=2, mean=20.0, sd=pytest.approx(math.sqrt(5200))),
        clean=KindSummary(ratings=2, images=2, mean=-50.0, sd=pytest.approx(math.sqrt(5000))),
        difference=70.0,
    )


def test_zero_is_a_rating_and_a_difference():
    result = describe([0, 0, 0, 0], [M, M, C, C], [1, 2, 1, 2], [1, 1, 2, 2])
    assert (result.modified.mean, result.modified.sd, result.difference) == (0.0, 0.0, 0.0)
    assert result.ratings == 4


@pytest.mark.parametrize(
    ("values", "is_modified", "modified", "clean"),
    [
        ([], [], (None, None), (None, None)),
        ([5], [M], (5.0, None), (None, None)),
        ([5], [C], (None, None), (5.0, None)),
        ([5, 7], [M, M], (6.0, pytest.approx(math.sqrt(2))), (None, None)),
    ],
    ids=["no ratings", "one modified", "one clean", "modified only"],
)
def test_what_is_not_defined_is_none(values, is_modified, modified, clean):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = describe(values, is_modified, [1] * len(values), list(range(len(values))))
    assert (result.modified.mean, result.modified.sd) == modified
    assert (result.clean.mean, result.clean.sd) == clean
    assert result.difference is None


def test_one_rating_of_each_kind_has_a_difference_but_no_sd():
    result = describe([3, -1], [M, C], [1, 1], [1, 2])
    assert (result.difference, result.modified.sd, result.clean.sd) == (4.0, None, None)


def test_refuses_arrays_that_do_not_belong_together():
    with pytest.raises(ValueError, match=r"one length, not \(2,\), \(1,\), \(2,\), \(2,\)"):
        describe([1, 2], [M], [1, 1], [1, 2])
    with pytest.raises(ValueError, match="one-dimensional"):
        describe([[1]], [[M]], [[1]], [[1]])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_refuses_values_that_are_no_numbers(value):
    with pytest.raises(ValueError, match="finite"):
        describe([1, value], [M, C], [1, 1], [1, 2])


ratings = st.lists(
    st.tuples(st.integers(-100, 100), st.booleans(), st.integers(1, 5), st.integers(1, 9)), min_size=0, max_size=40
)


def described(rows):
    return describe(*([row[column] for row in rows] for column in range(4)))


def close(one, other):
    return one == other or (None not in (one, other) and math.isclose(one, other, abs_tol=1e-9))


@given(ratings, st.integers(-1000, 1000))
def test_a_shift_moves_the_means_and_nothing_else(rows, shift):
    before = described(rows)
    after = described([(value + shift, *rest) for value, *rest in rows])
    for kind in ("modified", "clean"):
        one, other = getattr(before, kind), getattr(after, kind)
        assert close(None if one.mean is None else one.mean + shift, other.mean)
        assert close(one.sd, other.sd)
    assert close(before.difference, after.difference)


@given(ratings)
def test_mirroring_the_scale_flips_the_signs(rows):
    before, after = described(rows), described([(-value, *rest) for value, *rest in rows])
    assert close(None if before.difference is None else -before.difference, after.difference)
    assert close(before.clean.sd, after.clean.sd)
    assert (before.ratings, before.participants) == (after.ratings, after.participants)


@given(ratings.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_of_rows_does_not_matter(both):
    one, other = (described(rows) for rows in both)
    assert close(one.difference, other.difference)
    assert close(one.modified.sd, other.modified.sd)
    assert (one.ratings, one.participants, one.modified.images) == (
        other.ratings,
        other.participants,
        other.modified.images,
    )


@pytest.mark.parametrize("name", ["aca", "cadv", "semanticadv"])
def test_published_data_sets(shared_data, name):
    expected = json.loads((shared_data / "ratings" / "expected_lme4.json").read_text())[name]
    with (shared_data / "ratings" / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    result = describe(
        values=[int(row["rating"]) for row in rows],
        is_modified=[row["image_type"] == "modified" for row in rows],
        participants=np.array([row["pid"] for row in rows]),
        images=np.array([row["image_id"] for row in rows]),
    )
    assert (result.ratings, result.participants) == (expected["ratings"], expected["participants"])
    # Distinct by kind and id: one id may name a clean and a modified image.
    assert result.modified.images + result.clean.images == expected["images"]
    assert result.modified.mean == pytest.approx(expected["mean_modified"], rel=1e-12)
    assert result.modified.sd == pytest.approx(expected["sd_modified"], rel=1e-12)
    assert result.clean.mean == pytest.approx(expected["mean_real"], rel=1e-12)
    assert result.clean.sd == pytest.approx(expected["sd_real"], rel=1e-12)
    assert result.difference == pytest.approx(expected["mean_modified"] - expected["mean_real"], rel=1e-12)
