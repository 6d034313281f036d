"""The stand-in for Prolific, served for each test, and a client of it that does not wait between tries."""

import pytest

from scooter_site.demo.fake_prolific import FakeProlific
from scooter_site.demo.fake_prolific.world import TOKEN
from studies.recruitment.client import ProlificClient


@pytest.fixture
def fake():
    with FakeProlific() as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """How long the client would have waited between its tries."""
    return []


@pytest.fixture
def prolific(fake, waits):
    with ProlificClient(TOKEN, base_url=fake.url, sleep=waits.append, timeout=0.5) as client:
        yield client
