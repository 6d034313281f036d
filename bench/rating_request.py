"""What one rating costs the web server: statements, CPU time in the process, and time until the answer.

    python -m bench.rating_request
    python -m bench.rating_request --database sqlite --ratings 100000

Fills a database with ratings of earlier participants, then lets new ones rate through the site's WSGI application as
gunicorn calls it, with all of its middleware and with DEBUG off, but without a socket: what is measured is what the
process itself spends. PostgreSQL's own processes are not counted, SQLite, which runs within, is. Figures are in
docs/protocol.md.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent

from tests.services.postgresql import postgresql  # noqa: E402

ITEMS = 106
CPU_BAR_MS, STATEMENTS_BAR = 4.0, 6
# The rows of earlier participants are copies of those of one, made by the database itself. Both know these names.
COPIES = {
    "participation": """
        INSERT INTO studies_participation ({columns}) WITH RECURSIVE n(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
        SELECT {values} FROM n, studies_participation p WHERE p.id = {template}""",
    "trial": """
        INSERT INTO studies_trial ({columns}) SELECT {values} FROM studies_participation q, studies_trial t
        WHERE q.id > {template} AND t.participation_id = {template}""",
    "rating": """
        INSERT INTO studies_rating (trial_id, value, answered_at, first_interaction_ms, response_ms)
        SELECT t.id, (t.position * 37) % 201 - 100, CURRENT_TIMESTAMP, 700, 1500 FROM studies_trial t
        WHERE t.participation_id > {template}""",
}


def main() -> None:
    """Start a process for each database, for settings are read once."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    arguments.add_argument("--ratings", type=int, default=1_000_000, help="stored before")
    arguments.add_argument("--participants", type=int, default=10, help=f"who rate {ITEMS} items each")
    arguments.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.here:
        sys.exit(0 if measure(options.ratings, options.participants) else 1)
    failed = False
    for database in ("postgresql", "sqlite") if options.database == "both" else (options.database,):
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-rating-"))
            url = stack.enter_context(postgresql()) if database == "postgresql" else f"sqlite:///{folder}/bench.sqlite3"
            environment = {
                **os.environ,
                "DEBUG": "off",
                "SECRET_KEY": "only-for-this-measurement-" + "x" * 40,
                "ALLOWED_HOSTS": "testserver",
                "HTTPS": "off",
                "ALLOW_SQLITE": "on",
                "DATABASE_URL": url,
                "MEDIA_ROOT": f"{folder}/media",
                "STATIC_ROOT": f"{folder}/static",
                "CELERY_TASK_ALWAYS_EAGER": "on",
                "LOG_LEVEL": "ERROR",
            }
            (Path(folder) / "static").mkdir()
            subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=environment, check=True)
            command = [sys.executable, "-m", "bench.rating_request", "--here"]
            command += ["--ratings", str(options.ratings), "--participants", str(options.participants)]
            print(f"\n{database}")
            failed |= subprocess.run(command, cwd=PROJECT, env=environment, check=False).returncode != 0
    sys.exit(failed)


