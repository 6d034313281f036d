"""Workers recompute a pair while ratings arrive, rules change or a person publishes: nothing is lost or overwritten."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from leaderboard.models import Board, Entry, Recomputation
from leaderboard.services import publication, recompute
from leaderboard.services.requests import request_recomputation
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
        monkeypatch.setattr(recompute, "lock_drafts", lambda drafts: None)
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


def test_what_is_being_published_keeps_its_files(case, monkeypatch):
    recompute.recompute_pair(*case.pair)
    before = Entry.objects.get()
    entries_were_read, is_stored = threading.Event(), threading.Event()
    draft_entries = publication.draft_entries

    def dawdle(draft):
        entries = draft_entries(draft)
        entries_were_read.set()
        is_stored.wait(timeout=2)  # in vain, if storing is kept waiting
        return entries

    monkeypatch.setattr(publication, "draft_entries", dawdle)

    def replace():
        assert entries_were_read.wait(timeout=30)
        rows.finished(case.study, [(case.image, 20)])
        recompute.recompute_pair(*case.pair)
        is_stored.set()

    snapshot, _ = at_once([lambda: publication.publish(before.snapshot.board), replace])
    published, draft = snapshot.entries.get(), Entry.objects.get(pk=before.pk)
    assert (published.mean_modified, draft.mean_modified) == (80.0, 50.0)
    for entry in (published, draft):
        assert entry.inputs.storage.exists(entry.inputs.name)


def test_rules_that_change_while_a_request_waits_are_computed_by(case):
    recompute.recompute_pair(*case.pair)
    request_recomputation(*case.pair)
    is_asked, is_computed = threading.Event(), threading.Event()

    def change_rules():
        with recompute.transaction.atomic():
            Board.objects.update(equivalence_bound=3.0)
            request_recomputation(*case.pair)
            is_asked.set()
            is_computed.wait(timeout=2)  # in vain, if the worker is kept waiting

    def work():
        assert is_asked.wait(timeout=30)
        recompute.recompute_pair(*case.pair)
        is_computed.set()

    assert at_once([change_rules, work]) == [None, None]
    assert Entry.objects.get().details["rules"]["equivalence_bound"] == 3.0


def test_who_asks_during_the_last_attempt_is_not_forgotten(case, monkeypatch):
    request_recomputation(*case.pair)
    monkeypatch.setattr(recompute, "ATTEMPTS_WITHOUT_LOCK", 0)
    is_read, is_asked = threading.Event(), threading.Event()
    compute = recompute.compute

    def dawdle(*args, **kwargs):
        is_read.set()
        is_asked.wait(timeout=2)  # in vain, if whoever asks is kept waiting
        return compute(*args, **kwargs)

    monkeypatch.setattr(recompute, "compute", dawdle)

    def ask():
        assert is_read.wait(timeout=30)
        asked = request_recomputation(*case.pair)
        is_asked.set()
        return asked

    _, asked = at_once([lambda: recompute.recompute_pair(*case.pair), ask])
    assert asked is True
    assert Recomputation.objects.get().requested_at is not None
