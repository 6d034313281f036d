"""The one way to declare and enqueue background work.

A task takes ids only, is acknowledged after it ran, is delivered again when its worker is lost, and so must be
safe to run twice. It is enqueued when the surrounding transaction has committed.
"""

import logging
from collections.abc import Callable
from typing import Any

from celery import Task, shared_task
from django.core.files.storage import storages
from django.db import OperationalError, transaction
from kombu.exceptions import OperationalError as BrokerUnavailable

logger = logging.getLogger(__name__)

# What a second try can mend; anything else is a bug and must be seen. The storage in use knows its own errors.
_private: Any = storages["private"]
RETRYABLE = (OperationalError, ConnectionError, TimeoutError, *_private.TRANSIENT_ERRORS)


def task(function: Callable[..., None]) -> Task:
    """Declare a task of the house: late acknowledgement, redelivery on worker loss, bounded retries."""
    return shared_task(
        acks_late=True,
        reject_on_worker_lost=True,
        ignore_result=True,
        autoretry_for=RETRYABLE,
        max_retries=5,
        retry_backoff=True,
        retry_backoff_max=300,
    )(function)


def enqueue(celery_task: Task, *ids: Any, countdown: float | None = None) -> None:
    """Run ``celery_task(*ids)`` in a worker once the current transaction has committed, ``countdown`` seconds later.

    A broker that is away does not fail the request: it is logged, and beat's reconciling tasks find the work.
    """

    def send() -> None:
        try:
            celery_task.apply_async(args=ids, countdown=countdown, retry=False)
        except (BrokerUnavailable, ConnectionError, TimeoutError):
            logger.exception("Could not enqueue %s; the next reconciling run will find it", celery_task.name)

    transaction.on_commit(send)
