"""Where each pair of a board stands: rank, how sure the rank is, and Holm's p value."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.statistics.comparison import Estimate, rank_interval, rank_probabilities
from leaderboard.statistics.equivalence import holm
from leaderboard.statistics.ranking import rank


@dataclass(frozen=True)
class Scored:
    """What is known of a pair with a mixed model. ``p_value`` is that of the two one-sided tests together."""

    estimate: Estimate
    p_value: float
    is_ranked: bool = True  # tested all the same


@dataclass(frozen=True)
class Place:
    """Where a pair stands among others. ``probabilities`` are those of the ranks from 1."""

    holm_p_value: float | None
    rank: int | None
    rank_interval: tuple[int, int] | None  # holds the rank with 90 % probability
    probabilities: tuple[float, ...]


def place_all(pairs: Sequence[Scored | None], *, seed: int = 0) -> list[Place]:
    """Place pairs of one board among each other; None is a pair without a mixed model: not tested, and unranked."""
    adjusted = holm([pair.p_value if pair else None for pair in pairs])
    ranks = rank([pair.estimate.difference if pair and pair.is_ranked else None for pair in pairs])
    probabilities = rank_probabilities([pair.estimate for pair in pairs if pair and pair.is_ranked], seed=seed)
    ranked = zip(probabilities.tolist(), rank_interval(probabilities), strict=True)
    places = []
    for p_value, own_rank in zip(adjusted, ranks, strict=True):
        row, interval = next(ranked) if own_rank is not None else ((), None)
        places.append(Place(p_value, own_rank, interval, tuple(row)))
    return places
