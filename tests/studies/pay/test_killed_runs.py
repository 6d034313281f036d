"""A worker that is killed at any point of a payment run: after a restart nobody was paid twice and nobody is missing.

A point is before every statement to the database and every request to the service: nothing else that a worker does is
seen by anybody, so that a kill after one of them is one before the next. The killed worker's transaction is rolled
back, as by a lost connection, and all that it knew is gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pytest
from django.db import connection
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import Payment, PaymentRun, PaymentState
from studies.selectors.payments import due_now
from studies.services.payment_execution import execute
from tests.studies.pay.people import (
    completed,
    confirmed_run,
    failed_comprehension,
    paid_by_submission,
    returned_screen_out,
    say_unpaid,
    session,
)

pytestmark = pytest.mark.django_db(transaction=True)

# More than a run has; that it comes to its end before that is part of the test.
POINTS = 200
PARTS = 6  # each does every sixth point


class Killed(BaseException):
    """The worker is no more. No Exception, as nothing may catch it."""


@contextmanager
def killed_at(point: int, monkeypatch) -> Iterator[list[int]]:
    """Raise Killed at this point; from 0. Gives a list with the number of points passed."""
    passed = [0]

    def pass_point() -> None:
        here = passed[0]
        passed[0] += 1
        if here >= point:
            raise Killed

    def statement(run, sql, params, many, context):
        pass_point()
        return run(sql, params, many, context)

    original = httpx.Client.request

    def request(*args, **kwargs):
        pass_point()
        return original(*args, **kwargs)

    with monkeypatch.context() as patched, connection.execute_wrapper(statement):
        patched.setattr(httpx.Client, "request", request)
        try:
            yield passed
        except Killed:
            passed.append(-1)


def restart(run: PaymentRun) -> None:
    """The next worker's turns, long after the first was killed."""
    for _ in range(4):
        hours_ago = timezone.now() - timedelta(hours=2)
        run.batches.filter(pay_requested_at__isnull=False).update(pay_requested_at=hours_ago)
        Payment.objects.filter(claimed_at__isnull=False).update(claimed_at=hours_ago)
        execute(run.pk)
        run.refresh_from_db()
        if run.finished_at:
            break


@pytest.fixture
def people(fake, published):
    """Two to approve, two bonuses, one to ask for a return; and what each must get in the end."""
    return {
        session(completed(fake, published)): [165],
        session(completed(fake, published, failed_checks=1)): [165],
        session(returned_screen_out(fake, published)): [13],
        session(returned_screen_out(fake, published)): [13],
        session(failed_comprehension(fake, published)): [],
    }


def forget(fake) -> None:
    """The same people, not paid yet; and what we know of it."""
    fake.world.payments.clear()
    fake.world.batches.clear()
    fake.world.messages.clear()
    fake.requests.clear()
    fake.faults.rules.clear()
    for one in fake.world.submissions.values():
        one["bonuses"], one["return_requested"] = [], None
        if one["status"] == "APPROVED":
            one["status"] = "AWAITING REVIEW"


def one_more_run(published, payer) -> PaymentRun:
    Payment.objects.all().delete()
    for run in PaymentRun.objects.all():
        run.batches.all().delete()
        run.delete()
    published.study.submissions.all().delete()
    return confirmed_run(published, payer)


def go_on_until_paid(fake, published, payer, run: PaymentRun) -> bool:
    """Restart; where it stays unclear whether bonuses were paid, a person says they were not. Whether one had to."""
    restart(run)
    unclear = run.payments.filter(state=PaymentState.CLAIMED).exists()
    if unclear:
        say_unpaid(run)
        restart(confirmed_run(published, payer))
    return unclear


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_any_point_everybody_is_paid_once(fake, published, payer, people, monkeypatch, part):
    asked = 0
    for point in range(part, POINTS, PARTS):
        forget(fake)
        run = one_more_run(published, payer)
        with killed_at(point, monkeypatch) as passed:
            execute(run.pk)
        if passed[-1] != -1:
            assert point > 40  # it came to its end, and there are no further points
            break
        asked += go_on_until_paid(fake, published, payer, run)
        found = paid_by_submission(fake)
        assert found == {one: amounts for one, amounts in people.items() if amounts}, f"killed at point {point}"
        assert len(fake.world.messages) == 1
        assert due_now(published) == []
        assert not Payment.objects.filter(state__in=[PaymentState.PLANNED, PaymentState.CLAIMED]).exists()
    else:
        pytest.fail(f"There are more than {POINTS} points: raise POINTS.")
    # Between the claim and the service's doing it there are few points; elsewhere nobody has to be asked.
    assert asked <= 2


@pytest.mark.parametrize("part", range(2))
def test_killed_while_the_next_worker_meets_a_service_in_trouble(fake, published, payer, people, monkeypatch, part):
    """The restart loses answers too: to the set-up, to the payment and to the approval."""
    for point in range(part * 10, POINTS, 20):
        forget(fake)
        run = one_more_run(published, payer)
        with killed_at(point, monkeypatch) as passed:
            execute(run.pk)
        if passed[-1] != -1:
            break
        fake.fail(Fault.LOST_AFTER_ACTING, "bonus-payments", times=2)
        fake.fail(Fault.SERVER_ERROR_AFTER_ACTING, "bulk-approve", times=1)
        go_on_until_paid(fake, published, payer, run)
        assert paid_by_submission(fake) == {one: amounts for one, amounts in people.items() if amounts}
