"""Does the mixed model keep its promises? Simulated studies over a grid of sizes and variances.

    python -m bench.statistics_grid --studies 1000

For each cell: mean error of the difference in standard errors of that mean, true spread of the estimates and mean
standard error, share of 90 % intervals that hold the true difference, share of studies with a difference at the bound
that are called imperceptible (at most 5 %), share of studies without a difference that are called imperceptible where
the planning formula promises 50 and 80 %, share of fits on a boundary. The bounds are those of that formula for 80 %.
Figures are in docs/statistics.md.
"""

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from tests.leaderboard.simulation_grid import GRID, bound_of_power, run_cell

# Above so many participants a study takes long: so many times fewer of them.
FEWER = ((500, 100), (100, 20), (50, 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000, help="per cell; fewer above 50 participants (1000)")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of cells from 0")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(
        "| case | participants x images of pool | studies | bias "
        "| SD / mean SE | coverage | size | 50 % | 80 % | boundary |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for number, cell in enumerate(GRID):
        if options.only and number not in options.only:
            continue
        design = cell.design
        times = next((times for above, times in FEWER if design.participants > above), 1)
        outcome = run_cell(cell, max(2, options.studies // times), seed=options.seed)
        errors, bounds = outcome.errors, [bound_of_power(cell, power) for power in (0.5, 0.8)]
        powers = " | ".join("-" if cell.is_unbalanced else f"{outcome.imperceptible(bound):.3f}" for bound in bounds)
        print(
            f"| {cell.name} | {design.participants} x {design.images_per_kind} of {design.pool_per_kind} "
            f"| {errors.size} | {np.mean(errors) / np.std(errors) * errors.size**0.5:+.1f} "
            f"| {np.std(errors):.2f} / {np.mean(outcome.standard_errors):.2f} | {outcome.coverage:.3f} "
            f"| {outcome.imperceptible(bounds[1], bounds[1]):.3f} | {powers} | {outcome.on_boundary:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
