"""How often one account or address may ask: counted atomically, so that many requests at once cannot slip through.

REST framework's own throttles read a list of moments, add to it and write it back: of many requests at the same moment
each sees the others' absence. Here the cache's own increment decides. Two windows of a period each make it slide: what
was let through in the window before counts by the share of it that is still within the last period.
"""

import logging
import math
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from scooter_site.common.client_address import client_address
from scooter_site.common.rates import Rate

if TYPE_CHECKING:  # it reads the settings, which name this module
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)

LISTS = "lists"


def seconds_to_wait(scope: str, who: str, now: Callable[[], float] = time.time) -> float | None:
    """Count one request of ``who`` (an account or address); None lets it pass, else in how many seconds to ask again.

    Rates are the setting THROTTLE_RATES by scope. A request that is refused does not count. When the cache is away,
    requests pass, and it is logged: what is throttled is public reading, not a secret.
    """
    rate = settings.THROTTLE_RATES[scope]
    if rate is None:
        return None
    try:
        return _count(rate, f"throttle-{scope}-{_digest(who)}", now())
    except (RedisError, OSError):
        logger.exception("The cache does not answer: requests are not throttled")
        return None


def take_back(scope: str, who: str, now: Callable[[], float] = time.time) -> None:
    """Uncount one request that ``seconds_to_wait`` let pass and that came to nothing."""
    rate = settings.THROTTLE_RATES[scope]
    if rate is None:
        return
    try:
        _increment(f"throttle-{scope}-{_digest(who)}-{now() // rate.seconds:.0f}", -1)
    except (RedisError, OSError):
        logger.exception("The cache does not answer: a request that came to nothing stays counted")


def _count(rate: Rate, key: str, now: float) -> float | None:
    window, elapsed = divmod(now, rate.seconds)
    current, before = f"{key}-{window:.0f}", f"{key}-{window - 1:.0f}"
    passed_before = cache.get(before, 0)
    still_counts = passed_before * (1 - elapsed / rate.seconds)
    cache.add(current, 0, timeout=2 * rate.seconds)
    count = _increment(current, 1)
    if still_counts + count <= rate.count:
        return None
    passed = _increment(current, -1)
    if passed < rate.count and passed_before:
        # When enough of the window before has slid out.
        return max(rate.seconds * (1 - (rate.count - passed - 1) / passed_before) - elapsed, 0)
    # All of this window's: in the next one, when the first of them slides out.
    return rate.seconds - elapsed + rate.seconds / rate.count


def _increment(key: str, by: int) -> int:
    try:
        return cache.incr(key, by)
    except ValueError:  # the cache, full, has thrown it out since it was added
        cache.add(key, max(by, 0))
        return max(by, 0)


def _digest(who: str) -> str:
    # Addresses are stored nowhere in the clear.
    return salted_hmac("scooter_site.common.throttling", who).hexdigest()


def who_asks(request: HttpRequest | Request) -> str:
    """The account, or for requests without one the address; of IPv6 the network of 64 bits that one client has."""
    if request.user.is_authenticated:
        return f"account {request.user.pk}"
    plain = request._request if isinstance(request, Request) else request
    return address_of(plain)


def address_of(request: HttpRequest) -> str:
    """Where the request comes from, as far as throttles tell addresses apart."""
    address = client_address(request)
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"address {address}"
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return f"network {int(parsed) >> 64:x}"
    return f"address {address}"


class ScopeThrottle(BaseThrottle):
    """The throttle of all API endpoints, by the view's or action's ``throttle_scope``; lists, if it names none."""

    def __init__(self) -> None:
        self._wait: float | None = None

    def allow_request(self, request: Request, view: "APIView") -> bool:
        self._wait = seconds_to_wait(getattr(view, "throttle_scope", LISTS), who_asks(request))
        return self._wait is None

    def wait(self) -> float | None:
        return None if self._wait is None else max(math.ceil(self._wait), 1)


def document_throttling(result: dict[str, Any], **options: Any) -> dict[str, Any]:
    """For the schema (drf-spectacular's hook): what every endpoint may answer, as all of them are throttled."""
    for path in result["paths"].values():
        for method, operation in path.items():
            if method in {"get", "post", "put", "patch", "delete"}:
                operation["responses"].setdefault("429", TOO_MANY_REQUESTS)
    return result


TOO_MANY_REQUESTS = {
    "description": "Too many requests. Ask again after the seconds in Retry-After.",
    "headers": {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "required": True}},
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}
        }
    },
}
