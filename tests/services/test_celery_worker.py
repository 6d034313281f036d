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
        place.run(FIND_WHAT_HAS_WAITED_FOR_LONG)
        wait_until(lambda: entry_is_right(place), "the row appears", 120)


FIND_WHAT_HAS_WAITED_FOR_LONG = """
from datetime import timedelta
from django.utils import timezone
from leaderboard.models import Recomputation
from leaderboard.tasks import recompute_outdated_entries
Recomputation.objects.update(requested_at=timezone.now() - timedelta(minutes=5))
recompute_outdated_entries.delay()
"""


ADD_A_RATING = """
from imagedb.models import Image
from leaderboard.services.recompute import recompute_pair
from studies.models import Study
from studies.signals import valid_ratings_changed
from tests.leaderboard import rows
study = Study.objects.get()
recompute_pair(study.attack_id, study.target_model_id)
rows.finished(study, [(Image.objects.get(kind="modified"), 20)])
valid_ratings_changed.send(sender=None, attack_id=study.attack_id, target_model_id=study.target_model_id)
"""


def test_a_worker_killed_half_way_leaves_the_old_row_until_the_new_one_is_whole(place, tmp_path):
    place.run(MAKE_A_PAIR_WITH_RATINGS)
    place.run(ADD_A_RATING)
    assert place.query(ENTRIES) == RIGHT
    with place.worker("tests.services.gated_worker") as worker:
        gate = tmp_path / "gate"
        wait_until(lambda: gate.exists() and gate.read_text(), "the worker is in the middle", 120)
        kill_group(worker)
    assert place.query(ENTRIES) == RIGHT
    assert place.query("SELECT count(*) FROM leaderboard_recomputation WHERE requested_at IS NOT NULL") == [(1,)]
    with place.worker():
        wait_until(lambda: place.query(ENTRIES) == [(2, 50.0, 0.0, 50.0)], "the new row appears", 120)


MAKE_A_BURST = """
from django.utils import timezone
from studies.flow import Outcome, Step
from studies.models import Participation, Rating, Trial
from studies.signals import valid_ratings_changed
from tests import factories
from tests.leaderboard import rows
attack, target_model = factories.attack(), factories.target_model()
images = [factories.modified_image(attack=attack, target_model=target_model) for _ in range(5)]
images += [image.source for image in images]
study, now = rows.study(attack, target_model), timezone.now()
ended = {"step": Step.END, "outcome": Outcome.COMPLETED, "finished_at": now}
people = Participation.objects.bulk_create(Participation(study=study, **ended) for _ in range(1000))
trials = Trial.objects.bulk_create(
    Trial(participation=person, position=place, image=image)
    for person in people for place, image in enumerate(images, 1)
)
Rating.objects.bulk_create(
    Rating(trial=trial, value=number * 7 % 201 - 100, first_interaction_ms=500) for number, trial in enumerate(trials)
)
for person in people:
    Participation.objects.filter(pk=person.pk).update(is_valid=True, validity_changed_at=timezone.now())
    valid_ratings_changed.send(sender=None, attack_id=attack.pk, target_model_id=target_model.pk)
"""


def test_ten_thousand_ratings_in_a_burst_are_a_handful_of_recomputations(place):
    """A thousand people end one after the other, each with ten ratings and a signal of their own."""
    with place.worker():
        place.run(MAKE_A_BURST)
        wait_until(
            lambda: place.query("SELECT participants, ratings FROM leaderboard_entry") == [(1000, 10_000)],
            "the row has all ratings",
            180,
        )
        wait_until(
            lambda: place.query("SELECT requested_at FROM leaderboard_recomputation") == [(None,)], "all is done", 60
        )
    ((runs,),) = place.query("SELECT runs FROM leaderboard_recomputation")
    assert 1 <= runs <= 6
