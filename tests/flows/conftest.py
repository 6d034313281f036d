"""Real Chromium for the browser tests, and a count of what must not happen in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests import factories
from tests.browser import chromium_options


@pytest.fixture(autouse=True)
def _imagenet_classes(request: pytest.FixtureRequest) -> None:
    """What migrations put into the database, which an earlier test with transactions of its own may have emptied."""
    if "live_server" in request.fixturenames:
        request.getfixturevalue("live_server")
        factories.image_class()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(**chromium_options())
        yield running
        running.close()


class Faults:
    """Script errors, console messages, failed requests and error answers of one browser context."""

    def __init__(self, context: BrowserContext) -> None:
        self.found: list[str] = []
        context.on("weberror", lambda error: self.found.append(f"script: {error.error}"))
        context.on("console", self._console)
        context.on("response", self._response)
        context.on("requestfailed", self._failed)

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.found.append(f"console: {message.text}")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.found.append(f"{response.status} {response.url}")

    def _failed(self, request: Any) -> None:
        # Leaving a page cancels what it was still loading; that is no fault of the page.
        if request.failure != "net::ERR_ABORTED":
            self.found.append(f"{request.failure} {request.url}")


@pytest.fixture
def open_page(browser: Browser):
    """``with open_page(**options) as page``: a page in a browser of its own, which must end without any fault.

    With ``faults_expected=True`` they are not counted: for tests that break the network on purpose.
    """

    @contextmanager
    def opened(*, faults_expected: bool = False, **options: Any) -> Iterator[Page]:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        # Only what hangs takes this long: tests share the machine, and a first page also waits for its scripts.
        context.set_default_timeout(60_000)
        faults = Faults(context)
        yield context.new_page()
        context.close()
        assert faults_expected or faults.found == []

    return opened
