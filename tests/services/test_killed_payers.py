"""Real workers that pay: killed in the middle of a call, and two given the same run. Everybody is paid once."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from scooter_site.demo.fake_prolific import FakeProlific
from scooter_site.demo.fake_prolific.faults import Fault
from tests.services.site import wait_until
from tests.services.valkey import kill_group, migrated_database, workplace
from tests.studies.pay.people import paid_by_submission

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for pool processes in /proc"),
]

# In the order in which a run makes them. The first repeats nothing new, the second pays nothing, the third pays.
CALLS = ("bulk-approve/", "submissions/bonus-payments/", "/pay/")
PAYMENTS = "SELECT way, state, count(*) FROM studies_payment GROUP BY way, state ORDER BY way"
ALL_DONE = [("approve", "done", 6), ("bonus", "done", 4), ("return", "done", 2)]


@pytest.fixture
def fake():
    with FakeProlific() as running:
        running.faults.hang_seconds = 60
        yield running


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return migrated_database(tmp_path_factory.mktemp("database"))


@pytest.fixture
def place(tmp_path, database, fake):
    with workplace(tmp_path, database) as place:
        place.environment["PROLIFIC_API_URL"] = fake.url
        yield place


def calls(fake, what: str) -> int:
    return sum(what in request for request in fake.requests)


def confirm_a_run(place, times_enqueued: int = 1) -> None:
    place.run(f"from tests.services.people_to_pay import confirm_a_run\nconfirm_a_run({times_enqueued})")


def pool_process(worker) -> int:
    """The one process of a worker that runs tasks."""
    (child,) = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    return int(child)


def is_finished(place) -> bool:
    return place.query("SELECT count(*) FROM studies_paymentrun WHERE finished_at IS NOT NULL") == [(1,)]


def assert_everybody_is_paid_once(place, fake) -> None:
    assert place.query(PAYMENTS) == ALL_DONE
    found = sorted(paid_by_submission(fake).values())
    assert found == 4 * [[13]] + 6 * [[165]]
    assert calls(fake, "/pay/") == 1
    assert calls(fake, "request-return/") == 2


def test_workers_killed_before_they_learn_what_prolific_did_pay_everybody_once(place, fake):
    """One after the other dies waiting for an answer: its pool process, and with the last call the whole worker."""
    for call in CALLS:
        fake.fail(Fault.HANGS_AFTER_ACTING, call, times=1)
    with place.worker() as worker:
        confirm_a_run(place)
        for call in CALLS:
            before = calls(fake, call)
            wait_until(lambda call=call, before=before: calls(fake, call) > before, f"{call} is asked for", 120)
            if call != CALLS[-1]:
                os.kill(pool_process(worker), signal.SIGKILL)
        kill_group(worker)
    assert not is_finished(place)
    with place.worker():
        wait_until(lambda: is_finished(place), "the run is finished", 120)
    assert_everybody_is_paid_once(place, fake)


def test_two_workers_given_the_same_run_pay_once(place, fake, monkeypatch):
    both, next_fault = threading.Barrier(2), fake.faults.next

    def wait_for_the_other(request):
        """Let nobody set up bonuses before both workers want to."""
        if CALLS[1] in request:
            both.wait(timeout=25)  # the client itself waits for 30 seconds
        return next_fault(request)

    monkeypatch.setattr(fake.faults, "next", wait_for_the_other)
    log = place.folder / "worker.log"
    with place.worker(), place.worker():
        wait_until(lambda: log.exists() and log.read_text().count(" ready.") == 2, "both are ready", 120)
        confirm_a_run(place, times_enqueued=2)
        wait_until(lambda: log.read_text().count("succeeded in") == 2, "both are through", 120)
    assert is_finished(place)
    assert calls(fake, CALLS[1]) == 2
    assert_everybody_is_paid_once(place, fake)
