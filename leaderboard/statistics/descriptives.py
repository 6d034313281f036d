"""Counts, means and standard deviations of the ratings of one (attack, target model) pair.

Pure: arrays in, numbers out. What is not defined (the mean of no ratings, the standard deviation of one) is None,
never NaN, so that it can be stored and shown as what it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.statistics.ratings import Ratings


@dataclass(frozen=True)
class KindSummary:
    """The ratings of one kind of image, modified or clean; ``mean`` and ``sd`` in points of the scale."""

    ratings: int
    images: int
    mean: float | None
    sd: float | None  # with n - 1 in the denominator


@dataclass(frozen=True)
class Descriptives:
    """The ratings of one pair; ``difference`` is the mean of modified minus the mean of clean images."""

    ratings: int
    participants: int
    modified: KindSummary
    clean: KindSummary
    difference: float | None


def describe(ratings: Ratings) -> Descriptives:
    """Describe n >= 0 ratings. ``difference`` has the direction of the scale that they are on."""
    modified, clean = (_summarise(ratings, ratings.is_modified == of_kind) for of_kind in (True, False))
    difference = None if modified.mean is None or clean.mean is None else modified.mean - clean.mean
    return Descriptives(
        ratings=ratings.values.size,
        participants=ratings.participant_count,
        modified=modified,
        clean=clean,
        difference=difference,
    )


def _summarise(ratings: Ratings, chosen: NDArray[np.bool_]) -> KindSummary:
    values = ratings.values[chosen]
    return KindSummary(
        ratings=values.size,
        images=np.unique(ratings.images[chosen]).size,
        mean=float(values.mean()) if values.size else None,
        sd=float(values.std(ddof=1)) if values.size > 1 else None,
    )
