"""Does the answer hang on the mixed model? The same question asked in ways that assume less.

- a paired t test of the participants' own mean differences, as two one-sided tests;
- a bootstrap of the model's difference that draws participants anew;
- a test that uses the order of the answers only, for scales whose steps may not be equal;
- for modified images whose own source was rated too, the difference within each such couple of images.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leaderboard.statistics.equivalence import Equivalence, two_one_sided_tests
from leaderboard.statistics.mixed_model import MixedModel, NotEstimable, fit_mixed_model
from leaderboard.statistics.ratings import Ratings

BOOTSTRAP_REPEATS = 200


@dataclass(frozen=True)
class MeanDifference:
    """A mean of differences (clean minus modified, in points) with its t distribution; ``count`` is how many."""

    count: int
    difference: float
    standard_error: float
    degrees_of_freedom: float
    equivalence: Equivalence


@dataclass(frozen=True)
class OrdinalCheck:
    """Whether people order the kinds: P(clean rated above modified) within a participant, averaged; 0.5 is none."""

    participants: int
    probability: float
    interval: tuple[float, float]  # 95 %, from the participants' spread
    p_value: float  # two-sided, of 0.5


@dataclass(frozen=True)
class Robustness:
    """None is what these ratings do not allow. ``disagreements`` are sentences; empty: all say the same."""

    participant_means: MeanDifference | None
    ordinal: OrdinalCheck | None
    disagreements: tuple[str, ...]


def check_robustness(
    ratings: Ratings, model: MixedModel | None, equivalence: Equivalence | None, *, bound: float, alpha: float = 0.05
) -> Robustness:
    """Ask again by participant means and by ranks, and compare with the model's answer, if there is one."""
    by_means = participant_means(ratings, bound=bound, alpha=alpha)
    ordinal = ordinal_check(ratings)
    disagreements = []
    if equivalence is not None and by_means is not None and by_means.equivalence.verdict != equivalence.verdict:
        disagreements.append(
            f"The mixed model says {equivalence.verdict}, participants' mean differences say "
            f"{by_means.equivalence.verdict}."
        )
    if model is not None and ordinal is not None:
        low, high = model.interval(0.95)
        by_model = 0 if low <= 0 <= high else int(np.sign(model.difference))
        by_order = 0 if ordinal.p_value >= 0.05 else int(np.sign(ordinal.probability - 0.5))
        if by_model != by_order:
            says = {0: "no difference", 1: "clean images rated higher", -1: "modified images rated higher"}
            disagreements.append(f"The mixed model finds {says[by_model]}, the order of the answers {says[by_order]}.")
    return Robustness(participant_means=by_means, ordinal=ordinal, disagreements=tuple(disagreements))


def participant_means(ratings: Ratings, *, bound: float, alpha: float = 0.05) -> MeanDifference | None:
    """Two one-sided tests of participants' mean differences.

    Paired, over participants who rated both kinds. Where fewer than two did (each rated one kind), Welch's test between
    the two sets of participants' means. None if that is impossible too, or if there is no spread.
    """
    modified, clean = (_means_by(ratings.participants, ratings, of_kind) for of_kind in (True, False))
    paired = (clean - modified)[np.isfinite(clean) & np.isfinite(modified)]
    if paired.size >= 2:
        return _mean_difference(paired, bound, alpha)
    samples = [means[np.isfinite(means)] for means in (clean, modified)]
    if any(sample.size < 2 for sample in samples):
        return None
    parts = [float(sample.var(ddof=1)) / sample.size for sample in samples]
    if sum(parts) <= 0:
        return None
    degrees = sum(parts) ** 2 / sum(part**2 / (sample.size - 1) for part, sample in zip(parts, samples, strict=True))
    difference, error = float(samples[0].mean() - samples[1].mean()), float(np.sqrt(sum(parts)))
    tested = two_one_sided_tests(difference, error, degrees, bound=bound, alpha=alpha)
    return MeanDifference(samples[0].size + samples[1].size, difference, error, degrees, tested)


def couples(
    ratings: Ratings, source_of: Mapping[int, int], *, bound: float, alpha: float = 0.05
) -> MeanDifference | None:
    """Two one-sided tests of the differences between modified images and their own sources.

    ``source_of`` maps codes of modified images to codes of their clean sources. Means over whoever rated each; the
    differences of several modified images from one source are one difference, their mean. None with fewer than two
    sources of which a modified image was rated too, or without spread.
    """
    counts = np.bincount(ratings.images, minlength=ratings.image_count)
    sums = np.bincount(ratings.images, ratings.values, minlength=ratings.image_count)
    of_source: dict[int, list[float]] = {}
    for image, source in source_of.items():
        if counts[image] and counts[source]:
            of_source.setdefault(source, []).append(sums[source] / counts[source] - sums[image] / counts[image])
    differences = np.array([np.mean(own) for own in of_source.values()])
    return _mean_difference(differences, bound, alpha) if differences.size >= 2 else None


