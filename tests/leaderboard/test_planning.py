"""Power and width before a study, and smaller studies drawn from one that was run."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from leaderboard.statistics.equivalence import Verdict
from leaderboard.statistics.mixed_model import VarianceComponents, fit_mixed_model
from leaderboard.statistics.planning import (
    Design,
    equivalence_power,
    participants_needed,
    plan,
    planning_table,
    simulated_power,
)
from leaderboard.statistics.subsampling import subsampling_curve
from tests.leaderboard.published_ratings import simulated
from tests.leaderboard.simulation_grid import Cell, bound_of_power, run_cell, within

COMPONENTS = VarianceComponents(
    participant_intercept=300.0,
    participant_slope=290.0,
    participant_covariance=-200.0,
    image_modified=100.0,
    image_clean=60.0,
    residual=600.0,
)


def test_power_with_known_variance_is_the_normal_one():
    # With very many degrees of freedom: P(|estimate| < bound - 1.645 se).
    assert equivalence_power(2.0, 1e7, bound=10) == pytest.approx(0.99920, abs=1e-4)
    assert equivalence_power(5.0, 1e7, bound=10) == pytest.approx(0.27747, abs=1e-4)


def test_power_by_drawing_estimates_and_standard_errors():
    rng = np.random.default_rng(1)
    estimates = rng.normal(2, 4, 200_000)
    errors = 4 * np.sqrt(rng.chisquare(12, 200_000) / 12)
    significant = np.abs(estimates) < 10 - 1.782288 * errors

    assert equivalence_power(4, 12, bound=10, difference=2) == pytest.approx(significant.mean(), abs=0.004)


def test_at_the_bound_the_power_is_the_level():
    assert equivalence_power(1.0, 50, bound=10, difference=10) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("design", [Design(30, 10, 40), Design(12, 12, 12)], ids=["incomplete", "complete"])
def test_the_formula_is_what_fits_of_simulated_studies_give(design):
    cell = Cell("regular", design, COMPONENTS)
    outcome = run_cell(cell, 100, seed=7)
    promised = plan(design, COMPONENTS, bound=10)

    # Three standard errors, of a standard deviation and of a mean, of a hundred.
    assert outcome.errors.std() == pytest.approx(promised.standard_error, rel=3 / 200**0.5)
    of_mean = (1 / 200 / promised.degrees_of_freedom) ** 0.5
    assert outcome.standard_errors.mean() == pytest.approx(promised.standard_error, rel=0.02 + 3 * of_mean)
    assert np.median(outcome.degrees) == pytest.approx(promised.degrees_of_freedom, rel=0.12)
    assert 2 * outcome.half_widths.mean() == pytest.approx(promised.interval_width, rel=0.02 + 3 * of_mean)
    for power in (0.2, 0.5, 0.8, 0.95):
        assert within(outcome.imperceptible(bound_of_power(cell, power)), power, 100, errors=3), power


def test_power_by_simulation_is_the_share_of_those_fits():
    design = Design(12, 12, 12)
    cell = Cell("regular", design, COMPONENTS)
    bound = bound_of_power(cell, 0.5)

    power = simulated_power(design, COMPONENTS, bound=bound, repeats=20, seed=2)

    # Another true difference moves the estimates and nothing else.
    assert power == run_cell(cell, 20, seed=2).imperceptible(bound)


def test_the_number_needed_is_the_smallest():
    design = Design(2, 50, 3000)
    for power in (0.8, 0.9, 0.95):
        needed = participants_needed(power, design, COMPONENTS, bound=10)
        at, below = (plan(replace(design, participants=n), COMPONENTS, bound=10).power for n in (needed, needed - 1))
        assert below < power <= at


def test_too_few_images_cannot_be_made_up_for():
    assert participants_needed(0.9, Design(2, 5, 5), COMPONENTS, bound=5) is None


def test_costs_are_exact():
    table = planning_table([10, 690], Design(2, 50, 3000), COMPONENTS, bound=10, pounds_per_participant=Decimal("4.57"))

    assert [row.cost for row in table] == [Decimal("45.70"), Decimal("3153.30")]


@pytest.mark.parametrize("numbers", [(1, 5, 10), (5, 0, 10), (5, 11, 10), (5, 1, 1)])
def test_impossible_designs_are_refused(numbers):
    with pytest.raises(ValueError, match="a design needs"):
        Design(*numbers)


class TestSubsampling:
    def test_the_curve_settles_on_the_whole(self):
        ratings = simulated(participants=40, images_per_kind=60, rated_per_kind=20, seed=1, difference=25)
        whole = fit_mixed_model(ratings)

        curve = subsampling_curve(
            ratings, [10, 20, 40], bound=10, repeats=10, seed=1, pounds_per_participant=Decimal(2)
        )

        assert [step.participants for step in curve] == [10, 20, 40]
        assert curve[-1].difference == pytest.approx(whole.difference)
        assert curve[-1].spread == pytest.approx(0, abs=1e-9)
        assert curve[0].interval_width > curve[1].interval_width > curve[2].interval_width
        assert sum(curve[0].verdict_shares.values()) == pytest.approx(1)
        assert curve[-1].verdict_shares[Verdict.PERCEPTIBLE] == 1
        assert [step.cost for step in curve] == [20, 40, 80]

    def test_more_than_there_are_is_refused(self):
        with pytest.raises(ValueError, match="between 2 and 10 participants"):
            subsampling_curve(simulated(10, 10, 5, 1), [11], bound=10)
