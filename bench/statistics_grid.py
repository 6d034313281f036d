"""Does the mixed model keep its promises? Simulated studies over a grid of sizes and variances.

    OPENBLAS_NUM_THREADS=1 python -m bench.statistics_grid --studies 400

For each cell: mean error of the difference in standard errors of that mean, share of 90 % intervals that hold the true
difference, share of studies at the bound that are called imperceptible (at most 5 %), share of fits on a boundary. A
share of N studies is known to about 2 * sqrt(p * (1 - p) / N). Figures are in docs/statistics.md.
"""

import argparse
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).resolve().parent.parent

from tests.leaderboard.simulation_grid import GRID, run_cell  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=400, help="per cell; a tenth of them above 100 participants")
    options = parser.parse_args()
    print("| case | participants x images of pool, per kind | studies | error / SE | coverage | size | boundary |")
    print("|---|---|---|---|---|---|---|")
    for cell in GRID:
        design = cell.design
        studies = options.studies if design.participants <= 100 else max(2, options.studies // 10)
        outcome = run_cell(cell, studies, seed=1)
        spread = np.std(outcome.errors) / np.sqrt(len(outcome.errors))
        print(
            f"| {cell.name} | {design.participants} x {design.images_per_kind} of {design.pool_per_kind} "
            f"| {len(outcome.errors)} | {np.mean(outcome.errors) / spread:+.1f} | {outcome.coverage:.3f} "
            f"| {outcome.size:.3f} | {outcome.boundary:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