def ordinal_check(ratings: Ratings) -> OrdinalCheck | None:
    """A rank test clustered by participant: each participant's own probability of superiority, averaged.

    (Brunner-Munzel's effect within participants, and a t test over participants.) None with fewer than two
    participants who rated both kinds, or if all of them have the same value.
    """
    ranks = _ranks_within_participants(ratings)
    clean, modified = (
        np.bincount(ratings.participants[chosen], minlength=ratings.participant_count).astype(float)
        for chosen in (~ratings.is_modified, ratings.is_modified)
    )
    rank_sums = np.bincount(ratings.participants, ranks * ~ratings.is_modified, minlength=ratings.participant_count)
    rated_both = (clean > 0) & (modified > 0)
    larger = rank_sums - clean * (clean + 1) / 2
    values = larger[rated_both] / (clean * modified)[rated_both]
    if values.size < 2 or np.ptp(values) == 0:
        return None
    mean, error = float(values.mean()), float(stats.sem(values))
    half = float(stats.t.ppf(0.975, values.size - 1)) * error
    p_value = float(2 * stats.t.sf(abs(mean - 0.5) / error, values.size - 1))
    return OrdinalCheck(values.size, mean, (max(0.0, mean - half), min(1.0, mean + half)), p_value)


def bootstrap_difference(
    ratings: Ratings, *, repeats: int = BOOTSTRAP_REPEATS, level: float = 0.90, seed: int = 0
) -> tuple[float, float] | None:
    """Percentile interval of the model's difference when participants are drawn anew with replacement.

    A participant drawn twice counts as two. Each draw is fitted anew; draws that determine no model are left out, and
    None is the answer if that is more than half of them. The same seed gives the same interval.
    """
    rng = np.random.default_rng(seed)
    rows_of = [np.flatnonzero(ratings.participants == code) for code in range(ratings.participant_count)]
    estimates = []
    for _ in range(repeats):
        drawn = rng.integers(0, ratings.participant_count, ratings.participant_count)
        rows = np.concatenate([rows_of[code] for code in drawn])
        again = np.repeat(np.arange(drawn.size), [rows_of[code].size for code in drawn])
        try:
            sample = Ratings.from_columns(ratings.values[rows], ratings.is_modified[rows], again, ratings.images[rows])
            estimates.append(fit_mixed_model(sample).difference)
        except NotEstimable:
            continue
    if len(estimates) <= repeats / 2:
        return None
    lower, upper = np.quantile(estimates, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _ranks_within_participants(ratings: Ratings) -> NDArray[np.float64]:
    """Rank of each rating among those of its participant, from 1; equal values share the mean of their ranks."""
    order = np.lexsort((ratings.values, ratings.participants))
    participants, values = ratings.participants[order], ratings.values[order]
    begins_run = np.append(True, (np.diff(participants) != 0) | (np.diff(values) != 0))[: order.size]
    starts = np.flatnonzero(begins_run)
    lengths = np.diff(np.append(starts, order.size))
    middle = np.repeat(starts + (lengths + 1) / 2, lengths)
    before = np.append(0, np.cumsum(np.bincount(participants)))[participants]
    ranks = np.empty(order.size)
    ranks[order] = middle - before
    return ranks


def _means_by(codes: NDArray[np.intp], ratings: Ratings, is_modified: bool) -> NDArray[np.float64]:
    """Mean per code over one kind; NaN, inside this module only, where there is none."""
    chosen = ratings.is_modified == is_modified
    size = int(codes.max()) + 1 if codes.size else 0
    counts = np.bincount(codes[chosen], minlength=size)
    sums = np.bincount(codes[chosen], ratings.values[chosen], minlength=size)
    return np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)


def _mean_difference(differences: NDArray[np.float64], bound: float, alpha: float) -> MeanDifference | None:
    error = float(stats.sem(differences))
    if error == 0:
        return None
    mean, degrees = float(differences.mean()), differences.size - 1
    tested = two_one_sided_tests(mean, error, degrees, bound=bound, alpha=alpha)
    return MeanDifference(differences.size, mean, error, degrees, tested)
