"""Attacks beside each other: the difference between two, and how sure the ranks of a board are.

Estimates of different pairs are taken as independent: their participants and images are others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RANK_REPEATS = 10_000


@dataclass(frozen=True)
class Estimate:
    """A pair's difference (clean minus modified) in points of one scale, as the mixed model gives it."""

    difference: float
    standard_error: float
    degrees_of_freedom: float


@dataclass(frozen=True)
class DifferenceOfTwo:
    """First minus second, in points of the scale."""

    difference: float
    standard_error: float
    degrees_of_freedom: float
    interval: tuple[float, float]  # 95 %
    p_value: float  # two-sided


def compare(first: Estimate, second: Estimate) -> DifferenceOfTwo:
    """Compare two attacks on one model by Welch's t test of their estimates."""
    parts = [(one.standard_error**2, one.degrees_of_freedom) for one in (first, second)]
    variance = sum(part for part, _ in parts)
    degrees = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    difference, error = first.difference - second.difference, float(np.sqrt(variance))
    half = float(stats.t.ppf(0.975, degrees)) * error
    return DifferenceOfTwo(
        difference=difference,
        standard_error=error,
        degrees_of_freedom=degrees,
        interval=(difference - half, difference + half),
        p_value=float(2 * stats.t.sf(abs(difference) / error, degrees)),
    )


def rank_probabilities(
    estimates: Sequence[Estimate], *, repeats: int = RANK_REPEATS, seed: int = 0
) -> NDArray[np.float64]:
    """Probability of each rank of each pair, by parametric bootstrap; shape (pairs, pairs), rows add up to 1.

    Rank 1 is the smallest absolute difference. Each repeat draws every pair's difference from its t distribution. The
    same seed gives the same probabilities.
    """
    if not estimates:
        return np.zeros((0, 0))
    rng = np.random.default_rng(seed)
    degrees, errors, differences = (
        np.array([getattr(one, name) for one in estimates])
        for name in ("degrees_of_freedom", "standard_error", "difference")
    )
    drawn = np.abs(differences + errors * rng.standard_t(degrees, size=(repeats, len(estimates))))
    ranks = drawn.argsort(axis=1).argsort(axis=1)
    pairs = len(estimates)
    counts = np.bincount((ranks + pairs * np.arange(pairs)).ravel(), minlength=pairs * pairs)
    return counts.reshape(pairs, pairs) / repeats


def rank_interval(probabilities: NDArray[np.float64], *, level: float = 0.90) -> list[tuple[int, int]]:
    """The ranks between which each pair lies with probability ``level``, equal tails cut off; ranks from 1."""
    tail = (1 - level) / 2
    below = np.cumsum(probabilities, axis=1)
    return [
        (int(np.searchsorted(row, tail, side="right")) + 1, int(np.searchsorted(row, 1 - tail - 1e-12)) + 1)
        for row in below
    ]
