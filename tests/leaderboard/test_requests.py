"""Requests to compute a pair anew coalesce, survive workers that die, and are given up after a few failures."""

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from leaderboard import tasks
from leaderboard.models import Entry, Recomputation
from leaderboard.services import recompute, requests
from leaderboard.services.requests import MOST_FAILURES, lost_requests, request_recomputation
from studies.models import ParticipationKind
from studies.signals import valid_ratings_changed
from tests import factories
from tests.leaderboard import boards, rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair():
    """(attack id, target model id) of a pair with one valid participation."""
    attack, target_model = factories.attack(), factories.target_model()
    image = factories.modified_image(attack=attack, target_model=target_model)
    rows.finished(rows.study(attack, target_model), [(image, 80), (image.source, 7)])
    return attack.pk, target_model.pk


@pytest.fixture
def sent(monkeypatch):
    """The messages that would go to the broker: (pair, countdown)."""
    messages = []

    def send(args, countdown=None, **_):
        messages.append((tuple(args), countdown))

    monkeypatch.setattr(tasks.recompute_pair, "apply_async", send)
    return messages


def signal(pair):
    valid_ratings_changed.send(sender=None, attack_id=pair[0], target_model_id=pair[1])


def row():
    return Recomputation.objects.get()


@pytest.mark.django_db(transaction=True)  # signals come when ratings are committed, outside a transaction
def test_a_burst_is_one_message_and_one_look_each(pair, sent):
    signal(pair)
    with CaptureQueriesContext(connection) as queries:
        for _ in range(100):
            signal(pair)
    assert sent == [(pair, 5)]
    assert len(queries) == 100
    tasks.recompute_pair(*pair)
    assert (row().requested_at, row().runs, Entry.objects.count()) == (None, 1, 1)


def test_what_changes_while_it_is_computed_is_asked_for_again(
    pair, sent, monkeypatch, django_capture_on_commit_callbacks
):
    compute = recompute.compute

    def change_meanwhile(*args, **kwargs):
        with django_capture_on_commit_callbacks(execute=True):
            signal(pair)
            signal(pair)
        return compute(*args, **kwargs)

    with django_capture_on_commit_callbacks(execute=True):
        signal(pair)
    monkeypatch.setattr(recompute, "compute", change_meanwhile)
    tasks.recompute_pair(*pair)
    assert sent == [(pair, 5), (pair, 5)]
    assert row().requested_at is not None, "the second request is not lost"
    monkeypatch.undo()
    tasks.recompute_pair(*pair)
    assert row().requested_at is None


def test_a_message_that_comes_twice_finds_nothing_to_do(pair, sent):
    request_recomputation(*pair)
    tasks.recompute_pair(*pair)
    tasks.recompute_pair(*pair)
    assert row().runs == 1


def test_the_same_ratings_are_not_computed_again(pair, monkeypatch):
    recompute.recompute_pair(*pair)
    before = Entry.objects.get()
    monkeypatch.setattr(recompute, "compute", None)
    assert recompute.recompute_pair(*pair) == []
    after = Entry.objects.get()
    assert (after.computed_at, after.inputs.name) == (before.computed_at, before.inputs.name)
    assert row().runs == 2


def test_other_code_computes_again_and_leaves_no_file_behind(pair, monkeypatch, django_capture_on_commit_callbacks):
    recompute.recompute_pair(*pair)
    before = Entry.objects.get()
    monkeypatch.setattr(recompute, "code_version", lambda: "another")
    with django_capture_on_commit_callbacks(execute=True):
        recompute.recompute_pair(*pair)
    after = Entry.objects.get()
    assert (after.code_version, after.input_digest) == ("another", before.input_digest)
    storage = after.inputs.storage
    assert (storage.exists(before.inputs.name), storage.exists(after.inputs.name)) == (False, True)


def test_a_request_whose_worker_died_is_found_after_a_while(pair, sent, django_capture_on_commit_callbacks):
    recompute.recompute_pair(*pair)
    request_recomputation(*pair)
    Recomputation.objects.update(taken=row().requested_at)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.recompute_outdated_entries()
    assert sent == []
    long_ago = timezone.now() - timedelta(hours=1)
    Recomputation.objects.update(requested_at=long_ago, taken=long_ago)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.recompute_outdated_entries()
    assert sent == [(pair, None)]
    tasks.recompute_pair(*pair)
    assert lost_requests() == []


