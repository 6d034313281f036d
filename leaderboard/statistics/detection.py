"""How well people tell modified from clean images: shares of right answers, AUC, d' and criterion.

Values are oriented "higher = more certain that the image is modified"; the scale's middle counts as undecided.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leaderboard.statistics.ratings import Ratings

BOOTSTRAP_REPEATS = 2000
# Numbers held at a time while participants are drawn anew (about 160 MB).
NUMBERS_AT_A_TIME = 20_000_000


@dataclass(frozen=True)
class Detection:
    """Shares are from 0 to 1. What needs both kinds of image is None where one is missing."""

    accuracy_modified: float | None  # share of answers on the "modified" side; the middle counts half
    accuracy_clean: float | None
    mean_confidence: float | None  # mean distance from the scale's middle, in points
    d_prime: float | None
    criterion: float | None  # positive: people rather say "clean"
    auc: float | None  # P(a modified image is rated higher than a clean one), ties half


def describe_detection(ratings: Ratings, *, middle: float = 0.0) -> Detection:
    """Describe n >= 0 ratings. d' and criterion use the log-linear correction (Hautus 1995, Behav. Res. Methods 27).

    ``middle`` is the scale's middle in points.
    """
    says_modified = np.where(ratings.values == middle, 0.5, ratings.values > middle)
    on_modified, on_clean = says_modified[ratings.is_modified], says_modified[~ratings.is_modified]
    d_prime = criterion = None
    if on_modified.size and on_clean.size:
        hits, false_alarms = (
            float(stats.norm.ppf((answers.sum() + 0.5) / (answers.size + 1))) for answers in (on_modified, on_clean)
        )
        d_prime, criterion = hits - false_alarms, -(hits + false_alarms) / 2
    return Detection(
        accuracy_modified=float(on_modified.mean()) if on_modified.size else None,
        accuracy_clean=float(1 - on_clean.mean()) if on_clean.size else None,
        mean_confidence=float(np.abs(ratings.values - middle).mean()) if ratings.values.size else None,
        d_prime=d_prime,
        criterion=criterion,
        auc=_area(ratings) if on_modified.size and on_clean.size else None,
    )


def auc_interval(
    ratings: Ratings, *, level: float = 0.95, repeats: int = BOOTSTRAP_REPEATS, seed: int = 0
) -> tuple[float, float] | None:
    """Percentile interval of the AUC when participants are drawn anew with replacement.

    None with fewer than two participants, or where a kind is missing. The same seed gives the same interval.
    """
    counts = _counts_per_participant(ratings)
    kinds, participants, values = counts.shape
    if participants < 2 or not all(counts[kind].any() for kind in range(kinds)):
        return None
    rng = np.random.default_rng(seed)
    at_a_time = max(1, NUMBERS_AT_A_TIME // (kinds * values + participants))
    found: list[float] = []
    for done in range(0, repeats, at_a_time):
        size = min(at_a_time, repeats - done)
        drawn = rng.multinomial(participants, np.full(participants, 1 / participants), size=size).astype(float)
        resampled = drawn @ counts  # (2, repeats, values)
        has_both = resampled.any(axis=2).all(axis=0)
        found += list(_areas(resampled[:, has_both]))
    if not found:
        return None
    lower, upper = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _counts_per_participant(ratings: Ratings) -> NDArray[np.float64]:
    """How often each participant gave each value: (2, participants, distinct values); modified first."""
    values, codes = np.unique(ratings.values, return_inverse=True)
    counts = np.zeros((2, ratings.participant_count, values.size))
    np.add.at(counts, ((~ratings.is_modified).astype(int), ratings.participants, codes), 1.0)
    return counts


def _areas(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """AUC from counts per value in ascending order: shape (2, repeats, values) in, (repeats,) out."""
    modified, clean = counts
    below = np.cumsum(clean, axis=-1) - clean
    pairs = modified.sum(axis=-1) * clean.sum(axis=-1)
    return np.asarray((modified * (below + clean / 2)).sum(axis=-1) / pairs)


def _area(ratings: Ratings) -> float:
    """The same from the ratings' ranks (Mann and Whitney)."""
    ranks = stats.rankdata(ratings.values)[ratings.is_modified]
    clean = ratings.values.size - ranks.size
    return float((ranks.sum() - ranks.size * (ranks.size + 1) / 2) / (ranks.size * clean))
