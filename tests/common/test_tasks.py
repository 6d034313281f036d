"""Background work: enqueued after the commit, and a broker that is away fails no request."""

import pytest
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerUnavailable

from scooter_site.common.tasks import enqueue, task

ran: list[int] = []


@task
def note(number: int) -> None:
    ran.append(number)


@pytest.fixture(autouse=True)
def nothing_ran():
    ran.clear()


def test_settings_of_every_task():
    assert (note.acks_late, note.reject_on_worker_lost, note.ignore_result, note.max_retries) == (True, True, True, 5)


@pytest.mark.django_db
def test_runs_after_the_commit_only(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        enqueue(note, 1)
        assert ran == []
    assert ran == [1]


@pytest.mark.django_db
def test_does_not_run_after_a_roll_back(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        enqueue(note, 1)
        transaction.set_rollback(True)
    assert ran == []


@pytest.mark.django_db
@pytest.mark.parametrize("error", [BrokerUnavailable, ConnectionError, TimeoutError])
def test_a_broker_that_is_away_is_logged(django_capture_on_commit_callbacks, monkeypatch, caplog, error):
    def fail(**options):
        raise error("away")

    monkeypatch.setattr(note, "apply_async", fail)
    with django_capture_on_commit_callbacks(execute=True):
        enqueue(note, 1)
    assert "Could not enqueue" in caplog.text
