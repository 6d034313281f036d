"""How far participants agree: intraclass correlations, Krippendorff's alpha, split-half reliability of image means.

Targets are images, raters are participants. Measures over both kinds of image credit people with telling the kinds
apart; those within a kind do not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.statistics.ratings import Ratings

SPLITS = 50


@dataclass(frozen=True)
class Reliability:
    """None is what cannot be computed: no image with two ratings, or no variance at all."""

    icc_single: float | None  # ICC(2,1): of one participant's rating
    icc_mean: float | None  # ICC(2,k): of an image's mean over ``raters_per_image`` participants
    raters_per_image: float | None  # harmonic mean over the images
    krippendorff_alpha: float | None  # interval metric
    split_half: float | None  # correlation of image means between halves of the participants, Spearman-Brown corrected


def describe_reliability(ratings: Ratings, *, splits: int = SPLITS, seed: int = 0) -> Reliability:
    """Describe the agreement over all images of ``ratings``. The same seed gives the same split-half value."""
    single = icc_single(ratings)
    raters = _raters_per_image(ratings)
    return Reliability(
        icc_single=single,
        icc_mean=None if single is None or raters is None else spearman_brown(single, raters),
        raters_per_image=raters,
        krippendorff_alpha=krippendorff_alpha(ratings),
        split_half=split_half(ratings, splits=splits, seed=seed),
    )


def within_kind(ratings: Ratings, *, is_modified: bool) -> Ratings:
    """The ratings of one kind of image alone."""
    chosen = ratings.is_modified == is_modified
    return Ratings.from_columns(
        ratings.values[chosen], ratings.is_modified[chosen], ratings.participants[chosen], ratings.images[chosen]
    )


def spearman_brown(reliability: float, factor: float) -> float | None:
    """Reliability of a test ``factor`` times as long; None where the formula has no value."""
    divisor = 1 + (factor - 1) * reliability
    return factor * reliability / divisor if divisor > 0 else None


def icc_single(ratings: Ratings) -> float | None:
    """ICC(2,1) (Shrout and Fleiss 1979, Psychol. Bull. 86, 420-428), for incomplete designs too.

    Variance components of images, participants and residual by Henderson's first method (1953, Biometrics 9,
    226-252): on complete data they are those of the analysis of variance. A negative estimate is taken as it is, so
    that the value may be negative, as in the complete case.
    """
    values = ratings.values
    if values.size < 3 or ratings.image_count < 2 or ratings.participant_count < 2:
        return None
    values = values - values.mean()
    size = values.size
    cells, cell_counts = np.unique(
        np.stack([ratings.images, ratings.participants]), axis=1, return_counts=True
    )  # an image rated twice by one participant is two ratings of one cell
    per_image = np.bincount(ratings.images).astype(float)
    per_participant = np.bincount(ratings.participants).astype(float)
    of_images = (np.bincount(ratings.images, values) ** 2 / per_image).sum()
    of_participants = (np.bincount(ratings.participants, values) ** 2 / per_participant).sum()
    total, mean = float(values @ values), float(values.sum()) ** 2 / size
    squared = cell_counts.astype(float) ** 2
    # Expected values: rows are total, images, participants, mean; columns images, participants, residual.
    images_in_participants = float((squared / per_participant[cells[1]]).sum())
    participants_in_images = float((squared / per_image[cells[0]]).sum())
    images_in_mean, participants_in_mean = (float((counts**2).sum()) / size for counts in (per_image, per_participant))
    expected = np.array(
        [
            [size, size, size],
            [size, participants_in_images, per_image.size],
            [images_in_participants, size, per_participant.size],
            [images_in_mean, participants_in_mean, 1.0],
        ]
    )
    observed = np.array([total, of_images, of_participants, mean])
    # Differences of the four quadratic forms no longer hold the mean.
    system = np.stack(
        [expected[1] - expected[3], expected[2] - expected[3], expected[0] - expected[1] - expected[2] + expected[3]]
    )
    right = np.array(
        [observed[1] - observed[3], observed[2] - observed[3], observed[0] - observed[1] - observed[2] + observed[3]]
    )
    if abs(np.linalg.det(system / size)) < 1e-12:
        return None
    image, participant, residual = np.linalg.solve(system, right)
    whole = image + participant + residual
    return float(image / whole) if whole > 0 else None


def krippendorff_alpha(ratings: Ratings) -> float | None:
    """Krippendorff's alpha, interval metric (Hayes and Krippendorff 2007), over images rated twice or more.

    None without such an image, or if all their ratings are equal.
    """
    counts = np.bincount(ratings.images)
    pairable = counts[ratings.images] > 1
    values = ratings.values[pairable]
    if not values.size or np.ptp(values) == 0:
        return None
    values = values - values.mean()
    _, images = np.unique(ratings.images[pairable], return_inverse=True)
    per_image = np.bincount(images).astype(float)
    sums, squares = np.bincount(images, values), np.bincount(images, values**2)
    size = values.size
    observed = (2 * (per_image * squares - sums**2) / (per_image - 1)).sum() / size
    expected = 2 * (size * (values @ values) - values.sum() ** 2) / (size * (size - 1))
    return float(1 - observed / expected)


def split_half(ratings: Ratings, *, splits: int = SPLITS, seed: int = 0) -> float | None:
    """Mean correlation of image means between random halves of the participants, corrected to full length.

    Images count that both halves have rated. None if there are fewer than three of them, or no variance.
    """
    rng = np.random.default_rng(seed)
    correlations = []
    for _ in range(splits):
        in_first = rng.permutation(ratings.participant_count) < ratings.participant_count // 2
        means = [_image_means(ratings, in_first[ratings.participants] == half) for half in (True, False)]
        both = np.isfinite(means[0]) & np.isfinite(means[1])
        first, second = means[0][both], means[1][both]
        if first.size > 2 and np.ptp(first) > 0 and np.ptp(second) > 0:
            correlations.append(float(np.corrcoef(first, second)[0, 1]))
    return spearman_brown(float(np.mean(correlations)), 2) if correlations else None


def _image_means(ratings: Ratings, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean of the chosen ratings of each image; NaN, inside this module only, where there is none."""
    counts = np.bincount(ratings.images[chosen], minlength=ratings.image_count)
    sums = np.bincount(ratings.images[chosen], ratings.values[chosen], minlength=ratings.image_count)
    return np.divide(sums, counts, out=np.full(ratings.image_count, np.nan), where=counts > 0)


def _raters_per_image(ratings: Ratings) -> float | None:
    if not ratings.values.size:
        return None
    return float(1 / np.mean(1 / np.bincount(ratings.images)))
