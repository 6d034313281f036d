"""What the exports and the live page of a full study cost: time, memory, and statements.

    python -m bench.study_exports
    python -m bench.study_exports --database sqlite --participants 6900

Fills a database with the study of the paper: 690 participants with 100 ratings of images and 6 checks each. Then writes
each export to nowhere, as the web server streams it, and asks for the live numbers and for what the quality rules say.
Figures are in docs/exports.md.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.services.postgresql import postgresql

PROJECT = Path(__file__).resolve().parent.parent
IMAGES_OF_A_KIND = 50
EVENTS = ("entered", "colour_check_judged", "instructions_read", "comprehension_judged", "feedback_given", "ended")


def main() -> None:
    """Start a process for each database, for settings are read once."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    arguments.add_argument("--participants", type=int, default=690)
    arguments.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.here:
        measure(options.participants)
        return
    for database in ("postgresql", "sqlite") if options.database == "both" else (options.database,):
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-exports-"))
            url = stack.enter_context(postgresql()) if database == "postgresql" else f"sqlite:///{folder}/db.sqlite3"
            environment = {**os.environ, "DEBUG": "on", "DATABASE_URL": url, "MEDIA_ROOT": f"{folder}/media"}
            print(f"--- {database}", flush=True)
            command = [sys.executable, "-m", "bench.study_exports", "--here", f"--participants={options.participants}"]
            subprocess.run(command, cwd=PROJECT, env=environment, check=True)


def measure(participants: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection
    from django.template.loader import render_to_string
    from django.test.utils import CaptureQueriesContext

    from studies.admin.monitor import monitor_context
    from studies.admin.quality import study_context
    from studies.models import Study
    from studies.selectors import exports
    from studies.selectors.quality import study_quality

    call_command("migrate", verbosity=0)
    fill(participants)
    settings.DEBUG = False
    study = Study.objects.select_related("attack", "target_model").get()
    files = {
        "ratings.csv": lambda: exports.as_csv(exports.RATING_COLUMNS, exports.rating_rows(study)),
        "ratings.jsonl": lambda: exports.as_jsonl(exports.RATING_COLUMNS, exports.rating_rows(study)),
        "participants.csv": lambda: exports.as_csv(
            exports.participant_columns(panel_ids=True), exports.participant_rows(study, panel_ids=True)
        ),
    }
    for name, pieces in files.items():
        before, began, began_cpu = peak_megabytes(), time.perf_counter(), time.process_time()
        size, lines = written(pieces())
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        print(
            f"{name}: {lines:,} lines, {size / 1e6:.1f} MB, {seconds:.2f} s, {cpu:.2f} s of them CPU, "
            f"{peak_megabytes() - before:.1f} MB more memory at the peak"
        )
    pages = {
        "live numbers": lambda: monitor_context(study),
        "quality rules": lambda: study_quality(study),
        "quality page, everybody": lambda: render_to_string("admin/studies/quality.html", study_context(study, "all")),
    }
    for name, show in pages.items():
        with CaptureQueriesContext(connection) as queries:
            show()
        began, began_cpu = time.perf_counter(), time.process_time()
        show()
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        print(f"{name}: {len(queries)} statements, {seconds:.3f} s, {cpu:.3f} s of them CPU", flush=True)


def written(pieces: Iterator[str]) -> tuple[int, int]:
    """Bytes and lines of a file that is sent and not kept."""
    size = lines = 0
    for piece in pieces:
        size += len(piece.encode())
        lines += piece.count("\n")
    return size, lines


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fill(participants: int) -> None:
    from django.utils import timezone

    from imagedb.models import Image
    from studies import models
    from tests import factories

    images = [factories.clean_image() for _ in range(IMAGES_OF_A_KIND)]
    attack, target_model = factories.attack(), factories.target_model()
    images += [factories.modified_image(image, attack=attack, target_model=target_model) for image in images]
    study = factories.study(
        attack=attack,
        target_model=target_model,
        dataset_count=60,
        participants_per_dataset=10,
        buffer_percent=15,
        clean_per_dataset=IMAGES_OF_A_KIND,
        modified_per_dataset=IMAGES_OF_A_KIND,
        corrupted_check_count=3,
        instructed_check_count=3,
    )
    models.Study.objects.update(status=models.StudyStatus.RUNNING)
    datasets = models.Dataset.objects.bulk_create(models.Dataset(study=study, number=n) for n in range(1, 61))
    began = timezone.now() - timedelta(days=2)
    for first in range(0, participants, 690):
        people = models.Participation.objects.bulk_create(
            models.Participation(
                study=study,
                dataset=datasets[n % 60],
                step="end",
                outcome="completed",
                is_valid=True,
                consented_at=began,
                finished_at=began + timedelta(minutes=13),
            )
            for n in range(first, min(first + 690, participants))
        )
        models.ParticipantIdentity.objects.bulk_create(
            models.ParticipantIdentity(
                participation=one, study=study, participant_id=f"{one.pk:024x}", session_id=f"{one.pk:024x}"
            )
            for one in people
        )
        models.ParticipationEvent.objects.bulk_create(
            models.ParticipationEvent(participation=one, name=name, detail={"right": 5})
            for one in people
            for name in (*EVENTS, *["plate_answered"] * 5, *["pair_answered"] * 6)
        )
        trials = models.Trial.objects.bulk_create(
            (trial for one in people for trial in _trials(one, images)), batch_size=5000
        )
        models.Rating.objects.bulk_create(
            (
                models.Rating(
                    trial=trial, value=trial.position * 37 % 201 - 100, response_ms=1500, first_interaction_ms=700
                )
                for trial in trials
            ),
            batch_size=5000,
        )
    assert Image.objects.count() == len(images)


def _trials(participation: Any, images: Any) -> Any:
    from studies.models import Trial

    for position, image in enumerate(images, start=1):
        yield Trial(participation=participation, position=position, kind="image", image=image)
    for position in range(len(images) + 1, len(images) + 7):
        yield Trial(participation=participation, position=position, kind="instructed", instructed_value=50)


if __name__ == "__main__":
    main()
