"""Publishing, retracting, what never changes, and what nobody may see."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from imagedb.models import Image, Visibility
from leaderboard import selectors
from leaderboard.board_table import entry_address
from leaderboard.models import Board, Entry, Snapshot, SnapshotStatus
from leaderboard.services import publication
from leaderboard.services.boards import draft_of
from leaderboard.services.publication import (
    NothingToPublish,
    OutdatedDraft,
    pending_changes,
    publish,
    publish_by_policy,
    retract,
)
from leaderboard.triggers import TRIGGERS
from tests import factories
from tests.leaderboard import boards

pytestmark = pytest.mark.django_db


def refused(action):
    """The rule that the database keeps."""
    with pytest.raises(DatabaseError) as error, transaction.atomic():
        action()
    rule = TRIGGERS.broken_rule(error.value)
    assert rule is not None, error.value
    return rule.name


@pytest.fixture
def snapshot():
    return boards.published(3)


@pytest.fixture
def person():
    return User.objects.create_user("curator")


def test_publishing_numbers_and_keeps_what_it_follows_from(person):
    board = boards.board(equivalence_bound=7.0)
    boards.add_entry(draft_of(board), difference=3.0)
    first, second = publish(board, by=person, note="First."), publish(board)
    assert (first.number, second.number, first.published_by, second.published_by) == (1, 2, person, None)
    assert (first.rules["equivalence_bound"], first.bound, first.entry_count, first.note) == (7.0, 7.0, 1, "First.")
    assert first.input_digest == second.input_digest
    assert len(first.input_digest) == 64
    board.equivalence_bound = 8.0
    board.save()
    draft_of(board).entries.all().delete()
    boards.add_entry(draft_of(board), difference=3.0)
    third = publish(board)
    assert (third.bound, third.input_digest != first.input_digest) == (8.0, True)
    assert Snapshot.objects.get(pk=first.pk).bound == 7.0


@pytest.mark.parametrize(
    "rules",
    [
        {"equivalence_bound": 8.0},
        {"alpha": 0.01},
        {"minimum_participants": 11},
        {"verified_images_only": True},
        {"protocol": "paper"},
    ],
    ids=str,
)
def test_what_other_rules_gave_is_not_published(snapshot, rules):
    Board.objects.update(publication_policy="daily", **rules)
    board = Board.objects.get()
    with pytest.raises(OutdatedDraft, match=r"since 3 of 3 results of the draft were computed: Attack \d+ on"):
        publish(board)
    assert publish_by_policy(board, "daily") is None
    assert board.snapshots.exclude(number=None).get() == snapshot


@pytest.mark.parametrize("fields", [{"code_version": "another"}, {"details": {"seed": 5}}], ids=str)
def test_what_another_program_or_seed_gave_is_not_published(snapshot, fields):
    changed = boards.add_entry(draft_of(snapshot.board), **fields)
    with pytest.raises(OutdatedDraft, match=f"since 1 of 4 results of the draft were computed: {changed}. Recompute"):
        publish(snapshot.board)


def test_a_target_model_that_was_taken_out_is_not_published(snapshot):
    kept = boards.add_entry(draft_of(snapshot.board))
    snapshot.board.target_models.add(kept.target_model)
    with pytest.raises(OutdatedDraft, match="since 3 of 4 results"):
        publish(snapshot.board)


def test_what_changes_only_how_entries_are_ranked_needs_no_computing(snapshot):
    Board.objects.update(ranks_few_raters=False)
    assert publish(snapshot.board).rules["ranks_few_raters"] is False


def test_a_policy_leaves_a_retraction_until_results_change(snapshot, person):
    Board.objects.update(publication_policy="daily")
    board = Board.objects.get()
    boards.add_entry(draft_of(board), difference=9.0)
    retract(publish_by_policy(board, "daily"), by=person, reason="Wrong images.")
    assert publish_by_policy(board, "daily") is None
    assert selectors.published_snapshot(board) == snapshot
    boards.add_entry(draft_of(board), difference=10.0)
    assert publish_by_policy(board, "daily").number == 3


@pytest.mark.parametrize(("is_demo", "minutes", "number"), [(False, 59, None), (False, 61, 2), (True, 0, 2)])
def test_real_results_are_published_at_once_every_hour_at_most(monkeypatch, is_demo, minutes, number):
    snapshot = boards.published(1, is_demo=is_demo, publication_policy="at_once")
    boards.add_entry(draft_of(snapshot.board))
    later = snapshot.published_at + timedelta(minutes=minutes)
    monkeypatch.setattr(publication.timezone, "now", lambda: later)
    found = publish_by_policy(snapshot.board, "at_once")
    assert (found and found.number) == number


def test_places_follow_from_stored_values_and_ties_share_a_rank():
    board = boards.board(minimum_participants=10)
    names = {}
    for name, difference in [("tie", -2.0), ("other tie", 2.0), ("far", 2.0000001), ("none", None)]:
        names[name] = boards.add_entry(draft_of(board), difference=difference).attack
    snapshot = publish(board)
    ranks = {entry.attack: entry.rank for entry in snapshot.entries.select_related("attack")}
    assert {name: ranks[attack] for name, attack in names.items()} == {"tie": 1, "other tie": 1, "far": 3, "none": None}
    unscored = snapshot.entries.get(attack=names["none"])
    assert (unscored.rank_low, unscored.rank_high, unscored.holm_p_value) == (None, None, None)
    far = snapshot.entries.get(attack=names["far"])
    assert (far.rank_low, far.rank_high) == (1, 3)
    assert sum(far.rank_probabilities) == pytest.approx(1)
    assert [entry.attack_id for entry in selectors.visible_entries(snapshot)][-1] == names["none"].pk


def test_few_raters_are_ranked_or_not_as_the_board_says():
    board = boards.board(minimum_participants=10, ranks_few_raters=False)
    boards.publish_entries(board, [{"difference": 1.0, "participants": 9}, {"difference": 5.0, "participants": 10}])
    found = selectors.visible_entries(selectors.published_snapshot(board))
    assert [(entry.participants, entry.rank) for entry in found] == [(10, 1), (9, None)]


def test_of_those_without_a_rank_what_could_not_be_estimated_comes_last():
    board = boards.board(minimum_participants=10, ranks_few_raters=False)
    differences = [None, 7.0, -2.0]
    boards.publish_entries(board, [{"difference": value, "participants": 9} for value in differences])
    found = selectors.visible_entries(selectors.published_snapshot(board))
    assert [(entry.difference, entry.rank) for entry in found] == [(-2.0, None), (7.0, None), (None, None)]


def test_nothing_to_publish_is_said(snapshot):
    with pytest.raises(NothingToPublish, match="no results yet"):
        publish(boards.board())
    with pytest.raises(NothingToPublish, match="has changed since its newest"):
        publish(snapshot.board, only_if_changed=True)
    assert publish_by_policy(snapshot.board, "at_once") is None


def test_a_policy_publishes_what_has_changed(snapshot):
    Board.objects.update(publication_policy="daily")
    snapshot.board.refresh_from_db()
    assert publish_by_policy(snapshot.board, "at_once") is None
    assert publish_by_policy(snapshot.board, "daily") is None
    boards.add_entry(draft_of(snapshot.board), difference=9.0)
    assert [change.kind for change in pending_changes(snapshot.board)] == ["added"]
    assert publish_by_policy(snapshot.board, "daily").number == 2
    assert pending_changes(snapshot.board) == []


def test_changes_name_what_is_added_removed_and_changed(snapshot):
    gone, changed, _ = draft_of(snapshot.board).entries.order_by("pk")
    Entry.objects.filter(pk=changed.pk).update(difference=30.0)
    gone.delete()
    boards.add_entry(draft_of(snapshot.board), difference=20.0)
    newer = publish(snapshot.board)
    found = {change.kind: change for change in selectors.changes_between(snapshot, newer)}
    assert set(found) == {"added", "removed", "changed"}
    assert (found["changed"].older.difference, found["changed"].newer.difference) == (changed.difference, 30.0)
    assert found["removed"].entry.attack_id == gone.attack_id


class TestWhatIsPublishedNeverChanges:
    """Kept by the database itself, whoever writes."""

    def test_the_snapshot(self, snapshot):
        rows = Snapshot.objects.filter(pk=snapshot.pk)
        for field, value in [("number", 5), ("rules", {}), ("seed", 3), ("input_digest", "1"), ("note", "x")]:
            assert refused(lambda f=field, v=value: rows.update(**{f: v})) == "published_snapshot_never_changes"
        assert refused(lambda: rows.update(entry_count=9)) == "published_snapshot_never_changes"
        assert refused(lambda: rows._raw_delete("default")) in {
            "published_snapshot_never_changes",
            "published_snapshot_keeps_its_entries",
        }

    def test_its_entries(self, snapshot):
        entry = snapshot.entries.first()
        rows = Entry.objects.filter(pk=entry.pk)
        rule = "published_snapshot_keeps_its_entries"
        for field, value in [("difference", 1.5), ("details", {}), ("rank", 2), ("inputs", "other")]:
            assert refused(lambda f=field, v=value: rows.update(**{f: v})) == rule
        assert refused(rows.delete) == rule
        assert refused(lambda: boards.add_entry(snapshot, difference=1.0)) == rule
        moved = draft_of(snapshot.board).entries.first()
        assert (
            refused(lambda: Entry.objects.filter(pk=moved.pk).update(snapshot=snapshot, attack=factories.attack()))
            == rule
        )

    def test_a_draft_changes(self, snapshot):
        draft = draft_of(snapshot.board)
        draft.entries.update(rank=None, details={})
        draft.entries.first().delete()
        assert draft.entries.count() == 2

    def test_the_status_only_goes_on(self, snapshot, person):
        rule = "snapshot_status_only_goes_on"
        draft = Snapshot.objects.filter(pk=draft_of(snapshot.board).pk)
        values = {"number": 7, "published_at": snapshot.published_at, "input_digest": "1"}
        assert refused(lambda: draft.update(status="published", **values)) == rule
        retract(snapshot, by=person, reason="A fault in the images.")
        rows = Snapshot.objects.filter(pk=snapshot.pk)
        assert refused(lambda: rows.update(status="published", retracted_at=None, retraction_reason="")) == rule
        assert refused(lambda: rows.update(retraction_reason="Another one.")) == rule

    def test_its_addresses(self, snapshot, client):
        entry = snapshot.entries.select_related("attack", "target_model").first()
        for row in (entry.attack, entry.target_model):
            rows = type(row).objects.filter(pk=row.pk)
            assert refused(lambda r=rows: r.update(slug="other")) == "slug_of_a_published_result_never_changes"
            rows.update(name="A better name")
        board = Board.objects.filter(pk=snapshot.board_id)
        for change in ({"slug": "other"}, {"scale_maximum": 50}, {"scale_minimum": -50}, {"is_demo": True}):
            rule = refused(lambda c=change: board.update(**c))
            assert rule == "board_with_a_snapshot_keeps_its_slug_and_scale"
        board.update(name="A better name", description="More words.")
        assert client.get(entry_address(entry)).status_code == 200

    def test_a_draft_does_not_keep_slugs(self):
        entry = boards.add_entry(draft_of(boards.board()))
        for row in (entry.attack, entry.target_model, entry.snapshot.board):
            assert type(row).objects.filter(pk=row.pk).update(slug=f"other-{row.pk}") == 1

    def test_a_demonstration_can_be_taken_out(self):
        demo = boards.published(2, is_demo=True)
        Entry.objects.filter(snapshot__board__is_demo=True).delete()
        Snapshot.objects.filter(board=demo.board).delete()
        assert not Snapshot.objects.exists()


def test_retracting_needs_a_reason_and_is_done_once(snapshot, person):
    with pytest.raises(ValidationError, match="Say why"):
        retract(snapshot, by=person, reason="  ")
    retracted = retract(snapshot, by=person, reason=" Wrong images. ")
    assert (retracted.status, retracted.retraction_reason, retracted.retracted_by) == (
        SnapshotStatus.RETRACTED,
        "Wrong images.",
        person,
    )
    with pytest.raises(ValidationError, match="nothing to retract"):
        retract(snapshot, by=person, reason="Again.")
    with pytest.raises(ValidationError, match="nothing to retract"):
        retract(draft_of(snapshot.board), by=person, reason="A draft.")


def test_the_newest_that_was_not_retracted_is_shown_and_all_stay_readable(snapshot, person):
    board = snapshot.board
    second = publish(board)
    assert selectors.published_snapshot(board) == second
    retract(second, by=person, reason="A fault.")
    assert selectors.published_snapshot(board) == snapshot
    assert selectors.published_snapshot(board, 2) == second
    assert [row.number for row in selectors.snapshots_of(board)] == [2, 1]
    assert list(selectors.published_snapshots()) == [snapshot]
    assert publish(board).number == 3


class TestWhatNobodyMaySee:
    @pytest.fixture
    def hidden(self, snapshot):
        """The entry of rank 2, whose only image became private after it was published."""
        entry = snapshot.entries.get(rank=2)
        factories.modified_image(attack=entry.attack, target_model=entry.target_model, visibility=Visibility.PRIVATE)
        return entry

    def test_disappears_without_a_gap(self, snapshot, hidden):
        before = {entry.pk: entry for entry in selectors.visible_entries(boards.published(3))}
        assert [entry.rank for entry in before.values()] == [1, 2, 3]
        found = selectors.visible_entries(snapshot)
        assert hidden.pk not in [entry.pk for entry in found]
        assert [(entry.rank, entry.rank_high <= 2) for entry in found] == [(1, True), (2, True)]
        assert found == [entry for entry in selectors.published_entries() if entry.snapshot == snapshot]
        assert selectors.entries_of_attack(hidden.attack) == []
        assert selectors.entries_of_target_model(hidden.target_model) == found
        assert hidden not in selectors.published_rows()
        assert all(change.entry.attack_id != hidden.attack_id for change in selectors.changes_between(None, snapshot))

    def test_disappears_while_the_cache_is_away(self, snapshot, hidden, monkeypatch):
        def away(*args, **kwargs):
            raise ConnectionError("no cache")

        for name in ("get", "set", "get_or_set"):
            monkeypatch.setattr(cache, name, away)
        assert [entry.rank for entry in selectors.visible_entries(snapshot)] == [1, 2]

    def test_is_not_published_again(self, snapshot, hidden):
        newer = publish(snapshot.board)
        assert (newer.entry_count, newer.entries.filter(attack=hidden.attack).exists()) == (2, False)
        assert sorted(newer.entries.values_list("rank", flat=True)) == [1, 2]

    def test_comes_back_with_an_image_that_may_be_seen(self, snapshot, hidden):
        Image.objects.update(visibility=Visibility.REGISTERED)
        assert hidden.pk in [entry.pk for entry in selectors.visible_entries(snapshot)]

    def test_a_board_that_is_not_public(self, snapshot):
        Board.objects.update(is_public=False)
        snapshot.board.refresh_from_db()
        assert selectors.published_snapshot(snapshot.board) is None
        assert list(selectors.public_boards()) == list(selectors.published_snapshots()) == []
        assert selectors.published_entries() == []


def test_reading_a_board_takes_one_query_whatever_its_size(snapshot):
    for found in (snapshot, boards.published(12)):
        with CaptureQueriesContext(connection) as queries:
            assert len(selectors.visible_entries(found)) == found.entry_count
        assert len(queries) == 1


@pytest.mark.django_db(transaction=True)
def test_a_flush_empties_the_tables_and_leaves_the_rules():
    boards.published(2)
    before = TRIGGERS.installed(connection)
    call_command("flush", verbosity=0, interactive=False)
    assert not Snapshot.objects.exists()
    assert TRIGGERS.installed(connection) == before
