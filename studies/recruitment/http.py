"""Requests to Prolific: time limits, repeats, both shapes of errors and both styles of pages. Knows no endpoint."""

import logging
import random
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, urlsplit

import httpx

from studies.recruitment.errors import (
    Ambiguous,
    NotAllowed,
    NotFound,
    ProlificError,
    Refused,
    TooManyRequests,
    Unavailable,
    error_text,
)

logger = logging.getLogger(__name__)

Value = TypeVar("Value")
TRIES = 5
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
# Longer to read than to connect: creating a study takes seconds.
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
# Client errors in name only: a request that took too long (408), or came too early (425).
PASSING = {408, 425}
LONGEST_EXCERPT = 300  # characters of a page that came in place of an answer
MOST_PAGES = 1000  # a service whose pages never end must not hold a worker for ever


class Repeat(Enum):
    """When a request may be sent again."""

    SAFE = "safe"  # doing it twice is doing it once: after any failure of the server or the way there
    IF_NOT_DONE = "if_not_done"  # only where the service has certainly not done it: 429, or no connection
    NEVER = "never"  # payments: whoever asks decides


class Connection:
    """One account at the service. Use as a context manager; not for several threads.

    ``sleep`` gets the seconds to wait between tries; ``tries`` is how often a repeatable request is sent at most.
    """

    def __init__(
        self,
        token: str,
        *,
        base_url: str,
        timeout: httpx.Timeout | float = TIMEOUT,
        tries: int = TRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tries = tries
        self._sleep = sleep
        # Proxies of the environment are believed, redirects are not: the token goes to one host only.
        self._http = httpx.Client(
            base_url=base_url,
            timeout=timeout,
            headers={"Authorization": f"Token {token}"},
            follow_redirects=False,
            verify=_certificates(),
        )

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        repeat: Repeat,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """The good answer (2xx). ``operation`` names the call in errors and logs, which must not hold ids.

        Raises a ProlificError.
        """
        tries = 1 if repeat == Repeat.NEVER else self._tries
        for number in range(1, tries + 1):
            try:
                return self._once(operation, method, path, repeat=repeat, json=json, params=params)
            except (TooManyRequests, Unavailable) as error:
                if number == tries:
                    raise
                # Full jitter, so that workers that were refused together do not come back together.
                longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (number - 1))
                wait = random.uniform(longest / 2, longest)  # noqa: S311 - no secret
                logger.info("%s; trying again in %.1f s", error, wait)
                self._sleep(wait)
        raise AssertionError("unreachable: the last try returns or raises")

    def _once(
        self, operation: str, method: str, path: str, *, repeat: Repeat, json: Any, params: Mapping[str, Any] | None
    ) -> httpx.Response:
        # "from None": httpx's own errors carry the request, with the token and ids.
        try:
            response = self._http.request(method, path, json=json, params=params)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise Unavailable(operation, text="Prolific could not be reached.") from None
        except httpx.HTTPError:
            raise _lost_answer(operation, repeat) from None
        if response.is_success:
            return response
        raise _error(operation, response, repeat)

    def ask(
        self,
        operation: str,
        method: str,
        path: str,
        read: Callable[[Mapping[str, Any]], Value],
        *,
        repeat: Repeat = Repeat.SAFE,
        json: Any = None,
    ) -> Value:
        """What ``read`` makes of the object in the good answer. Raises a ProlificError."""
        response = self.request(operation, method, path, repeat=repeat, json=json)
        return understood(operation, response, lambda body: read(_object(body)), repeat)

    def rows(
        self,
        operation: str,
        path: str,
        read: Callable[[Mapping[str, Any]], Value],
        *,
        params: Mapping[str, Any] | None = None,
        key: str = "id",
        page_size: int = 100,
        by_page: bool = False,
    ) -> Iterator[Value]:
        """What ``read`` makes of every row of a list, each once, over all its pages.

        The service counts pages (``page``, ``page_size``) or rows (``limit``, ``offset``), by endpoint: ``by_page``.
        The address of the next page is followed where it is given.
        """
        seen: set[Any] = set()
        asked: dict[str, Any] = {**(params or {}), **({"page_size": page_size} if by_page else {"limit": page_size})}
        received = 0
        for number in range(1, MOST_PAGES + 1):
            response = self.request(operation, "GET", path, repeat=Repeat.SAFE, params=asked)
            page = understood(operation, response, lambda body: _Page.of(body, key, read))
            received += len(page.rows)
            for row_id, row in page.rows:
                if row_id not in seen:
                    seen.add(row_id)
                    yield row
            if not page.rows or page.is_whole_list:
                return
            if page.following:
                asked = page.following
                continue
            if page.has_links or (len(page.rows) < page_size if page.count is None else received >= page.count):
                return
            asked = {**asked, **({"page": number + 1} if by_page else {"offset": received})}
        raise ProlificError(operation, text=f"The list did not end after {MOST_PAGES} pages.")


