"""Simulated studies over a grid of designs, for a test of small ones and bench/statistics_grid.py for all."""

from dataclasses import dataclass

import numpy as np

from leaderboard.statistics.equivalence import Verdict, two_one_sided_tests
from leaderboard.statistics.mixed_model import NotEstimable, VarianceComponents, fit_mixed_model
from leaderboard.statistics.planning import Design, simulate_ratings
from leaderboard.statistics.ratings import Ratings

BOUND = 10.0
REGULAR = VarianceComponents(300.0, 290.0, -200.0, 100.0, 60.0, 600.0)
NO_IMAGES = VarianceComponents(300.0, 290.0, -200.0, 0.0, 0.0, 600.0)
NO_SLOPE = VarianceComponents(300.0, 0.0, 0.0, 100.0, 60.0, 600.0)


@dataclass(frozen=True)
class Cell:
    """A design and true variances; ``kept`` is the share of ratings that are kept, the others missing at random."""

    name: str
    design: Design
    components: VarianceComponents = REGULAR
    kept: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """``errors`` are estimates minus the true difference; shares are over the studies that determined a model."""

    errors: list[float]
    coverage: float
    size: float
    boundary: float


GRID = (
    Cell("regular", Design(2, 20, 40)),
    Cell("regular", Design(3, 20, 40)),
    Cell("regular", Design(5, 20, 40)),
    Cell("few images", Design(20, 2, 2)),
    Cell("regular", Design(10, 20, 40)),
    Cell("regular", Design(20, 20, 60)),
    Cell("unbalanced", Design(20, 20, 60), kept=0.4),
    Cell("no image variance", Design(20, 20, 60), NO_IMAGES),
    Cell("no slope variance", Design(20, 20, 60), NO_SLOPE),
    Cell("regular", Design(60, 50, 1000)),
    Cell("regular", Design(200, 50, 1000)),
    Cell("full design", Design(690, 50, 3000)),
)


def run_cell(cell: Cell, studies: int, *, seed: int) -> Outcome:
    """Simulate and fit ``studies`` studies whose true difference lies at the bound."""
    rng = np.random.default_rng(seed)
    errors, covered, imperceptible, on_boundary = [], 0, 0, 0
    for _ in range(studies):
        ratings = simulate_ratings(cell.design, cell.components, BOUND, rng)
        if cell.kept < 1:
            kept = rng.random(ratings.values.size) < cell.kept
            ratings = Ratings.from_columns(
                ratings.values[kept], ratings.is_modified[kept], ratings.participants[kept], ratings.images[kept]
            )
        try:
            fit = fit_mixed_model(ratings)
        except NotEstimable:
            continue
        errors.append(fit.difference - BOUND)
        low, high = fit.interval(0.90)
        covered += low <= BOUND <= high
        on_boundary += bool(fit.boundary)
        tested = two_one_sided_tests(fit.difference, fit.standard_error, fit.degrees_of_freedom, bound=BOUND)
        imperceptible += tested.verdict == Verdict.IMPERCEPTIBLE
    count = len(errors)
    return Outcome(errors, covered / count, imperceptible / count, on_boundary / count)
