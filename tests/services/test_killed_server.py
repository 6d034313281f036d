"""Something is killed in the middle of a study: no acknowledged answer is lost, altered or stored twice.

Killed is the web server as a whole, its workers, or the database, which recovers or whose standby takes over. Bots walk
the study over HTTP and, as people do, open their link again when the site does not answer. The large version, a hundred
participants and a kill every twenty seconds, is ``python -m bench.load``; tests/flows/test_killed_server_browser.py
kills the server under a real browser.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import psycopg
import pytest
from django.db import DatabaseError, connection, connections

from bench.load.site import Server, make_durable
from studies import links
from studies.bots import Behaviour, Bot, Walk
from studies.flow import Outcome
from studies.models import PairTrial, Participation, PlateTrial, Rating
from tests import factories
from tests.services.postgresql import postgresql, postgresql_with_standby
from tests.services.site import PROJECT, database_url, production_server, wait_until

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


def kill_server(server: Server) -> None:
    server.kill()
    time.sleep(0.5)
    server.start()


def kill_workers(server: Server) -> None:
    """Every process that answers requests; the one that started them stays, and starts others."""
    before = children(server.pid)
    for process in before:
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: children(server.pid) and not before & children(server.pid), "there are new workers", 60)


def children(process: int) -> set[int]:
    found = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True, check=True).stdout
    return {int(child) for parent, child in map(str.split, found.splitlines()) if int(parent) == process}


def kill_database(server: Server) -> None:
    """One process of PostgreSQL, which then ends all others at once, and recovers from its log as after a crash."""
    with psycopg.connect(database_url()) as victim, suppress(psycopg.OperationalError):
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        victim.execute("SELECT 1")
    connection.close()


def fail_over(server: Server) -> None:
    """All processes of PostgreSQL, at once and for good; then its standby takes over.

    Its machine lives on and closes the connections, as one that dies with its power does not.
    """
    with psycopg.connect(database_url()) as primary:
        folder = primary.execute("SHOW data_directory").fetchone()[0]
    process = int((Path(folder) / "postmaster.pid").read_text().split()[0])
    with psycopg.connect(database_url(), target_session_attrs="standby", autocommit=True) as standby:
        for each in [process, *children(process)]:
            os.kill(each, signal.SIGKILL)
        time.sleep(1)  # until somebody has noticed
        standby.execute("SELECT pg_promote()")
    connection.close()


KILLS = [kill_server] if connection.vendor == "sqlite" else [kill_server, kill_workers, kill_database]
if "target_session_attrs" in connection.settings_dict["OPTIONS"]:
    KILLS = [fail_over]


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kill", KILLS)
def test_no_acknowledged_answer_is_lost_altered_or_stored_twice(tmp_path, kill):
    # No demonstration and no panel: links with ids of their own. Items enough for a kill in the midst of them.
    study = factories.running_study(clean_per_dataset=10, modified_per_dataset=10, participants_per_dataset=10)
    if kill is kill_database:
        # As it is by itself; the tests' servers do not write their log at each commit. Before the first answer, for it
        # takes each connection a moment to know.
        make_durable(database_url())
    server = production_server(tmp_path)
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
            while (walk := walked(bot, address)).error and time.monotonic() < deadline:
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
            kill(server)
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


def walked(bot: Bot, address: str) -> Walk:
    """As far as the bot gets; it looks up the right answers in the database, and so notices that it is gone."""
    try:
        return bot.walk(address)
    except DatabaseError as error:
        connections.close_all()
        return Walk(error=str(error))


@pytest.mark.services
@pytest.mark.parametrize("database", [postgresql, postgresql_with_standby])
def test_the_same_on_postgresql(database):
    with database() as url:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider", "-k", "no_acknowledged"],
            cwd=PROJECT,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, f"{run.stdout[-10_000:]}\n{run.stderr[-2_000:]}"
