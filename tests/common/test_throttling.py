"""How often one may ask."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.cache import cache
from django.test import RequestFactory
from redis.exceptions import ConnectionError as RedisConnectionError
from rest_framework.test import APIClient

from scooter_site.common import throttling
from scooter_site.common.rates import Rate, parse_rate
from scooter_site.common.throttling import seconds_to_wait, take_back, who_asks

MIDNIGHT = 1_800_000_000 // 86400 * 86400
ADDRESS = "/api/v1/attacks/"


@pytest.fixture(autouse=True)
def empty_cache():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def rates(settings):
    def rate(**rates: str) -> None:
        settings.THROTTLE_RATES = {
            **settings.THROTTLE_RATES,
            **{scope: parse_rate(text) for scope, text in rates.items()},
        }

    return rate


def ask(second: float, who: str = "ada", scope: str = "lists") -> float | None:
    return seconds_to_wait(scope, who, now=lambda: MIDNIGHT + second)


def test_so_many_within_a_period_and_then_none(rates):
    rates(lists="3/minute")
    assert [ask(second) for second in (0, 1, 2)] == [None] * 3
    # Full until the first third of the next window has slid past.
    assert ask(3) == pytest.approx(57 + 20)
    assert ask(79.9) == pytest.approx(0.1)
    assert ask(80) is None
    assert ask(81) is not None


def test_no_burst_at_the_edge_of_two_windows(rates):
    """A fixed window would let 20 pass within two seconds."""
    rates(lists="10/minute")
    assert [ask(59) for _ in range(10)] == [None] * 10
    assert ask(61) == pytest.approx(5)
    assert ask(66) is None
    assert ask(66) is not None
    assert [ask(90) for _ in range(4)] == [None] * 4
    assert ask(90) is not None


def test_who_is_refused_does_not_wait_longer_for_having_asked(rates):
    rates(lists="2/minute")
    assert [ask(0), ask(0)] == [None, None]
    for _ in range(100):
        assert ask(10) is not None
    assert ask(90) is None


def test_what_came_to_nothing_can_be_taken_back(rates):
    rates(lists="2/minute")
    assert [ask(0), ask(0)] == [None, None]
    take_back("lists", "ada", now=lambda: MIDNIGHT + 1)
    assert ask(2) is None
    assert ask(3) is not None
    take_back("lists", "grace", now=lambda: MIDNIGHT + 1)  # who was not counted
    assert [ask(4, "grace") is None for _ in range(3)] == [True, True, False]


def test_a_long_pause_forgets(rates):
    rates(lists="1/second")
    assert ask(0) is None
    assert ask(0.5) is not None
    assert ask(5) is None


def test_scopes_and_people_are_counted_apart(rates):
    rates(lists="1/hour", files="1/hour")
    assert ask(0) is None
    assert ask(0) is not None
    assert ask(0, scope="files") is None
    assert ask(0, who="ben") is None


def test_off(rates):
    rates(lists="off")
    assert [ask(0) for _ in range(50)] == [None] * 50


def test_a_cache_that_is_away_stops_nobody(rates, monkeypatch, caplog):
    def away(*arguments: object, **options: object) -> None:
        raise RedisConnectionError("refused")

    rates(lists="1/hour")
    monkeypatch.setattr(throttling.cache, "get", away)
    assert [ask(0), ask(0)] == [None, None]
    assert "not throttled" in caplog.text


@pytest.mark.parametrize(
    "text", ["", "5", "5/", "0/minute", "-1/minute", "5/minutes", "x/minute", "٣/minute", "1.5/hour"]
)
def test_rates_that_are_none(text):
    with pytest.raises(ValueError, match="300/minute"):
        parse_rate(text)


def test_rates():
    assert parse_rate("300/minute") == Rate(300, 60)
    assert parse_rate("off") is None


def who(address: str, user: object = None) -> str:
    request = RequestFactory().get("/", REMOTE_ADDR=address)
    request.user = user or AnonymousUser()
    return who_asks(request)


def test_who_asks():
    assert who("192.0.2.1") != who("192.0.2.2")
    # One client has a whole network of IPv6 addresses.
    assert who("2001:db8:1:2::1") == who("2001:db8:1:2:ffff::9") != who("2001:db8:1:3::1")
    assert who("::ffff:192.0.2.1") != who("::ffff:192.0.2.2")
    assert who("192.0.2.1", User(pk=7)) == who("192.0.2.2", User(pk=7)) != who("192.0.2.1", User(pk=8))
    assert who("unix socket") == who("unix socket")


@pytest.mark.django_db
def test_the_api_says_when_to_come_back(rates):
    rates(lists="2/hour")
    client = APIClient()
    assert [client.get(ADDRESS).status_code for _ in range(2)] == [200, 200]
    answer = client.get(ADDRESS)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 5400
    assert "detail" in answer.json()
    # An address elsewhere, and an account, have a count of their own.
    assert client.get(ADDRESS, REMOTE_ADDR="192.0.2.9").status_code == 200
    client.force_login(User.objects.create_user("ada"))
    assert client.get(ADDRESS).status_code == 200


def test_addresses_are_not_kept_in_the_clear(rates, monkeypatch):
    keys = []
    monkeypatch.setattr(throttling.cache, "add", lambda key, *a, **o: keys.append(key))
    monkeypatch.setattr(throttling.cache, "incr", lambda key, by: 1)
    rates(lists="1/hour")
    ask(0, who=who("192.0.2.1"))
    assert keys
    assert "192.0.2.1" not in keys[0]
