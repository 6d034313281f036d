"""Connections on which nothing comes, or half a request, must not keep the site from those who ask."""

import socket
from contextlib import ExitStack

import httpx
import pytest

from scooter_site.gunicorn_config import SILENCE_SECONDS, threads, workers
from tests.services.site import production_server

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
ALL_THREADS = workers * threads


@pytest.fixture
def server(tmp_path):
    server = production_server(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def visitors(server):
    """Opens so many connections that all stay open until the test's end."""
    with ExitStack() as connections:

        def connect(number: int, sends: bytes) -> list[socket.socket]:
            opened = [
                connections.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(number)
            ]
            for each in opened:
                each.sendall(sends)
            return opened

        yield connect


def answers(server, within: float) -> bool:
    try:
        return httpx.get(f"{server.url}/health/", timeout=within).status_code == 200
    except httpx.TimeoutException:
        return False


def test_who_has_connected_and_says_nothing_takes_no_thread(server, visitors):
    # gunicorn by itself gives each of them a thread for five seconds: a minute until the last has had one.
    visitors(12 * ALL_THREADS, b"")
    assert answers(server, within=30)


def test_half_a_request_is_given_up(server, visitors):
    opened = visitors(ALL_THREADS, b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert answers(server, within=4 * SILENCE_SECONDS)
    for each in opened:
        each.settimeout(4 * SILENCE_SECONDS)
        while each.recv(1000):  # an answer that says so, or none: but then the end
            pass
