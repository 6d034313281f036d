"""Two workers recompute one pair, and ratings arrive in between: the newer numbers must stand."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from imagedb.models import Attack
from leaderboard import services
from leaderboard.models import Entry
from tests import factories
from tests.concurrency.threads import at_once
from tests.leaderboard import rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("is_locked", [False, True], ids=["without the lock", "with the lock"])
def test_old_numbers_overwrite_new_ones_without_the_lock_and_not_with_it(monkeypatch, is_locked):
    attack, target_model = factories.attack(), factories.target_model()
    image = factories.modified_image(attack=attack, target_model=target_model)
    study = rows.study(attack, target_model)
    rows.finished(study, [(image, 80)])
    first_has_read, second_is_done = threading.Event(), threading.Event()
    read = services.valid_ratings

    def read_and_dawdle(*pair):
        ratings = read(*pair)
        if not first_has_read.is_set():
            first_has_read.set()
            second_is_done.wait(timeout=2)  # in vain, if the second is kept waiting
        return ratings

    monkeypatch.setattr(services, "valid_ratings", read_and_dawdle)
    if not is_locked:
        # On SQLite it is the transaction that keeps others out, on PostgreSQL the lock within it.
        monkeypatch.setattr(services, "transaction", SimpleNamespace(atomic=nullcontext))
        monkeypatch.setattr(services, "lock_attack", lambda attack_id: Attack.objects.get(pk=attack_id))

    def first():
        services.recompute_entry(attack.pk, target_model.pk)

    def second():
        assert first_has_read.wait(timeout=30)
        rows.finished(study, [(image, 20)])
        services.recompute_entry(attack.pk, target_model.pk)
        second_is_done.set()

    assert at_once([first, second]) == [None, None]
    entry = Entry.objects.get()
    assert (entry.participants, entry.mean_modified) == ((2, 50.0) if is_locked else (1, 80.0))
