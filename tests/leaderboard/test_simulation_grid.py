"""The mixed model's promises on simulated studies; the large grid is bench/statistics_grid.py."""

import numpy as np
import pytest

from leaderboard.statistics.mixed_model import fit_mixed_model
from leaderboard.statistics.planning import Design, simulate_ratings
from tests.leaderboard.simulation_grid import NO_IMAGES, NO_SLOPE, REGULAR, Cell, run_cell

STUDIES = 40
SMALL = (
    Cell("regular", Design(10, 10, 20)),
    Cell("unbalanced", Design(16, 10, 20), kept=0.5),
    Cell("no image variance", Design(12, 10, 20), NO_IMAGES),
    Cell("no slope variance", Design(12, 10, 20), NO_SLOPE),
)


@pytest.mark.parametrize("cell", SMALL, ids=lambda cell: cell.name)
def test_no_bias_and_right_coverage_and_size(cell):
    outcome = run_cell(cell, STUDIES, seed=3)

    assert len(outcome.errors) == STUDIES
    assert abs(np.mean(outcome.errors)) < 3.5 * np.std(outcome.errors) / STUDIES**0.5
    # Three and a half Monte-Carlo standard errors; above 90 % an interval may be too wide where a variance is zero.
    assert outcome.coverage >= 0.90 - 3.5 * (0.9 * 0.1 / STUDIES) ** 0.5
    assert outcome.size <= 0.05 + 3.5 * (0.05 * 0.95 / STUDIES) ** 0.5


def test_parameters_are_recovered():
    rng = np.random.default_rng(4)
    fits = [fit_mixed_model(simulate_ratings(Design(40, 15, 40), REGULAR, 5.0, rng)) for _ in range(25)]

    for name in vars(REGULAR):
        estimates = [getattr(fit.variance_components, name) for fit in fits]
        assert np.mean(estimates) == pytest.approx(getattr(REGULAR, name), abs=4 * np.std(estimates) / 25**0.5), name
