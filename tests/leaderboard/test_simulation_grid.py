"""The mixed model's promises on simulated studies; the large grid is bench/statistics_grid.py."""

from dataclasses import replace

import numpy as np
import pytest

from leaderboard.statistics.planning import Design, plan
from tests.leaderboard.simulation_grid import (
    NO_IMAGES,
    NO_SLOPE,
    Cell,
    bound_of_power,
    run_cell,
    true_components,
    within,
)

STUDIES = 50
COMPLETE = Cell("complete", Design(10, 12, 12))
SMALL = (
    COMPLETE,
    Cell("incomplete", Design(12, 8, 20)),
    Cell("unbalanced", Design(20, 10, 20), is_unbalanced=True),
    Cell("no image variance", Design(12, 10, 20), NO_IMAGES),
    Cell("no slope variance", Design(12, 10, 20), NO_SLOPE),
)


@pytest.fixture(scope="module")
def outcomes():
    return {cell.name: run_cell(cell, STUDIES, seed=3) for cell in SMALL}


def test_no_bias(outcomes):
    for name, outcome in outcomes.items():
        assert outcome.errors.size == STUDIES, name
        assert abs(outcome.errors.mean()) < 3.5 * outcome.errors.std() / STUDIES**0.5, name


def test_intervals_hold_the_true_difference_as_often_as_they_say(outcomes):
    shares = [outcome.coverage for outcome in outcomes.values()]

    assert within(float(np.mean(shares)), 0.90, STUDIES * len(shares), errors=3)


def test_a_difference_at_the_bound_is_rarely_called_imperceptible(outcomes):
    bounds = {cell.name: bound_of_power(cell, 0.8) for cell in SMALL}
    shares = [outcome.imperceptible(bounds[name], bounds[name]) for name, outcome in outcomes.items()]

    assert np.mean(shares) <= 0.05 + 3 * (0.05 * 0.95 / STUDIES / len(shares)) ** 0.5
    assert np.mean(shares) > 0.01  # a test that never says so would have no power


def test_standard_errors_are_those_of_the_estimates(outcomes):
    # In a complete design the variance is known exactly, and its estimates have as many degrees of freedom.
    promised = plan(COMPLETE.design, COMPLETE.components, bound=1.0)
    estimated = np.mean(outcomes["complete"].standard_errors ** 2)

    spread = (2 / promised.degrees_of_freedom / STUDIES) ** 0.5
    assert estimated == pytest.approx(promised.standard_error**2, rel=3 * spread)


def test_parameters_are_recovered(outcomes):
    # Variances of zero cannot be underestimated: those cells are left out.
    for cell in SMALL[:3]:
        estimates = outcomes[cell.name].components
        error = estimates.std(axis=0) / STUDIES**0.5
        assert np.all(np.abs(estimates.mean(axis=0) - true_components(cell)) < 4 * error), cell.name


def test_an_estimator_that_promises_too_much_is_found(outcomes):
    # What the test of coverage says of standard errors that are three tenths too small.
    shares = [replace(outcome, standard_errors=0.7 * outcome.standard_errors).coverage for outcome in outcomes.values()]

    assert not within(float(np.mean(shares)), 0.90, STUDIES * len(shares), errors=3)
