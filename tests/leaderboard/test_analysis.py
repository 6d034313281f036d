"""One pair from ratings to verdict: what must not matter does not, and nothing is ever NaN."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.statistics.analysis import RatingScale, analyse, place
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.report import as_json, as_text
from tests.leaderboard.published_ratings import published, simulated

LIKERT = RatingScale(-2, 2, high_means_modified=False)
SLIDER = RatingScale(-1000, 1000, high_means_modified=True)


def numbers(ratings, scale=SLIDER, **options):
    return as_json(analyse(ratings, scale, **options))


@pytest.fixture(scope="module")
def ratings():
    return simulated(participants=15, images_per_kind=20, rated_per_kind=10, seed=2)


@pytest.mark.parametrize("name", ["aca", "cadv", "semanticadv"])
def test_published_sets_from_end_to_end(shared_data, name):
    expected = json.loads((shared_data / "ratings" / "expected_lme4.json").read_text())[name]

    result = numbers(published(shared_data, name), LIKERT)

    assert [result[key] for key in ("ratings", "participants", "images")] == [
        expected[key] for key in ("ratings", "participants", "images")
    ]
    for ours, theirs in (
        ("mean_modified",) * 2,
        ("sd_modified",) * 2,
        ("mean_clean", "mean_real"),
        ("sd_clean", "sd_real"),
    ):
        assert result[ours] == pytest.approx(expected[theirs])
    assert result["mixed_model"]["boundary"] is False
    assert result["equivalence"]["verdict"] == "perceptible"
    assert np.log(result["equivalence"]["p_lower"]) == pytest.approx(np.log(expected["tost"]["p_lower"]), rel=1e-2)
    assert result["robustness"]["disagreements"] == []


class TestWhatMustNotMatter:
    def test_order_and_names(self, ratings):
        rng = np.random.default_rng(1)
        order = rng.permutation(ratings.values.size)
        names = rng.permutation(1000)
        again = Ratings.from_columns(
            ratings.values[order],
            ratings.is_modified[order],
            [f"p{names[code]}" for code in ratings.participants[order]],
            [f"i{names[code]}" for code in ratings.images[order]],
        )
        one, other = numbers(ratings), numbers(again)

        for part in ("mixed_model", "equivalence"):
            for key, value in one[part].items():
                if isinstance(value, float):
                    assert other[part][key] == pytest.approx(value, rel=1e-6, abs=1e-6), key
        assert other["auc"] == one["auc"]

    def test_ids_shared_between_the_kinds(self, ratings):
        # Within a kind ids are told apart; between the kinds the same id is another image.
        own_ids = np.empty_like(ratings.images)
        for kind in (True, False):
            of_kind = ratings.is_modified == kind
            own_ids[of_kind] = np.unique(ratings.images[of_kind], return_inverse=True)[1]
        again = Ratings.from_columns(ratings.values, ratings.is_modified, ratings.participants, own_ids)

        assert again.image_count == ratings.image_count
        one, other = numbers(ratings)["mixed_model"], numbers(again)["mixed_model"]
        assert other["reml_criterion"] == pytest.approx(one["reml_criterion"], abs=1e-9)
        assert other["variance_components"] == pytest.approx(one["variance_components"], rel=1e-6)

    @settings(deadline=None, max_examples=8)
    @given(shift=st.floats(-200, 200), factor=st.floats(0.1, 3))
    def test_position_and_width_of_the_scale(self, ratings, shift, factor):
        moved = Ratings.from_columns(
            shift + factor * ratings.values, ratings.is_modified, ratings.participants, ratings.images
        )
        scale = RatingScale(shift - factor * 1000, shift + factor * 1000, high_means_modified=True)
        one, other = numbers(ratings)["mixed_model"], numbers(moved, scale)["mixed_model"]

        for key in ("difference_clean_minus_modified", "standard_error"):
            assert other[key] == pytest.approx(factor * one[key], rel=1e-3)
        assert other["satterthwaite_df"] == pytest.approx(one["satterthwaite_df"], rel=1e-2)
        assert other["variance_components"]["residual"] == pytest.approx(
            factor**2 * one["variance_components"]["residual"], rel=1e-3
        )

    def test_turning_the_scale_round_flips_the_sign_alone(self, ratings):
        turned = Ratings.from_columns(-ratings.values, ratings.is_modified, ratings.participants, ratings.images)
        one = numbers(ratings)
        other = numbers(turned, RatingScale(-1000, 1000, high_means_modified=False))

        assert other["mixed_model"]["difference_clean_minus_modified"] == pytest.approx(
            -one["mixed_model"]["difference_clean_minus_modified"]
        )
        assert other["equivalence"]["p_lower"] == pytest.approx(one["equivalence"]["p_upper"], rel=1e-4)
        assert other["auc"]["estimate"] == pytest.approx(one["auc"]["estimate"])
        assert other["detection"]["d_prime"] == pytest.approx(one["detection"]["d_prime"])


DEGENERATE = {
    "nothing": ([], [], [], []),
    "one rating": ([5], [True], [1], [1]),
    "one participant": ([1, 2, 3, 4], [True, True, False, False], [1] * 4, [1, 2, 3, 4]),
    "one image of each kind": ([1, 2, 3, 4], [True, False] * 2, [1, 1, 2, 2], [1, 2, 1, 2]),
    "all answers equal": ([7] * 8, [True, True, False, False] * 2, [1] * 4 + [2] * 4, [1, 2, 3, 4] * 2),
    "one kind missing": ([1, 5, 2, 4], [True] * 4, [1, 1, 2, 2], [1, 2, 1, 2]),
    "equal within the kinds": ([1, 1, 9, 9] * 2, [True, True, False, False] * 2, [1] * 4 + [2] * 4, [1, 2, 3, 4] * 2),
    "two participants": ([1, 2, 9, 7, 2, 2, 8, 9], [True, True, False, False] * 2, [1] * 4 + [2] * 4, [1, 2, 3, 4] * 2),
    "extremely unbalanced": (
        [*range(-20, 20), 3, 1, 5],
        [*([True, False] * 20), True, False, False],
        [*([1] * 40), 2, 2, 3],
        range(43),
    ),
    "each kind by other people": (
        [1, 5, 2, 6, 9, 3, 8, 7],
        [True] * 4 + [False] * 4,
        [1, 1, 2, 2, 3, 3, 4, 4],
        [1, 2, 1, 2, 3, 4, 3, 4],
    ),
    "one kind by one person": (
        [1, 5, 2, 6, 9, 3, 8, 7],
        [True] * 2 + [False] * 6,
        [1, 1, 2, 2, 3, 3, 4, 4],
        [1, 2, 3, 4, 3, 4, 3, 4],
    ),
    "every participant constant": (
        [1, 1, 1, 1, 7, 7, 7, 7],
        [True, True, False, False] * 2,
        [1] * 4 + [2] * 4,
        [*range(4)] * 2,
    ),
    "an answer twice": (
        [1, 2, 9, 7, 2, 2, 8, 9, 1],
        [True, True, False, False] * 2 + [True],
        [1] * 4 + [2] * 5,
        [1, 2, 3, 4] * 2 + [1],
    ),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_input_has_an_answer_without_nan(name):
    analysis = analyse(Ratings.from_columns(*DEGENERATE[name]), SLIDER, bootstrap_repeats=5)

    result = json.loads(json.dumps(as_json(analysis), allow_nan=False))

    assert (result["mixed_model"] is None) == bool(result["not_estimable"])
    people = "1 participant gave " if result["participants"] == 1 else f"{result['participants']} participants gave "
    assert as_text(analysis).startswith(
        people + ("1 rating " if result["ratings"] == 1 else f"{result['ratings']} ratings ")
    )
    assert "nan" not in as_text(analysis)


def test_repeated_answers_are_kept_and_counted():
    assert numbers(Ratings.from_columns(*DEGENERATE["an answer twice"]))["repeated_answers"] == 1
    assert numbers(Ratings.from_columns(*DEGENERATE["two participants"]))["repeated_answers"] == 0


def test_a_rating_off_the_scale_is_refused():
    with pytest.raises(ValueError, match="outside the scale"):
        analyse(Ratings.from_columns([3], [True], [1], [1]), LIKERT)


def test_pairs_beside_each_other(ratings):
    near = simulated(participants=15, images_per_kind=20, rated_per_kind=10, seed=3, difference=0)
    none = Ratings.from_columns([1], [True], [1], [1])

    first, second, third = place([analyse(one, SLIDER) for one in (ratings, near, none)])

    assert {first.rank, second.rank} == {1, 2}
    assert third.rank is third.holm_p_value is third.rank_interval is None
    assert sum(first.probabilities) == pytest.approx(1)
