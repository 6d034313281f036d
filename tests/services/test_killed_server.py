"""The web server is killed in the middle of a study: no acknowledged answer is lost, altered or stored twice.

Bots walk the study over HTTP and, as people do, open their link again when the site does not answer. The large version,
a hundred participants and a kill every twenty seconds, is ``python -m bench.load``.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from django.conf import settings
from django.db import connection, connections

from bench.load.site import Server, procfile
from studies import links
from studies.bots import Behaviour, Bot
from studies.flow import Outcome
from studies.models import PairTrial, Participation, PlateTrial, Rating
from tests import factories
from tests.services.postgresql import postgresql
from tests.services.site import PROJECT, free_port, wait_until

PARTICIPANTS = 6
COME_BACK_WITHIN_SECONDS = 60


class Ledger(httpx.HTTPTransport):
    """Notes every answer that was sent, and whether the server acknowledged it: token -> value."""

    def __init__(self, acknowledged: dict[str, str], enough: threading.Event) -> None:
        super().__init__()
        self.acknowledged, self.enough = acknowledged, enough
        self.twice: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.method != "POST":
            return response
        response.read()  # acknowledged is what arrived whole
        if response.status_code == 200:
            posted = json.loads(request.content)
            self.note(posted["token"], str(posted["value"]))
        elif response.status_code == 303:
            posted = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
            if "token" in posted:
                self.note(posted["token"], posted["answer"])
        return response

    def note(self, token: str, value: str) -> None:
        if token in self.acknowledged:
            self.twice.append(token)
        self.acknowledged[token] = value
        if len(self.acknowledged) > 30:
            self.enough.set()


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_no_acknowledged_answer_is_lost_altered_or_stored_twice(tmp_path):
    # No demonstration and no panel: links with ids of their own. Items enough for a kill in the midst of them.
    study = factories.running_study(clean_per_dataset=10, modified_per_dataset=10, participants_per_dataset=10)
    server = start_server(tmp_path)
    acknowledged: dict[str, str] = {}
    enough = threading.Event()
    ledgers = [Ledger(acknowledged, enough) for _ in range(PARTICIPANTS)]

    def take_part(number: int) -> tuple[Outcome | None, int]:
        client = httpx.Client(
            base_url=server.url, transport=ledgers[number], follow_redirects=True, timeout=30,
            headers={"User-Agent": "Mozilla/5.0"},
        )  # fmt: skip
        bot = Bot(study, client, Behaviour(outcome=Outcome.COMPLETED), random.Random(number))
        session = f"test-{number}"
        address = f"/s/{study.slug}/?test={links.test_token(study)}&SESSION_ID={session}&PROLIFIC_PID={session}"
        interruptions = 0
        deadline = time.monotonic() + COME_BACK_WITHIN_SECONDS
        try:
            while (walk := bot.walk(address)).error and time.monotonic() < deadline:
                interruptions += 1
                time.sleep(0.2)
            assert not walk.error, walk.error
            return walk.outcome, interruptions
        finally:
            client.close()
            connections.close_all()

    try:
        with ThreadPoolExecutor(PARTICIPANTS) as pool:
            walks = [pool.submit(take_part, number) for number in range(PARTICIPANTS)]
            assert enough.wait(timeout=60)
            server.kill()
            time.sleep(0.5)
            server.start()
            ends = [walk.result() for walk in walks]
    finally:
        server.stop()

    assert [outcome for outcome, _ in ends] == [Outcome.COMPLETED] * PARTICIPANTS
    assert sum(interruptions for _, interruptions in ends) > 0, "the kill came too late to interrupt anybody"
    # The server never asks again for what it has acknowledged.
    assert [ledger.twice for ledger in ledgers] == [[]] * PARTICIPANTS
    stored = [
        *Rating.objects.values_list("trial__token", "value"),
        *PlateTrial.objects.exclude(answered_at=None).values_list("token", "answer"),
        *PairTrial.objects.exclude(answered_at=None).values_list("token", "answer"),
    ]
    assert len(stored) == PARTICIPANTS * (3 + 3 + study.trial_count)
    stored_by_token = {str(token): str(value) for token, value in stored}
    assert len(stored_by_token) == len(stored)
    assert {token: stored_by_token.get(token) for token in acknowledged} == acknowledged
    assert Participation.objects.count() == PARTICIPANTS
    assert Rating.objects.count() == PARTICIPANTS * study.trial_count


def start_server(folder: Path) -> Server:
    """The site as the Procfile runs it, on this test's own database and files."""
    port = free_port()
    environment = {
        **os.environ,
        "DEBUG": "off",
        "SECRET_KEY": settings.SECRET_KEY,
        "ALLOWED_HOSTS": "127.0.0.1",
        "HTTPS": "off",
        "ALLOW_SQLITE": "on",
        "DATABASE_URL": database_url(),
        "MEDIA_ROOT": str(settings.MEDIA_ROOT),
        "STATIC_ROOT": str(folder / "static"),
        "PORT": str(port),
    }
    collect = [sys.executable, "manage.py", "collectstatic", "-v0", "--noinput"]
    subprocess.run(collect, cwd=PROJECT, env=environment, check=True)
    server = Server(procfile()[0], port=port, environment=environment, folder=PROJECT, log=folder / "web.log")
    server.start()
    wait_until(lambda: httpx.get(f"{server.url}/health/").status_code == 200, "the web server answers", 60)
    return server


def database_url() -> str:
    """The address of the test's database, which has another name than the settings say."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    before, _, query = os.environ["DATABASE_URL"].partition("?")
    return f"{before.rpartition('/')[0]}/{name}?{query}"


@pytest.mark.services
def test_the_same_on_postgresql():
    with postgresql() as url:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider", "-k", "no_acknowledged"],
            cwd=PROJECT,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, f"{run.stdout[-10_000:]}\n{run.stderr[-2_000:]}"