def measure(ratings: int, participants: int) -> bool:
    """Fill the database, rate, print; whether the bars are kept."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "scooter_site.settings"
    from scooter_site.wsgi import application

    start = time.perf_counter()
    study, image_ids = make_study()
    fill(study, image_ids, ratings)
    from studies.models import Rating

    print(f"  {Rating.objects.count():,} ratings stored in {time.perf_counter() - start:.0f} s")
    visitors = [Visitor(application, study, make_participant(study, image_ids)) for _ in range(participants)]
    statements = visitors[0].statements_of_next()
    for statement in statements:
        print(f"    {statement[:150]}")
    for visitor in visitors:
        visitor.rate()  # so that the first request's own costs are not counted
    cpu, wall = [], []
    while any(visitor.token for visitor in visitors):
        for visitor in visitors:
            if visitor.token:
                cpu_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
                visitor.rate()
                cpu.append((time.process_time_ns() - cpu_before) / 1e6)
                wall.append((time.perf_counter_ns() - wall_before) / 1e6)
    stored = Rating.objects.filter(trial__participation__in=[visitor.participation for visitor in visitors]).count()
    assert stored == participants * ITEMS, f"{stored} ratings of {participants * ITEMS}"
    mean = statistics.fmean(cpu)
    quick = statistics.quantiles(cpu, n=10)[0]
    print(f"  {len(statements)} statements, bar {STATEMENTS_BAR}; {len(cpu)} requests")
    print(
        f"  CPU mean {mean:.2f} ms, bar {CPU_BAR_MS} ms; median {statistics.median(cpu):.2f} ms, "
        f"p95 {percentile(cpu):.2f} ms, quickest tenth below {quick:.2f} ms"
    )
    print(f"  until the answer: median {statistics.median(wall):.2f} ms, p95 {percentile(wall):.2f} ms")
    return len(statements) <= STATEMENTS_BAR and mean <= CPU_BAR_MS


def percentile(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def make_study() -> tuple[Any, list[int]]:
    """A running study whose images have no files: none is looked at."""
    from imagedb.models import Attack, Image, ImageClass, ImageKind, TargetModel
    from studies.models import Study, StudyStatus

    attack = Attack.objects.create(name="Attack", slug="attack")
    model = TargetModel.objects.create(name="Model", slug="model")
    study = Study.objects.create(
        title="Bench", slug="bench", attack=attack, target_model=model, status=StudyStatus.RUNNING,
        corrupted_check_count=0, instructed_check_count=6,
    )  # fmt: skip
    image_class = ImageClass.objects.get(index=0)
    images = Image.objects.bulk_create(
        Image(
            kind=ImageKind.CLEAN, image_class=image_class, original_sha256=f"{number:064x}", original_bytes=1,
            original_filename="x.png", original_format="PNG", original_mode="RGB", original_crc32=0,
            rendition_sha256="0" * 64, rendition_bytes=1, rendition_crc32=0, width=1, height=1,
            original=f"o{number}", rendition=f"r{number}", thumbnail=f"t{number}",
        )
        for number in range(100)
    )  # fmt: skip
    return study, [image.pk for image in images]


def make_participant(study: Any, image_ids: list[int]) -> Any:
    """Somebody at the beginning of the main study; every eighteenth item is an instructed one."""
    from studies.models import Dataset, Participation, Trial

    dataset, _ = Dataset.objects.get_or_create(study=study, number=1)
    participation = Participation.objects.create(study=study, dataset=dataset, step="main")
    images = iter(image_ids)
    Trial.objects.bulk_create(
        Trial(participation=participation, position=position, kind="instructed", instructed_value=25)
        if position % 17 == 9 and position < 100
        else Trial(participation=participation, position=position, image_id=next(images))
        for position in range(1, ITEMS + 1)
    )
    return participation


def fill(study: Any, image_ids: list[int], ratings: int) -> None:
    """As many earlier participants as it takes."""
    from django.db import connection

    from studies.models import Participation, Trial

    template = make_participant(study, image_ids).pk
    is_sqlite = connection.vendor == "sqlite"
    random_uuid = "lower(hex(randomblob(16)))" if is_sqlite else "gen_random_uuid()"
    with connection.cursor() as cursor:
        tables: list[tuple[str, Any, str, dict[str, str]]] = [
            ("participation", Participation, "p", {"public_id": random_uuid}),
            ("trial", Trial, "t", {"token": random_uuid, "participation_id": "q.id"}),
        ]
        for name, model, alias, own in tables:
            columns = [str(field.column) for field in model._meta.concrete_fields if not field.primary_key]
            cursor.execute(
                COPIES[name].format(
                    columns=", ".join(columns),
                    values=", ".join(own.get(column, f"{alias}.{column}") for column in columns),
                    count=-(-ratings // ITEMS),
                    template=template,
                )
            )
        cursor.execute(COPIES["rating"].format(template=template))
        cursor.execute("ANALYZE")


class Visitor:
    """A browser that rates item after item; it calls the application as a WSGI server does."""

    def __init__(self, application: Any, study: Any, participation: Any) -> None:
        from django.http import HttpResponse
        from django.middleware.csrf import _get_new_csrf_string
        from django.urls import reverse

        from studies.selectors.items import unanswered_items
        from studies.views.access import COOKIE, remember

        response = HttpResponse()
        remember(response, participation)
        secret = _get_new_csrf_string()
        self.application, self.participation = application, participation
        self.address = reverse("studies:rate", args=[study.slug])
        self.headers = {
            "HTTP_COOKIE": f"{COOKIE}={response.cookies[COOKIE].coded_value}; csrftoken={secret}",
            "HTTP_X_CSRFTOKEN": secret,
            "HTTP_HOST": "testserver",
            "HTTP_ORIGIN": "http://testserver",
            "HTTP_USER_AGENT": "Mozilla/5.0",
            "HTTP_ACCEPT": "*/*",
            "CONTENT_TYPE": "application/json",
        }
        self.token: str | None = str(unanswered_items(participation.pk)[0].token)

    def rate(self) -> None:
        """Answer the current item and take the next from the answer."""
        body = json.dumps(
            {
                "token": self.token, "value": 37, "start_position": None, "response_ms": 2100,
                "first_interaction_ms": 900, "last_interaction_ms": 1800, "visible_ms": 2100, "focus_losses": 0,
                "shown_width": 1000, "shown_height": 750, "client_ms": 123456,
            }
        ).encode()  # fmt: skip
        environ = {
            "REQUEST_METHOD": "POST", "PATH_INFO": self.address, "SCRIPT_NAME": "", "QUERY_STRING": "",
            "SERVER_NAME": "testserver", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1",
            "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr, "wsgi.multithread": True, "wsgi.multiprocess": True, "wsgi.run_once": False,
            "CONTENT_LENGTH": str(len(body)), **self.headers,
        }  # fmt: skip
        statuses: list[str] = []
        response = self.application(environ, lambda status, headers: statuses.append(status))
        content = b"".join(response)
        response.close()
        assert statuses == ["200 OK"], (statuses, content[:500])
        trial = json.loads(content)["trial"]
        self.token = trial["token"] if trial else None

    def statements_of_next(self) -> list[str]:
        """The SQL of the next rating; BEGIN and COMMIT are no statements of it."""
        from django.db import connection

        seen: list[str] = []

        def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if not sql.startswith("BEGIN"):
                seen.extend(sql.split("; "))  # PostgreSQL is sent several at once
            return execute(sql, params, many, context)

        with connection.execute_wrapper(note):
            self.rate()
        return seen


if __name__ == "__main__":
    main()
