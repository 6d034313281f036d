"""Attacks beside each other."""

import numpy as np
import pytest
from scipy import stats

from leaderboard.statistics.comparison import Estimate, compare, rank_interval, rank_probabilities


def test_two_attacks_are_compared_as_by_welch():
    rng = np.random.default_rng(1)
    samples = [rng.normal(mean, sd, size) for mean, sd, size in ((3, 2, 12), (1, 4, 20))]
    estimates = [Estimate(sample.mean(), stats.sem(sample), sample.size - 1) for sample in samples]
    expected = stats.ttest_ind(*samples, equal_var=False)

    result = compare(*estimates)

    assert result.p_value == pytest.approx(expected.pvalue)
    assert result.degrees_of_freedom == pytest.approx(expected.df)
    assert result.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_ranks_of_pairs_that_lie_far_apart_are_certain():
    probabilities = rank_probabilities([Estimate(20, 0.1, 50), Estimate(-1, 0.1, 50), Estimate(10, 0.1, 50)])

    assert probabilities.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert rank_interval(probabilities) == [(3, 3), (1, 1), (2, 2)]


def test_ranks_of_equal_pairs_are_open():
    probabilities = rank_probabilities([Estimate(5, 1, 50), Estimate(-5, 1, 50)], repeats=40_000)

    assert probabilities == pytest.approx(np.full((2, 2), 0.5), abs=0.01)
    assert probabilities.sum(axis=1) == pytest.approx([1, 1])
    assert rank_interval(probabilities) == [(1, 2), (1, 2)]


def test_the_probability_of_one_before_another():
    # |first| is below |second| when first < second, both being far above zero: a normal difference with many degrees.
    probabilities = rank_probabilities([Estimate(10, 1, 1e6), Estimate(11, 1, 1e6)], repeats=100_000, seed=3)

    assert probabilities[0, 0] == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=0.005)


def test_an_empty_board():
    assert rank_probabilities([]).shape == (0, 0)
    assert rank_interval(rank_probabilities([])) == []
