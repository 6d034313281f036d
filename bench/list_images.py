"""How long a page of the API's list of images takes on a million images in PostgreSQL, and the admin's list.

    python -m bench.list_images --data /var/tmp/bench-postgresql

The first run fills the database (about ten minutes); later ones with the same folder use it again. Each question has
two filters or more and is asked as a visitor, as a member with an API token and as a superuser, over the whole stack of
middleware in this process. Printed are the time per question, the number of queries, and the 95th percentile of all.
"""

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import django

from tests.services.postgresql import postgresql

PROJECT = Path(__file__).resolve().parent.parent
LIST = "/api/v1/images/"
QUESTIONS = (
    "attack=attack-20&target_model=vit",
    "attack=attack-20&class_index=5",
    "attack=attack-3&max_linf=10",
    "attack=attack-20&max_ciede2000=0.001",
    "kind=clean&class_index=999",
    "family=generative&target_model=vgg19",
    "family=other&min_ssim=0.9999",
    "target_model=vgg19&min_l2=60",
    "kind=modified&max_linf=1",
    "min_ciede2000=40&target_model=vit",
    "min_confidence=0.999999&kind=modified",
    "attack=attack-20&min_confidence=0.9",
    "attack=attack-20&max_confidence=0.00001",
    "kind=clean&min_confidence=0.9&max_confidence=0.90001",
    "verified=false&kind=modified",
    "verified=false&kind=clean",
    "verified=true&attack=attack-20",
    "collection=small&kind=modified",
    "collection=large&attack=attack-20",
    "collection=small&attack=attack-20",
    "visibility=private&attack=attack-20",
    "visibility=private&kind=modified",
    "search=tabby&kind=modified",
    "search=attack&target_model=vit",
    "search=retriever&attack=attack-7",
    "search=palette%20tabby&kind=modified",
    "search=photographer&kind=clean",
    "search=png&class_index=5",
    "search=attack19&kind=modified",
    "search=00000293&kind=clean",
    "is_demo=true&kind=modified",
    "is_demo=false&kind=modified",
    "comparison=resampled&kind=modified",
)
ADMIN_LISTS = (
    "",
    "?kind__exact=modified",
    "?verified=no",
    "?verified=wrong",
    "?verified=yes&kind__exact=clean",
    "?q=tabby",
    "?q=00000293",
    "?visibility__exact=private",
    "?o=2",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the database; without it, one that is deleted at the end")
    parser.add_argument("--images", type=int, default=1_000_000, help="rows, half of them clean (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=10, help="how often each question is asked (default 10)")
    options = parser.parse_args()
    with postgresql(options.data) as url:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="scooter_site.settings",
            DATABASE_URL=url,
            DEBUG="on",  # as static files are not collected; the log of queries only makes it slower
            ALLOWED_HOSTS="testserver",
            THROTTLE_LISTS="off",
            LOG_LEVEL="ERROR",
        )
        django.setup()
        fill(options.images)
        measure_api(options.rounds)
        measure_admin(options.rounds)


def fill(images: int) -> None:
    """Migrate, and add the images if there are none."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from imagedb.models import Image

    call_command("migrate", verbosity=0)
    if Image.objects.exists():
        return
    print(f"Filling the database with {images:,} images ...", flush=True)
    statements = (PROJECT / "bench" / "list_images.sql").read_text(encoding="utf-8").split(";\n")
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            if code := "\n".join(line for line in statement.splitlines() if not line.startswith("--")).strip():
                cursor.execute(code, {"clean": images // 2})
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def measure_api(rounds: int) -> None:
    every: list[float] = []
    counts: set[int] = set()
    readers = {"visitor": client_of(None), "member": client_of("member"), "superuser": client_of("root")}
    for question in QUESTIONS:
        said = []
        for name, client in readers.items():
            times, queries = ask(client, f"{LIST}?{question}", rounds)
            every += times
            counts.add(queries)
            said.append(f"{name} {statistics.median(times):4.0f} ms ({queries} queries)")
        print(f"{question:60}", *said, sep="  ", flush=True)
    every.sort()
    print(
        f"{len(every)} requests: median {statistics.median(every):.0f} ms, p95 {every[int(len(every) * 0.95)]:.0f} ms, "
        f"longest {every[-1]:.0f} ms; {min(counts)} to {max(counts)} queries\n"
    )


def measure_admin(rounds: int) -> None:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="root"))
    for question in ADMIN_LISTS:
        times, queries = ask(client, f"/admin/imagedb/image/{question}", rounds)
        print(f"admin list {question:35} median {statistics.median(times):5.0f} ms, {queries} queries", flush=True)


def client_of(username: str | None) -> Any:
    """A client of the API: nobody, a member who has accepted the terms and is in the group, or a superuser."""
    from django.contrib.auth.models import Group, User
    from rest_framework.test import APIClient

    from imagedb import terms
    from imagedb.models import TermsAcceptance
    from scooter_site.accounts.models import ApiToken
    from scooter_site.accounts.tokens import create_token

    client = APIClient()
    if username is None:
        return client
    is_root = username == "root"
    user, _ = User.objects.get_or_create(username=username, defaults={"is_superuser": is_root, "is_staff": is_root})
    TermsAcceptance.objects.get_or_create(user=user, version=terms.CURRENT_VERSION)
    user.groups.add(Group.objects.get(name="Lab"))
    ApiToken.objects.filter(user=user).delete()
    client.credentials(HTTP_AUTHORIZATION=f"Token {create_token(user, 'bench')[1]}")
    return client


def ask(client: Any, address: str, rounds: int) -> tuple[list[float], int]:
    """Milliseconds of each request after a first one, and the number of queries."""
    from django.db import connection, reset_queries
    from django.test.utils import CaptureQueriesContext

    reset_queries()  # the log has an end
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address)
    if response.status_code != 200:
        raise SystemExit(f"{address}: {response.status_code} {response.content[:300]!r}")
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        client.get(address)
        times.append((time.perf_counter() - begun) * 1000)
    return times, len(queries)


if __name__ == "__main__":
    main()
