"""The same question asked with fewer assumptions."""

import numpy as np
import pytest
from scipy import stats

from leaderboard.statistics.equivalence import Verdict, two_one_sided_tests
from leaderboard.statistics.mixed_model import fit_mixed_model
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.robustness import (
    bootstrap_difference,
    check_robustness,
    couples,
    ordinal_check,
    participant_means,
)
from tests.leaderboard.published_ratings import published, simulated


def own_differences(ratings):
    return np.array(
        [
            ratings.values[(ratings.participants == code) & ~ratings.is_modified].mean()
            - ratings.values[(ratings.participants == code) & ratings.is_modified].mean()
            for code in range(ratings.participant_count)
        ]
    )


class TestParticipantMeans:
    def test_paired(self):
        ratings = simulated(participants=20, images_per_kind=30, rated_per_kind=10, seed=1)
        expected = stats.ttest_1samp(own_differences(ratings), 10, alternative="less")

        result = participant_means(ratings, bound=10)

        assert result.count == 20
        assert result.difference == pytest.approx(own_differences(ratings).mean())
        assert result.equivalence.p_upper == pytest.approx(expected.pvalue)
        assert result.degrees_of_freedom == 19

    def test_people_who_rated_one_kind_each_are_compared_by_welch(self):
        ratings = Ratings.from_columns([1, 3, 5, 9, 2, 8, 7], [True] * 3 + [False] * 4, [1, 2, 3, 4, 5, 6, 7], range(7))
        expected = stats.ttest_ind([9, 2, 8, 7], [1, 3, 5], equal_var=False)

        result = participant_means(ratings, bound=10)

        assert result.difference / result.standard_error == pytest.approx(expected.statistic)
        assert result.degrees_of_freedom == pytest.approx(expected.df)

    @pytest.mark.parametrize(
        "columns",
        [
            ([], [], [], []),
            ([1, 2], [True, False], [1, 1], [1, 2]),
            ([1, 2, 1, 2], [True, False, True, False], [1, 1, 2, 2], [1, 2, 3, 4]),
        ],
        ids=["nothing", "one participant", "no spread"],
    )
    def test_what_has_no_answer(self, columns):
        assert participant_means(Ratings.from_columns(*columns), bound=1) is None


class TestOrder:
    def test_by_hand(self):
        # Participant 1: clean {2, 3} against modified {1, 2}: 3.5 of 4; participant 2: {1} against {5}: 0 of 1.
        ratings = Ratings.from_columns(
            [2, 3, 1, 2, 1, 5], [False, False, True, True, False, True], [1, 1, 1, 1, 2, 2], range(6)
        )

        result = ordinal_check(ratings)

        assert result.probability == pytest.approx((3.5 / 4 + 0) / 2)
        assert result.p_value == pytest.approx(stats.ttest_1samp([3.5 / 4, 0], 0.5).pvalue)
        assert result.interval == (0.0, 1.0)

    def test_only_the_order_counts(self):
        ratings = simulated(participants=10, images_per_kind=20, rated_per_kind=10, seed=2)
        stretched = Ratings.from_columns(
            np.exp(ratings.values / 20), ratings.is_modified, ratings.participants, ratings.images
        )

        assert ordinal_check(stretched) == ordinal_check(ratings)


def test_couples_compare_an_image_with_its_own_source():
    ratings = Ratings.from_columns(
        [10, 20, 0, 30, 50], [True, True, False, False, True], [1, 2, 1, 2, 1], ["a", "a", "A", "B", "b"]
    )
    code = {
        (name, kind): int(ratings.images[index])
        for index, (name, kind) in enumerate([("a", 1), ("a", 1), ("A", 0), ("B", 0), ("b", 1)])
    }
    source_of = {code["a", 1]: code["A", 0], code["b", 1]: code["B", 0]}

    result = couples(ratings, source_of, bound=10)

    assert result.count == 2
    assert result.difference == pytest.approx(np.mean([0 - 15, 30 - 50]))
    assert couples(ratings, {code["a", 1]: code["A", 0]}, bound=10) is None


def test_several_modified_images_of_one_source_are_one_couple():
    ratings = Ratings.from_columns(
        [10, 20, 48, 5, 30], [True, True, True, False, False], [1, 1, 1, 1, 1], ["a", "b", "c", "A", "C"]
    )
    code = dict(zip("abcAC", ratings.images.tolist(), strict=True))
    source_of = {code["a"]: code["A"], code["b"]: code["A"], code["c"]: code["C"]}
    expected = stats.ttest_1samp([5 - 15, 30 - 48], 10, alternative="less")

    result = couples(ratings, source_of, bound=10)

    assert (result.count, result.difference) == (2, pytest.approx(-14))
    assert result.equivalence.p_upper == pytest.approx(expected.pvalue)


def test_drawing_participants_anew_agrees_with_the_model():
    ratings = simulated(participants=40, images_per_kind=400, rated_per_kind=20, seed=3)
    model = fit_mixed_model(ratings)

    low, high = bootstrap_difference(ratings, repeats=60, seed=1)

    assert (low + high) / 2 == pytest.approx(model.difference, abs=model.standard_error / 2)
    assert (high - low) == pytest.approx(model.interval(0.9)[1] - model.interval(0.9)[0], rel=0.4)


class TestFlag:
    def test_published_sets_agree(self, shared_data):
        ratings = published(shared_data, "aca")
        model = fit_mixed_model(ratings)
        tested = two_one_sided_tests(model.difference, model.standard_error, model.degrees_of_freedom, bound=0.2)

        assert check_robustness(ratings, model, tested, bound=0.2).disagreements == ()

    def test_another_verdict_is_said(self):
        # Eight images only: the model knows that other images may differ, participants' means do not.
        ratings = simulated(
            participants=60,
            images_per_kind=4,
            rated_per_kind=4,
            seed=8,
            difference=0,
            image_sd=(15, 15),
            participant_sd=(5, 1),
            residual_sd=10,
        )
        model = fit_mixed_model(ratings)
        tested = two_one_sided_tests(model.difference, model.standard_error, model.degrees_of_freedom, bound=12)
        robustness = check_robustness(ratings, model, tested, bound=12)

        assert tested.verdict == Verdict.INCONCLUSIVE
        assert robustness.participant_means.equivalence.verdict != Verdict.INCONCLUSIVE
        assert "The mixed model says inconclusive" in robustness.disagreements[0]
