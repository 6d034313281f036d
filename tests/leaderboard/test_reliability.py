"""Agreement against published implementations."""

import warnings

import numpy as np
import pytest

from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.reliability import (
    describe_reliability,
    icc_single,
    krippendorff_alpha,
    spearman_brown,
    split_half,
    within_kind,
)
from tests.leaderboard.published_ratings import published, simulated


def complete(images=30, raters=8, seed=0):
    """A complete matrix of ratings, images x raters, and the same as Ratings."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(0, 2, (images, 1)) + rng.normal(0, 1, (1, raters)) + rng.normal(0, 1.5, (images, raters))
    image, rater = np.indices(matrix.shape)
    return matrix, Ratings.from_columns(matrix.ravel(), np.ones(matrix.size, dtype=bool), rater.ravel(), image.ravel())


def test_icc_is_that_of_pingouin_on_complete_data():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pandas
        import pingouin

        matrix, ratings = complete()
        image, rater = np.indices(matrix.shape)
        frame = pandas.DataFrame({"image": image.ravel(), "rater": rater.ravel(), "rating": matrix.ravel()})
        table = pingouin.intraclass_corr(frame, targets="image", raters="rater", ratings="rating")
    values = dict(zip(table["Type"], table["ICC"], strict=True))
    single = next(value for name, value in values.items() if name in ("ICC2", "ICC(A,1)"))
    mean = next(value for name, value in values.items() if name in ("ICC2k", "ICC(A,k)"))

    reliability = describe_reliability(ratings)

    assert reliability.icc_single == pytest.approx(single, abs=1e-3)
    assert reliability.icc_mean == pytest.approx(mean, abs=1e-3)
    assert reliability.raters_per_image == 8


def test_alpha_is_that_of_krippendorff_with_gaps():
    import krippendorff

    matrix, _ = complete(seed=1)
    rng = np.random.default_rng(2)
    there = rng.random(matrix.shape) < 0.4
    image, rater = np.indices(matrix.shape)
    ratings = Ratings.from_columns(matrix[there], np.ones(there.sum(), dtype=bool), rater[there], image[there])

    expected = krippendorff.alpha(np.where(there, matrix, np.nan).T, level_of_measurement="interval")

    assert krippendorff_alpha(ratings) == pytest.approx(expected)


def test_alpha_is_that_of_krippendorff_on_published_ratings(shared_data):
    import krippendorff

    ratings = within_kind(published(shared_data, "aca"), is_modified=False)
    matrix = np.full((ratings.participant_count, ratings.image_count), np.nan)
    matrix[ratings.participants, ratings.images] = ratings.values

    assert krippendorff_alpha(ratings) == pytest.approx(krippendorff.alpha(matrix, level_of_measurement="interval"))


def test_incomplete_data_recover_the_true_value():
    ratings = within_kind(
        simulated(
            participants=300,
            images_per_kind=200,
            rated_per_kind=40,
            seed=3,
            participant_sd=(10, 5),
            image_sd=(15, 1),
            residual_sd=20,
        ),
        is_modified=True,
    )

    assert icc_single(ratings) == pytest.approx(15**2 / (15**2 + 10**2 + 20**2), abs=0.04)


def test_split_halves_agree_with_spearman_and_brown():
    _, ratings = complete(images=200, raters=20, seed=4)

    assert split_half(ratings, seed=1) == pytest.approx(describe_reliability(ratings).icc_mean, abs=0.02)
    assert split_half(ratings, seed=1) == split_half(ratings, seed=1)


@pytest.mark.parametrize(("reliability", "factor", "expected"), [(0.5, 2, 2 / 3), (0.2, 1, 0.2), (-1.0, 2, None)])
def test_spearman_brown(reliability, factor, expected):
    assert spearman_brown(reliability, factor) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    "columns",
    [
        ([], [], [], []),
        ([5], [True], [1], [1]),
        ([1, 2, 3], [True] * 3, [1, 1, 1], [1, 2, 3]),
        ([1, 2, 3], [True] * 3, [1, 2, 3], [1, 1, 1]),
        ([7, 7, 7, 7], [True] * 4, [1, 1, 2, 2], [1, 2, 1, 2]),
    ],
    ids=["nothing", "one rating", "one participant", "one image", "all equal"],
)
def test_what_cannot_be_said_is_none_and_never_nan(columns):
    reliability = describe_reliability(Ratings.from_columns(*columns))

    assert reliability.icc_single is None
    assert reliability.split_half is None
    for value in (reliability.krippendorff_alpha, reliability.icc_mean):
        assert value is None or np.isfinite(value)
