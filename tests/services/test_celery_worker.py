"""Recomputation with a real broker and real worker processes, some of which die."""

import os
import signal

import pytest

from tests.services.site import free_port, wait_until
from tests.services.valkey import kill_group, migrated_database, workplace

pytestmark = pytest.mark.services

MAKE_A_PAIR_WITH_RATINGS = """
import time
from django.db import transaction
from studies.signals import valid_ratings_changed
from tests import factories
from tests.leaderboard import rows
attack, target_model = factories.attack(), factories.target_model()
modified, clean = factories.modified_image(attack=attack, target_model=target_model), factories.clean_image()
rows.finished(rows.study(attack, target_model), [(modified, 80), (clean, 0)])
began = time.monotonic()
with transaction.atomic():
    valid_ratings_changed.send(sender=None, attack_id=attack.pk, target_model_id=target_model.pk)
print(time.monotonic() - began)
"""
ENTRIES = "SELECT participants, mean_modified, mean_clean, mean_difference FROM leaderboard_entry"
RIGHT = [(1, 80.0, 0.0, 80.0)]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return migrated_database(tmp_path_factory.mktemp("database"))


@pytest.fixture
def place(tmp_path, database):
    with workplace(tmp_path, database) as place:
        place.environment["GATE"] = str(tmp_path / "gate")
        yield place


def entry_is_right(place):
    return place.query(ENTRIES) == RIGHT


def test_a_change_of_ratings_reaches_the_leaderboard_through_a_worker(place):
    place.run(MAKE_A_PAIR_WITH_RATINGS)
    assert place.query(ENTRIES) == []
    with place.worker():
        wait_until(lambda: entry_is_right(place), "the row appears", 120)


def test_a_task_whose_process_is_killed_half_way_is_done_again(place, tmp_path):
    place.run(MAKE_A_PAIR_WITH_RATINGS)
    with place.worker("tests.services.gated_worker"):
        gate = tmp_path / "gate"
        wait_until(lambda: gate.exists() and gate.read_text(), "the worker is in the middle", 120)
        os.kill(int(gate.read_text()), signal.SIGKILL)
        wait_until(lambda: entry_is_right(place), "the row appears", 120)
    assert place.query("SELECT count(*) FROM leaderboard_board") == [(1,)]


def test_a_worker_killed_half_way_leaves_nothing_and_the_next_one_does_it(place, tmp_path):
    place.run(MAKE_A_PAIR_WITH_RATINGS)
    with place.worker("tests.services.gated_worker") as worker:
        gate = tmp_path / "gate"
        wait_until(lambda: gate.exists() and gate.read_text(), "the worker is in the middle", 120)
        kill_group(worker)
    assert place.query("SELECT count(*) FROM leaderboard_board") == [(0,)]
    assert place.query(ENTRIES) == []
    with place.worker():
        wait_until(lambda: entry_is_right(place), "the row appears", 120)
        # The message is delivered once more at most; it must find the work done.
        place.run("from leaderboard.tasks import recompute_pair\nrecompute_pair.delay(1, 1)")
        wait_until(
            lambda: (tmp_path / "worker.log").read_text().count("succeeded in") >= 2, "a second run is through", 120
        )
        assert place.query(ENTRIES) == RIGHT
    assert place.query("SELECT count(*) FROM leaderboard_board") == [(1,)]


def test_what_could_not_be_enqueued_is_found_by_the_reconciling_task(place):
    seconds = place.run(MAKE_A_PAIR_WITH_RATINGS, REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    assert float(seconds) < 8  # no request may hang on a broker that is away
    with place.worker():
        place.run("from leaderboard.tasks import recompute_outdated_entries\nrecompute_outdated_entries.delay()")
        wait_until(lambda: entry_is_right(place), "the row appears", 120)
