"""Background work: enqueued after the commit, and a broker that is away fails no request."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerUnavailable

from scooter_site.celery import app
from scooter_site.common.tasks import RETRYABLE, enqueue, task

PROJECT_APPS = ("imagedb", "studies", "leaderboard")

ran: list[int] = []


@task
def note(number: int) -> None:
    ran.append(number)


@pytest.fixture(autouse=True)
def nothing_ran():
    ran.clear()


def project_tasks():
    """All tasks of the project, whoever declared them and how."""
    for name in PROJECT_APPS:
        import_module(f"{apps.get_app_config(name).name}.tasks")
    return [app.tasks[name] for name in sorted(app.tasks) if name.split(".")[0] in PROJECT_APPS]


def test_every_part_has_tasks():
    assert {task.name.split(".")[0] for task in project_tasks()} == set(PROJECT_APPS)


@pytest.mark.parametrize("declared", project_tasks(), ids=lambda declared: declared.name)
def test_settings_of_every_task(declared):
    """A worker that is killed loses no work, and what a second try can mend is tried again, but not for ever."""
    assert (declared.acks_late, declared.reject_on_worker_lost, declared.ignore_result) == (True, True, True)
    assert (declared.max_retries, declared.retry_backoff, declared.retry_backoff_max) == (5, True, 300)
    assert tuple(declared.autoretry_for) == RETRYABLE


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