@dataclass(frozen=True)
class _Page(Generic[Value]):
    """A page of a list. ``following``: the query of the next page's address; only that, as the token must not follow
    an address to another host.
    """

    rows: list[tuple[Any, Value]]  # with the value of the key by which each is known
    is_whole_list: bool = False
    following: dict[str, Any] | None = None
    has_links: bool = False
    count: int | None = None

    @classmethod
    def of(cls, body: Any, key: str, read: Callable[[Mapping[str, Any]], Value]) -> "_Page[Value]":
        if isinstance(body, list):
            return cls([(row[key], read(row)) for row in body], is_whole_list=True)
        body = _object(body)
        following = ((body.get("_links") or {}).get("next") or {}).get("href")
        count = (body.get("meta") or {}).get("count")
        return cls(
            rows=[(row[key], read(row)) for row in body["results"]],
            following=dict(parse_qsl(urlsplit(following).query)) if following else None,
            has_links="_links" in body,
            count=None if count is None else int(count),
        )


def understood(
    operation: str, response: httpx.Response, read: Callable[[Any], Value], repeat: Repeat = Repeat.SAFE
) -> Value:
    """What ``read`` makes of the JSON of a good answer. One that it can make nothing of is a failure of the service.

    It was asked all the same: where that must not be repeated, nobody knows what it has done.
    """
    kind = ProlificError if repeat == Repeat.SAFE else Ambiguous
    status = response.status_code
    try:
        body = response.json()
    except ValueError:
        text = f"The answer is no JSON: {response.text.strip()[:LONGEST_EXCERPT] or 'it is empty'}"
        raise kind(operation, status=status, text=text) from None
    try:
        return read(body)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        # Only words of an error are shown, and no other content: it may hold what is not to be kept, as IP addresses.
        said = error_text(body, "")
        text = f"The answer has another form than expected ({type(error).__name__}: {error}). {said}".rstrip()
        raise kind(operation, status=status, text=text) from None


def _object(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise TypeError(f"{type(body).__name__} in place of an object")
    return body


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it takes longer than many a request."""
    return httpx.create_ssl_context()


def _lost_answer(operation: str, repeat: Repeat) -> ProlificError:
    if repeat == Repeat.SAFE:
        return Unavailable(operation, text="Prolific did not answer in time.")
    return Ambiguous(operation, text="Prolific did not answer in time: it may have done it or not.")


def _error(operation: str, response: httpx.Response, repeat: Repeat) -> ProlificError:
    try:
        body = response.json()
    except ValueError:
        body = None
    status = response.status_code
    text = error_text(body, response.text)
    if status == 429:
        return TooManyRequests(operation, status=status, text=text)
    if status >= 500 or status in PASSING:
        kind = Unavailable if repeat == Repeat.SAFE else Ambiguous
        return kind(operation, status=status, text=text)
    if (status < 400 or status == 409) and repeat != Repeat.SAFE:
        return Ambiguous(
            operation, status=status, text=text
        )  # sent elsewhere, or in conflict with its having been done
    kinds: dict[int, type[ProlificError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound}
    return kinds.get(status, Refused)(operation, status=status, text=text)
