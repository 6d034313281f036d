"""Shares of right answers, AUC with its interval, d' and criterion."""

import numpy as np
import pytest
from scipy import stats

from leaderboard.statistics.detection import auc_interval, describe_detection
from leaderboard.statistics.ratings import Ratings
from tests.leaderboard.published_ratings import simulated

NOBODY = Ratings.from_columns([], [], [], [])


def test_values_by_hand():
    ratings = Ratings.from_columns([50, 0, -10, -80, 20, 0], [1, 1, 1, 0, 0, 0], [1, 1, 2, 1, 2, 2], range(6))

    detection = describe_detection(ratings)

    assert detection.accuracy_modified == 0.5  # right, undecided, wrong
    assert detection.accuracy_clean == 0.5
    assert detection.mean_confidence == pytest.approx(160 / 6)
    # Pairs (modified, clean): 50 beats all three; 0 beats -80, ties 0, loses to 20; -10 beats -80 only.
    assert detection.auc == pytest.approx((3 + 1.5 + 1) / 9)
    hits = false_alarms = stats.norm.ppf((1.5 + 0.5) / 4)
    assert detection.d_prime == pytest.approx(hits - false_alarms)
    assert detection.criterion == pytest.approx(-hits)


def test_the_middle_of_a_scale_that_is_not_around_zero():
    ratings = Ratings.from_columns([5, 3, 1, 3], [1, 1, 0, 0], [1, 1, 1, 1], range(4))

    assert describe_detection(ratings, middle=3).accuracy_modified == 0.75
    assert describe_detection(ratings, middle=3).accuracy_clean == 0.75


def test_auc_is_that_of_mann_and_whitney():
    ratings = simulated(participants=20, images_per_kind=40, rated_per_kind=20, seed=4)
    modified, clean = (ratings.values[ratings.is_modified == kind] for kind in (True, False))

    expected = stats.mannwhitneyu(modified, clean).statistic / (modified.size * clean.size)

    assert describe_detection(ratings).auc == pytest.approx(expected)


class TestInterval:
    def test_it_is_that_of_drawing_whole_participants(self):
        ratings = simulated(participants=15, images_per_kind=20, rated_per_kind=10, seed=5)
        rng = np.random.default_rng(1)
        drawn = []
        for _ in range(2000):
            codes = rng.integers(0, 15, 15)
            rows = np.concatenate([np.flatnonzero(ratings.participants == code) for code in codes])
            again = Ratings.from_columns(ratings.values[rows], ratings.is_modified[rows], rows, rows)
            drawn.append(describe_detection(again).auc)

        low, high = auc_interval(ratings, level=0.9, repeats=4000, seed=2)

        assert (low, high) == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=0.015)

    def test_the_seed_decides(self):
        ratings = simulated(participants=10, images_per_kind=10, rated_per_kind=5, seed=6)

        assert auc_interval(ratings, seed=1) == auc_interval(ratings, seed=1) != auc_interval(ratings, seed=2)

    def test_one_participant_has_none(self):
        assert auc_interval(Ratings.from_columns([1, 2], [1, 0], [1, 1], [1, 2])) is None


@pytest.mark.parametrize(
    ("ratings", "auc"),
    [(NOBODY, None), (Ratings.from_columns([1, 2], [1, 1], [1, 2], [1, 2]), None)],
)
def test_what_is_missing_is_none(ratings, auc):
    detection = describe_detection(ratings)

    assert (detection.auc, detection.d_prime, detection.accuracy_clean) == (auc, None, None)
    assert auc_interval(ratings) is None