def test_what_fails_is_told_and_given_up_until_something_changes(pair, monkeypatch):
    def fail(*args, **kwargs):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(recompute, "compute", fail)
    request_recomputation(*pair)
    for number in range(1, MOST_FAILURES + 1):
        Recomputation.objects.update(requested_at=timezone.now() - timedelta(hours=1))
        assert lost_requests() == [pair]
        with pytest.raises(np.linalg.LinAlgError):
            tasks.recompute_pair(*pair)
        assert (row().failures, row().problem) == (number, "LinAlgError: singular")
    Recomputation.objects.update(requested_at=timezone.now() - timedelta(hours=1))
    assert lost_requests() == []
    assert not Entry.objects.exists()
    monkeypatch.undo()
    Recomputation.objects.update(taken=row().requested_at)
    assert request_recomputation(*pair)
    tasks.recompute_pair(*pair)
    assert (row().failures, row().problem, Entry.objects.count()) == (0, "", 1)


@pytest.mark.parametrize("kind", [ParticipationKind.TEST, ParticipationKind.PREVIEW])
def test_test_and_preview_data_are_never_asked_for(kind):
    attack, target_model = factories.attack(), factories.target_model()
    image = factories.modified_image(attack=attack, target_model=target_model)
    rows.finished(rows.study(attack, target_model), [(image, 80)], kind=kind)
    assert lost_requests() == []
    recompute.recompute_pair(attack.pk, target_model.pk)
    assert not Entry.objects.exists()


def test_the_daily_look_sees_what_the_catalogue_learnt(pair, django_capture_on_commit_callbacks):
    recompute.recompute_pair(*pair)
    entry = Entry.objects.get()
    assert (entry.images_unverified, entry.fools_unnoticed) == (1, None)
    assert "unverified_images" in entry.flags
    image = entry.attack.images.get()
    image.predictions.create(target_model=entry.target_model, predicted_class=factories.image_class(5))
    with django_capture_on_commit_callbacks(execute=True):
        tasks.refresh_entries()
    entry.refresh_from_db()
    assert (entry.images_unverified, entry.attack_success_rate) == (0, None), "failed attempts are in no catalogue"
    assert "unverified_images" not in entry.flags


def test_only_verified_images_where_a_board_says_so(pair):
    recompute.recompute_pair(*pair)
    board = Entry.objects.get().snapshot.board
    board.verified_images_only = True
    board.save()
    assert requests.pairs_of_board(board) == [pair]
    recompute.recompute_pair(*pair)
    entry = Entry.objects.get()
    assert (entry.ratings_modified, entry.ratings_clean) == (0, 1)


def test_boards_of_one_scale_take_what_their_rules_say(pair):
    recompute.recompute_pair(*pair)
    first = Entry.objects.get()
    model = first.target_model
    of_model, of_other = boards.board(name="This"), boards.board(name="Other")
    of_model.target_models.add(model)
    of_other.target_models.add(factories.target_model())
    paper, field = boards.board(name="Paper", protocol="paper"), boards.board(name="Field", protocol="field")
    recompute.recompute_pair(*pair)
    found = {entry.snapshot.board for entry in Entry.objects.select_related("snapshot__board")}
    assert found == {first.snapshot.board, of_model, paper}
    assert field not in found
    of_model.target_models.set([factories.target_model()])
    recompute.recompute_pair(*pair)
    assert Entry.objects.count() == 2


def test_the_cutoff_of_a_board_of_one_protocol_is_that_of_its_ratings(pair):
    paper, field = boards.board(protocol="paper"), boards.board(protocol="field")
    recompute.recompute_pair(*pair)
    before = Entry.objects.get()
    modified = factories.modified_image(attack=before.attack, target_model=before.target_model)
    later = timezone.now() + timedelta(days=1)
    study = rows.study(before.attack, before.target_model, preset="field")
    rows.finished(study, [(modified, 3)], finished_at=later)
    recompute.recompute_pair(*pair)
    cutoffs = {entry.snapshot.board: entry.data_cutoff for entry in Entry.objects.select_related("snapshot__board")}
    assert cutoffs == {paper: before.data_cutoff, field: later}
