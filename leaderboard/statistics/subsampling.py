"""How many participants would have been enough? Smaller studies drawn from one that was run.

The paper's way: n of the collected participants are drawn again and again, and estimate, interval and verdict settle
as n grows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from leaderboard.statistics.equivalence import Verdict, two_one_sided_tests
from leaderboard.statistics.mixed_model import NotEstimable, fit_mixed_model
from leaderboard.statistics.ratings import Ratings

REPEATS = 50


@dataclass(frozen=True)
class Subsample:
    """What studies of ``participants`` participants said. Shares are from 0 to 1, over the fitted ones."""

    participants: int
    fitted: int  # of the repeats, how many determined the model
    difference: float | None  # mean of the estimates
    spread: float | None  # standard deviation of the estimates
    interval_width: float | None  # mean width of the 1 - 2 alpha intervals
    verdict_shares: dict[Verdict, float]
    cost: Decimal | None


def subsampling_curve(
    ratings: Ratings,
    sizes: Iterable[int],
    *,
    bound: float,
    alpha: float = 0.05,
    repeats: int = REPEATS,
    seed: int = 0,
    pounds_per_participant: Decimal | None = None,
) -> list[Subsample]:
    """Draw ``repeats`` samples of participants, without replacement, for each size from 2 to all of them.

    The same seed gives the same curve. Raises ValueError for a size outside that range.
    """
    rng = np.random.default_rng(seed)
    curve = []
    for size in sizes:
        if not 2 <= size <= ratings.participant_count:
            raise ValueError(f"between 2 and {ratings.participant_count} participants can be drawn, not {size}")
        estimates, widths, verdicts = [], [], []
        for _ in range(repeats):
            drawn = rng.choice(ratings.participant_count, size, replace=False)
            try:
                fit = fit_mixed_model(ratings.of_participants(drawn))
            except NotEstimable:
                continue
            low, high = fit.interval(1 - 2 * alpha)
            estimates.append(fit.difference)
            widths.append(high - low)
            tested = two_one_sided_tests(
                fit.difference, fit.standard_error, fit.degrees_of_freedom, bound=bound, alpha=alpha
            )
            verdicts.append(tested.verdict)
        count = len(estimates)
        curve.append(
            Subsample(
                participants=size,
                fitted=count,
                difference=float(np.mean(estimates)) if count else None,
                spread=float(np.std(estimates, ddof=1)) if count > 1 else None,
                interval_width=float(np.mean(widths)) if count else None,
                verdict_shares={verdict: verdicts.count(verdict) / count for verdict in Verdict} if count else {},
                cost=None if pounds_per_participant is None else pounds_per_participant * size,
            )
        )
    return curve
