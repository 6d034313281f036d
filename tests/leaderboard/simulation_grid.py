"""Simulated studies over a grid of designs, for a test of small ones and bench/statistics_grid.py for all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from leaderboard.statistics.mixed_model import NotEstimable, VarianceComponents, fit_mixed_model
from leaderboard.statistics.planning import Design, plan, simulate_ratings
from leaderboard.statistics.ratings import Ratings

DIFFERENCE = 10.0
REGULAR = VarianceComponents(300.0, 290.0, -200.0, 100.0, 60.0, 600.0)
NO_IMAGES = VarianceComponents(300.0, 290.0, -200.0, 0.0, 0.0, 600.0)
NO_SLOPE = VarianceComponents(300.0, 0.0, 0.0, 100.0, 60.0, 600.0)


@dataclass(frozen=True)
class Cell:
    """A design and true variances.

    If ``is_unbalanced``, every participant answers another share of the images: Beta(0.5, 1.5) shares, a quarter on
    average, many near none and few near all.
    """

    name: str
    design: Design
    components: VarianceComponents = REGULAR
    is_unbalanced: bool = False


@dataclass(frozen=True)
class Outcome:
    """The fits of the studies that determined a model; ``errors`` are estimates minus the true difference.

    A shift of all clean images moves the estimate by as much and nothing else: the same fits tell what tests would have
    said of another true difference and other bounds.
    """

    errors: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    degrees: NDArray[np.float64]
    components: NDArray[np.float64]  # (studies, 6)
    on_boundary: float  # share

    @property
    def half_widths(self) -> NDArray[np.float64]:
        half: NDArray[np.float64] = stats.t.ppf(0.95, self.degrees) * self.standard_errors
        return half

    @property
    def coverage(self) -> float:
        """Share of the 90 % intervals that hold the true difference."""
        return float((np.abs(self.errors) <= self.half_widths).mean())

    def imperceptible(self, bound: float, difference: float = 0.0) -> float:
        """Share of the studies with that verdict."""
        return float((np.abs(difference + self.errors) + self.half_widths < bound).mean())


GRID = (
    Cell("regular", Design(20, 20, 60)),
    Cell("regular", Design(30, 20, 80)),
    Cell("regular", Design(2, 20, 40)),
    Cell("regular", Design(3, 20, 40)),
    Cell("regular", Design(5, 20, 40)),
    Cell("regular", Design(10, 20, 40)),
    Cell("few images", Design(20, 2, 2)),
    Cell("few images", Design(50, 5, 5)),
    Cell("unbalanced", Design(20, 20, 60), is_unbalanced=True),
    Cell("no image variance", Design(20, 20, 60), NO_IMAGES),
    Cell("no slope variance", Design(20, 20, 60), NO_SLOPE),
    Cell("no image rated twice", Design(20, 20, 400)),
    Cell("regular", Design(60, 50, 1000)),
    Cell("regular", Design(200, 50, 1000)),
    Cell("full design", Design(690, 50, 3000)),
)


def simulate(cell: Cell, rng: np.random.Generator) -> Ratings:
    ratings = simulate_ratings(cell.design, cell.components, DIFFERENCE, rng)
    if not cell.is_unbalanced:
        return ratings
    shares = rng.beta(0.5, 1.5, cell.design.participants)
    kept = rng.random(ratings.values.size) < shares[ratings.participants]
    return Ratings.from_columns(
        ratings.values[kept], ratings.is_modified[kept], ratings.participants[kept], ratings.images[kept]
    )


def run_cell(cell: Cell, studies: int, *, seed: int) -> Outcome:
    """Simulate and fit ``studies`` studies."""
    rng = np.random.default_rng(seed)
    fits = []
    for _ in range(studies):
        try:
            fits.append(fit_mixed_model(simulate(cell, rng)))
        except NotEstimable:
            continue
    return Outcome(
        errors=np.array([fit.difference - DIFFERENCE for fit in fits]),
        standard_errors=np.array([fit.standard_error for fit in fits]),
        degrees=np.array([fit.degrees_of_freedom for fit in fits]),
        components=np.array([list(vars(fit.variance_components).values()) for fit in fits]),
        on_boundary=float(np.mean([bool(fit.boundary) for fit in fits])),
    )


def bound_of_power(cell: Cell, power: float) -> float:
    """The bound for which the formula of planning.py promises ``power`` if there is no difference."""
    error = plan(cell.design, cell.components, bound=1.0).standard_error
    found: float = optimize.brentq(
        lambda bound: plan(cell.design, cell.components, bound=bound).power - power, error, 50 * error
    )
    return found


def within(share: float, expected: float, studies: int, errors: float = 3.5) -> bool:
    """Whether a share of so many studies lies within so many Monte-Carlo standard errors of the expected one."""
    return abs(share - expected) <= errors * (expected * (1 - expected) / studies) ** 0.5


def true_components(cell: Cell) -> Sequence[float]:
    return list(vars(cell.components).values())
