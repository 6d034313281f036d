"""How long the page of a board of 200 entries takes on PostgreSQL with nothing kept, and how heavy it is.

    python -m bench.board_page --requests 200

Asked over the whole stack of middleware in this process, as a visitor without an account; the cache is emptied before
every request. Printed are the 50th and 95th percentile of the server's time, which includes compressing, the number of
queries, and the weight of the page and of what it loads, compressed with gzip, without images.
"""

import argparse
import gc
import gzip
import os
import re
import statistics
import tempfile
import time
from typing import Any

import django

from tests.services.postgresql import postgresql

ENTRIES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    arguments = parser.parse_args()
    with postgresql() as url, tempfile.TemporaryDirectory() as media:
        os.environ.update(
            DATABASE_URL=url,
            MEDIA_ROOT=media,
            DEBUG="on",
            LOG_LEVEL="ERROR",
            DJANGO_SETTINGS_MODULE="scooter_site.settings",
        )
        django.setup()
        measure(arguments.requests)


def measure(requests: int) -> None:
    from django.conf import settings
    from django.core.cache import cache
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.urls import reverse

    from tests.leaderboard import boards

    call_command("migrate", verbosity=0)
    settings.DEBUG = False  # templates are kept compiled and queries not logged, as in production
    settings.ALLOWED_HOSTS = ["testserver"]
    board = boards.published(ENTRIES).board
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    # As gunicorn_config.py does for the workers.
    gc.collect()
    gc.freeze()
    client = Client(headers={"accept-encoding": "gzip"})
    pages = {
        "board": reverse("board", args=[board.slug]),
        "board, filtered and sorted": reverse("board", args=[board.slug]) + "?family=colour&sort=-difference",
        "entry": reverse("entry", args=[board.slug, *_first_pair(board)]),
        "CSV": reverse("board-table-file", args=[board.slug, "csv"]),
    }
    for name, address in pages.items():
        client.get(address)
        cache.clear()
        statements: list[str] = []

        def count(run: Any, sql: str, *rest: Any, to: list[str] = statements) -> Any:
            to.append(sql)
            return run(sql, *rest)

        with connection.execute_wrapper(count):
            response = client.get(address)
        assert response.status_code == 200, (address, response.status_code)
        seconds = []
        for _ in range(requests):
            cache.clear()
            start = time.perf_counter()
            client.get(address)
            seconds.append(time.perf_counter() - start)
        p50, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
        text = gzip.decompress(response.content)
        print(
            f"{name:28} p50 {1000 * p50:6.1f} ms  p95 {1000 * p95:6.1f} ms  {len(statements):2} queries  "
            f"{len(response.content) / 1000:6.1f} kB of {len(text) / 1000:.0f} kB"
        )
        if name == "board":
            print(f"{'its styles and scripts':28} {_assets(text.decode()):43.1f} kB")


def _first_pair(board: Any) -> tuple[str, str]:
    from leaderboard.models import Entry

    entry = Entry.objects.filter(snapshot__board=board, snapshot__number=1).select_related("attack", "target_model")[0]
    return entry.attack.slug, entry.target_model.slug


def _assets(page: str) -> float:
    """Kilobytes, compressed, of the style sheets and scripts that a page names."""
    from django.contrib.staticfiles import finders

    names = set(re.findall(r'(?:href|src)="/static/([^"]+\.(?:css|js|svg))"', page))
    contents = [open(str(finders.find(name)), "rb").read() for name in sorted(names)]  # noqa: SIM115
    return sum(len(gzip.compress(content, 6)) for content in contents) / 1000


if __name__ == "__main__":
    main()
