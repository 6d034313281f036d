"""Two workers recompute one pair, and ratings arrive in between: the newer numbers must stand."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from leaderboard.models import Entry, Recomputation
from leaderboard.services import recompute
from tests import factories
from tests.concurrency.threads import at_once
from tests.leaderboard import rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def case():
    """A study with one participation, and the image it rated."""
    attack, target_model = factories.attack(), factories.target_model()
    image = factories.modified_image(attack=attack, target_model=target_model)
    study = rows.study(attack, target_model)
    rows.finished(study, [(image, 80)])
    return SimpleNamespace(study=study, image=image, pair=(attack.pk, target_model.pk))


def overtake(case, monkeypatch, name):
    """Recompute the pair twice at once: the first one dawdles in ``recompute.NAME``, where the second one passes."""
    first_is_there, second_is_done = threading.Event(), threading.Event()
    function = getattr(recompute, name)

    def dawdle(*args):
        result = function(*args)
        if not first_is_there.is_set():
            first_is_there.set()
            second_is_done.wait(timeout=2)  # in vain, if the second is kept waiting
        return result

    monkeypatch.setattr(recompute, name, dawdle)

    def first():
        recompute.recompute_pair(*case.pair)

    def second():
        assert first_is_there.wait(timeout=30)
        rows.finished(case.study, [(case.image, 20)])
        recompute.recompute_pair(*case.pair)
        second_is_done.set()

    assert at_once([first, second]) == [None, None]
    entry = Entry.objects.get()
    return entry.participants, entry.mean_modified


@pytest.mark.parametrize("is_checked", [False, True], ids=["without a second look", "with a second look"])
def test_what_was_read_before_newer_ratings_is_not_stored(case, monkeypatch, is_checked):
    if not is_checked:
        state = recompute.current_state(*case.pair)
        monkeypatch.setattr(recompute, "current_state", lambda *pair: state)
    assert overtake(case, monkeypatch, "valid_ratings") == ((2, 50.0) if is_checked else (1, 80.0))


@pytest.mark.parametrize("is_locked", [False, True], ids=["without the lock", "with the lock"])
def test_nobody_comes_between_the_second_look_and_the_store(case, monkeypatch, is_locked):
    if not is_locked:
        # On SQLite it is the transaction that keeps others out, on PostgreSQL the lock within it.
        monkeypatch.setattr(recompute, "transaction", SimpleNamespace(atomic=nullcontext))
        monkeypatch.setattr(recompute, "lock_pair", lambda row: Recomputation.objects.get(pk=row.pk))
    assert overtake(case, monkeypatch, "stored_board") == ((2, 50.0) if is_locked else (1, 80.0))


def test_reading_and_computing_keep_nobody_waiting(case, monkeypatch):
    in_transaction = []
    read = recompute.valid_ratings

    def read_and_look(*pair):
        in_transaction.append(recompute.transaction.get_connection().in_atomic_block)
        return read(*pair)

    monkeypatch.setattr(recompute, "valid_ratings", read_and_look)
    recompute.recompute_pair(*case.pair)
    assert in_transaction == [False]


def test_ratings_that_keep_coming_in_are_computed_in_the_end(case, monkeypatch):
    in_transaction = []
    read = recompute.valid_ratings

    def read_and_add(*pair):
        in_transaction.append(recompute.transaction.get_connection().in_atomic_block)
        ratings = read(*pair)
        if len(in_transaction) <= recompute.ATTEMPTS_WITHOUT_LOCK:
            rows.finished(case.study, [(case.image, 20)])
        return ratings

    monkeypatch.setattr(recompute, "valid_ratings", read_and_add)
    recompute.recompute_pair(*case.pair)
    assert in_transaction == [False, False, False, True]
    assert (Entry.objects.get().participants, Entry.objects.get().mean_modified) == (4, 35.0)
