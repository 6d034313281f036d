"""One pure function from ratings to the values of an entry: signs, shares, flags, and what is not determined."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from leaderboard.inputs import InputRating, Inputs
from leaderboard.results import IMAGES_KEPT, Rules, code_version, compute
from leaderboard.statistics.mixed_model import fit_mixed_model
from leaderboard.statistics.ratings import Ratings
from tests.leaderboard import published_ratings
from tests.leaderboard.published_ratings import published

RULES = Rules(scale_minimum=-100, scale_maximum=100, equivalence_bound=10.0, alpha=0.05, minimum_participants=10)


def simulated(*args, **kwargs) -> Ratings:
    """Ratings of the model itself, cut off at the ends of the scale."""
    found = published_ratings.simulated(*args, **kwargs)
    return replace(found, values=found.values.clip(-100, 100))


def inputs(ratings: Ratings, *, misleads=True, sources=False) -> Inputs:
    """These ratings as inputs; ``sources``: each modified image has the clean one of its number as its source."""
    rows = zip(
        ratings.values.tolist(), ratings.is_modified.tolist(), ratings.participants.tolist(), ratings.images.tolist(),
        strict=True,
    )  # fmt: skip
    return Inputs.of(
        "attack",
        "model",
        [
            InputRating(
                f"p{person:03}",
                f"{'m' if is_modified else 'c'}{ratings.image_ids[image]}",
                is_modified,
                value,
                f"c{ratings.image_ids[image]}" if sources and is_modified else "",
                misleads if is_modified else None,
            )
            for value, is_modified, person, image in rows
        ],
    )


@pytest.fixture(scope="module")
def ratings():
    """Modified images are rated 30 points above clean ones."""
    return simulated(20, 30, 15, seed=3, difference=-30.0)


@pytest.fixture(scope="module")
def result(ratings):
    return compute(inputs(ratings, sources=True), RULES)


def test_the_signs_are_those_of_modified_minus_clean(ratings, result):
    model, values = fit_mixed_model(ratings), result.values
    assert values["difference"] == pytest.approx(-model.difference, rel=1e-6)
    assert 20 < values["difference"] < 40
    low, high = model.interval(0.90)
    assert (values["ci90_low"], values["ci90_high"]) == pytest.approx((-high, -low), rel=1e-5)
    assert values["ci95_low"] < values["ci90_low"] < values["difference"] < values["ci90_high"] < values["ci95_high"]
    assert values["verdict"] == "perceptible"
    # Far above the upper bound: certainly above the lower one, and no sign that it is below the upper one.
    assert values["p_lower"] < 1e-6
    assert values["p_upper"] > 0.99
    assert values["supported_bound"] == pytest.approx(values["ci90_high"])
    assert values["auc"] > 0.5
    assert values["auc_low"] < values["auc"] < values["auc_high"]


def test_what_the_checks_say_has_the_same_direction(result):
    means, order = result.details["robustness"]["participant_means"], result.details["robustness"]["order_of_answers"]
    assert means["difference"] == pytest.approx(result.values["difference"], abs=3)
    assert means["ci90"][0] < means["difference"] < means["ci90"][1]
    assert (means["verdict"], means["p_lower"] < means["p_upper"]) == ("perceptible", True)
    assert 0.5 < order["ci95"][0] < order["probability"] < order["ci95"][1]
    assert result.details["couples"]["difference"] > 0
    assert np.mean(result.details["participants"]["mean_differences"]) == pytest.approx(means["difference"])


def test_an_interval_of_90_percent_is_one_at_any_level(ratings, result):
    strict = compute(inputs(ratings, sources=True), replace(RULES, alpha=0.01))
    means = strict.details["robustness"]["participant_means"]
    half = stats.t.ppf(0.95, means["degrees_of_freedom"]) * means["standard_error"]
    assert means["ci90"] == pytest.approx([means["difference"] - half, means["difference"] + half])
    assert means["ci90"] == result.details["robustness"]["participant_means"]["ci90"]
    assert strict.details["couples"]["ci90"] == result.details["couples"]["ci90"]
    assert strict.values["ci90_low"] == result.values["ci90_low"]


def test_a_mirrored_file_gives_mirrored_numbers(ratings, result):
    swapped = compute(inputs(ratings.mirrored(0.0)), RULES).values
    for name in ("difference", "mean_modified", "mean_clean"):
        assert swapped[name] == pytest.approx(-result.values[name], rel=1e-5)
    assert swapped["ci90_low"] == pytest.approx(-result.values["ci90_high"], rel=1e-5)
    assert swapped["p_upper"] == pytest.approx(result.values["p_lower"], rel=1e-2)
    assert swapped["auc"] == pytest.approx(1 - result.values["auc"])


def test_lme4_gives_the_same(shared_data):
    expected = json.loads((shared_data / "ratings" / "expected_lme4.json").read_text())["aca"]["lmm"]
    rules = Rules(scale_minimum=-2, scale_maximum=2, equivalence_bound=0.2, alpha=0.05, minimum_participants=10)
    values = compute(inputs(published(shared_data, "aca").mirrored(0.0)), rules).values
    assert values["difference"] == pytest.approx(expected["difference_real_minus_modified"], rel=1e-4)
    assert values["standard_error"] == pytest.approx(expected["standard_error"], rel=1e-4)
    assert values["degrees_of_freedom"] == pytest.approx(expected["satterthwaite_df"], rel=1e-2)
    assert [values["ci90_low"], values["ci90_high"]] == pytest.approx(expected["ci90"], rel=1e-4)


def test_unnoticed_are_counted_among_the_images_that_fool():
    """Rated 20 points below clean, but three of the twelve that mislead and five of the others 60 above."""
    unnoticed = simulated(20, 30, 15, seed=4, difference=20.0, image_sd=(0.1, 0.1))
    some = inputs(unnoticed)
    modified = sorted({row.image for row in some.ratings if row.is_modified})
    misleading, noticed_images = modified[:12], {*modified[:3], *modified[-5:]}

    def of(known):
        return Inputs.of(
            "attack",
            "model",
            [
                InputRating(
                    row.participant, row.image, row.is_modified,
                    min(100.0, row.value + 80 * (row.image in noticed_images)), "",
                    known(row.image) if row.is_modified else None,
                )
                for row in some.ratings
            ],
        )  # fmt: skip

    values = compute(of(lambda image: image in misleading), RULES).values
    assert values["images_modified"] == 30
    assert values["attack_success_rate"] == pytest.approx(12 / 30)
    assert values["fools_unnoticed"] == pytest.approx(9 / 12)
    noticed = compute(inputs(simulated(20, 30, 15, seed=4, difference=-40.0, image_sd=(0.1, 0.1))), RULES).values
    # Where all mislead, only successes were collected: nobody knows how many attempts there were.
    assert (noticed["attack_success_rate"], noticed["fools_unnoticed"]) == (None, 0.0)
    half_known = compute(of(lambda image: True if image in misleading else None), RULES).values
    assert (half_known["attack_success_rate"], half_known["images_unverified"]) == (None, 18)
    assert half_known["fools_unnoticed"] == pytest.approx(9 / 12)
    one_failed = compute(of(lambda image: image != misleading[0] if image in misleading else None), RULES).values
    assert (one_failed["attack_success_rate"], one_failed["images_unverified"]) == (11 / 12, 18)
    assert one_failed["fools_unnoticed"] == pytest.approx(9 / 11)
    unknown = compute(of(lambda image: None), RULES).values
    assert (unknown["attack_success_rate"], unknown["fools_unnoticed"]) == (None, None)
    assert "unverified_images" in unknown["flags"]


def test_flags(ratings, result):
    assert result.values["flags"] == []
    few = compute(inputs(ratings.of_participants(range(4))), RULES).values["flags"]
    assert "few_raters" in few
    noise = np.random.default_rng(1)
    random = Ratings.from_columns(
        noise.integers(-100, 101, 600), [True, False] * 300, np.repeat(np.arange(12), 50), np.tile(np.arange(50), 12)
    )
    flags = compute(inputs(random), RULES).values["flags"]
    assert "low_reliability" in flags
    assert "boundary_fit" in flags


def test_what_is_not_determined_is_null_and_can_be_written_as_json():
    one = Inputs.of("attack", "model", [InputRating("p", "i", True, 50.0, "", None)])
    result = compute(one, RULES)
    values = result.values
    assert (values["participants"], values["mean_modified"], values["sd_modified"], values["mean_clean"]) == (
        1,
        50.0,
        None,
        None,
    )
    assert (values["difference"], values["verdict"], values["auc"]) == (None, "not_estimable", None)
    assert result.details["not_estimable"]
    assert result.details["images"] == {}
    json.dumps([values, result.details], allow_nan=False)


def test_details_hold_both_ends_of_the_images_and_the_whole_distribution(result):
    images = result.details["images"]["modified"]
    means = [image["mean"] for image in images["images"]]
    assert (images["count"], len(means), means) == (30, 30, sorted(means))
    assert (images["quantiles"][0], images["quantiles"][-1]) == pytest.approx((means[0], means[-1]))
    assert sum(count for _, count in result.details["distributions"]["modified"]) == result.values["ratings_modified"]
    many = simulated(10, 400, 60, seed=5)
    kept = compute(inputs(many), RULES).details["images"]["clean"]
    assert kept["count"] > 2 * IMAGES_KEPT == len(kept["images"])
    assert all(math.isfinite(image["standard_error"]) for image in kept["images"])


def test_the_order_of_the_rows_changes_nothing(ratings, result):
    shuffled = Inputs.of("attack", "model", reversed(inputs(ratings, sources=True).ratings))
    again = compute(shuffled, RULES)
    assert (again.values, again.details) == (result.values, result.details)
    assert code_version() == code_version()
