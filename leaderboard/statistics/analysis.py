"""Everything about one pair, and about several beside each other: the parts of this package put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from leaderboard.statistics.comparison import DifferenceOfTwo, Estimate, compare
from leaderboard.statistics.descriptives import Descriptives, describe
from leaderboard.statistics.detection import Detection, auc_interval, describe_detection
from leaderboard.statistics.equivalence import Equivalence, default_bound, holm, two_one_sided_tests
from leaderboard.statistics.mixed_model import MixedModel, NotEstimable, fit_mixed_model
from leaderboard.statistics.placing import Place, Scored, place_all
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.reliability import Reliability, describe_reliability, within_kind
from leaderboard.statistics.robustness import (
    MeanDifference,
    Robustness,
    bootstrap_difference,
    check_robustness,
    couples,
)

# Fourth powers of ratings are still numbers.
LEAST_WIDTH, MOST_WIDTH = 1e-30, 1e30


@dataclass(frozen=True)
class RatingScale:
    """The scale that ratings are on. Results keep its points and its direction."""

    minimum: float
    maximum: float
    high_means_modified: bool

    def __post_init__(self) -> None:
        if not self.minimum < self.maximum:
            raise ValueError(f"the scale's minimum must be below its maximum, not {self.minimum} and {self.maximum}")
        if not LEAST_WIDTH <= self.maximum - self.minimum <= MOST_WIDTH:
            raise ValueError(f"the scale must be from {LEAST_WIDTH:g} to {MOST_WIDTH:g} points wide")

    @property
    def middle(self) -> float:
        return (self.minimum + self.maximum) / 2


@dataclass(frozen=True)
class Analysis:
    """What the ratings of one pair say. Differences are clean minus modified, in the scale's points and direction."""

    scale: RatingScale
    descriptives: Descriptives
    repeated_answers: int  # ratings beyond the first of one image by one participant; they are kept
    detection: Detection  # "higher = modified" whatever the scale's direction
    auc_interval: tuple[float, float] | None
    mixed_model: MixedModel | None
    not_estimable: str  # why there is no mixed model; empty if there is one
    equivalence: Equivalence | None
    robustness: Robustness
    couples: MeanDifference | None  # modified images against their own sources; None too if no sources were given
    bootstrap_interval: tuple[float, float] | None
    reliability: Reliability
    reliability_modified: Reliability
    reliability_clean: Reliability


def analyse(
    ratings: Ratings,
    scale: RatingScale,
    *,
    bound: float | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    bootstrap_repeats: int = 0,
    source_of: Mapping[int, int] | None = None,
) -> Analysis:
    """Analyse n >= 0 ratings of one pair, given in the scale's own direction.

    ``bound`` is the equivalence bound in points; by default 5 % of the scale's width. ``bootstrap_repeats`` other than
    0 adds the intervals that draw participants anew (AUC: ten times as many). ``source_of`` maps codes of modified
    images to codes of the clean images that they were made from, where that is known. Never NaN: what the ratings do
    not determine is None. Raises ValueError for a rating outside the scale.
    """
    if ratings.values.size and not (scale.minimum <= ratings.values.min() and ratings.values.max() <= scale.maximum):
        raise ValueError(f"a rating lies outside the scale from {scale.minimum} to {scale.maximum}")
    bound = default_bound(scale.minimum, scale.maximum) if bound is None else bound
    model, equivalence, not_estimable = None, None, ""
    try:
        model = fit_mixed_model(ratings)
        equivalence = two_one_sided_tests(
            model.difference, model.standard_error, model.degrees_of_freedom, bound=bound, alpha=alpha
        )
    except NotEstimable as reason:
        not_estimable = str(reason)
    oriented = ratings if scale.high_means_modified else ratings.mirrored(scale.middle)
    return Analysis(
        scale=scale,
        descriptives=describe(ratings),
        repeated_answers=_repeated_answers(ratings),
        detection=describe_detection(oriented, middle=scale.middle),
        auc_interval=auc_interval(oriented, repeats=10 * bootstrap_repeats, seed=seed) if bootstrap_repeats else None,
        mixed_model=model,
        not_estimable=not_estimable,
        equivalence=equivalence,
        robustness=check_robustness(ratings, model, equivalence, bound=bound, alpha=alpha),
        couples=couples(ratings, source_of or {}, bound=bound, alpha=alpha),
        bootstrap_interval=bootstrap_difference(ratings, repeats=bootstrap_repeats, level=1 - 2 * alpha, seed=seed)
        if bootstrap_repeats and model
        else None,
        reliability=describe_reliability(ratings, seed=seed),
        reliability_modified=describe_reliability(within_kind(ratings, is_modified=True), seed=seed),
        reliability_clean=describe_reliability(within_kind(ratings, is_modified=False), seed=seed),
    )


def place(analyses: Sequence[Analysis], *, seed: int = 0) -> list[Place]:
    """Hold pairs of one board against each other: Holm's adjustment, ranks and how sure they are.

    A pair without a mixed model is not tested and has no rank.
    """
    return place_all(
        [
            Scored(_estimate(one.mixed_model), one.equivalence.p_value)
            if one.mixed_model is not None and one.equivalence is not None
            else None
            for one in analyses
        ],
        seed=seed,
    )


@dataclass(frozen=True)
class Comparison:
    """Two pairs of one board, by their places among the analyses; ``result`` is first minus second."""

    first: int
    second: int
    result: DifferenceOfTwo
    holm_p_value: float  # over all comparisons of the board


def compare_all(analyses: Sequence[Analysis]) -> list[Comparison]:
    """Compare every two analyses that have a mixed model; all must be on one scale."""
    estimates = [
        (number, _estimate(one.mixed_model)) for number, one in enumerate(analyses) if one.mixed_model is not None
    ]
    compared = [(first, second, compare(one, other)) for (first, one), (second, other) in combinations(estimates, 2)]
    adjusted = holm([result.p_value for _, _, result in compared])
    return [
        Comparison(first, second, result, p_value)
        for (first, second, result), p_value in zip(compared, adjusted, strict=True)
        if p_value is not None
    ]


def _estimate(model: MixedModel) -> Estimate:
    return Estimate(model.difference, model.standard_error, model.degrees_of_freedom)


def _repeated_answers(ratings: Ratings) -> int:
    cells = np.unique(ratings.participants * max(1, ratings.image_count) + ratings.images)
    return int(ratings.values.size - cells.size)
