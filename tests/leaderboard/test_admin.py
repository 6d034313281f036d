"""The leaderboard in the admin: what is published and retracted by people, and results from elsewhere."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from leaderboard import selectors
from leaderboard.admin.shared import decimals
from leaderboard.models import Board, Entry, ExternalResult, Recomputation, Snapshot, SnapshotStatus
from leaderboard.services.boards import draft_of
from leaderboard.services.publication import publish
from scooter_site.common.admin_tools import change_url
from tests import factories, walks
from tests.leaderboard import boards

pytestmark = pytest.mark.django_db

ENTRIES = reverse("admin:leaderboard_entry_changelist")


@pytest.fixture
def entry(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        walks.complete(factories.running_study())
    return Entry.objects.get()


@pytest.fixture
def curator(client):
    """Somebody who may look, and nothing else."""
    user = User.objects.create_user("viewer", is_staff=True)
    viewing = Permission.objects.filter(content_type__app_label="leaderboard", codename__startswith="view_")
    user.user_permissions.set(viewing)
    client.force_login(user)
    return client


def text(response):
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_every_page_is_there_with_as_many_queries_for_more_rows(admin_client, django_assert_max_num_queries):
    snapshot = boards.published(6)
    boards.published(2)
    for model in ("board", "snapshot", "entry", "externalresult", "recomputation"):
        with django_assert_max_num_queries(16):
            text(admin_client.get(reverse(f"admin:leaderboard_{model}_changelist")))
    for thing in (snapshot, snapshot.board, snapshot.entries.first()):
        with django_assert_max_num_queries(24):
            text(admin_client.get(change_url(thing)))


def test_results_are_listed_by_snapshot_with_as_many_queries_for_more_of_them(admin_client):
    first = boards.published(2)
    counts = []
    for _ in range(2):
        boards.published(1, of=first.board)
        with CaptureQueriesContext(connection) as queries:
            found = text(admin_client.get(ENTRIES, {"snapshot__id__exact": first.pk}))
        counts.append(len(queries))
        shown = [str(entry) for entry in Entry.objects.all() if change_url(entry) in found]
        assert sorted(shown) == sorted(str(entry) for entry in first.entries.all())
    assert counts[0] == counts[1]


def test_what_waits_stands_above_what_does_not(admin_client):
    idle, waiting = (
        Recomputation.objects.create(
            attack=factories.attack(), target_model=factories.target_model(), requested_at=requested_at
        )
        for requested_at in (None, timezone.now())
    )
    page = text(admin_client.get(reverse("admin:leaderboard_recomputation_changelist")))
    assert page.index(str(waiting)) < page.index(str(idle))


@pytest.mark.parametrize(("value", "written"), [(-0.001, "0.00"), (0.0, "0.00"), (-1.5, "−1.50"), (None, "–")])
def test_points_that_round_to_zero_have_no_sign(value, written):
    assert decimals(value) == written


def test_results_are_recomputed_on_request(admin_client, entry, django_capture_on_commit_callbacks):
    right = entry.mean_modified
    Entry.objects.update(mean_modified=12.5, input_digest="")
    with django_capture_on_commit_callbacks(execute=True):
        answer = admin_client.post(ENTRIES, {"action": "recompute_now", "_selected_action": [entry.pk]}, follow=True)
    assert "1 pair will be looked at within seconds, and computed where ratings" in text(answer)
    entry.refresh_from_db()
    assert entry.mean_modified == right


def test_results_are_not_recomputed_for_who_may_only_look(curator, entry, django_capture_on_commit_callbacks):
    Entry.objects.update(mean_modified=12.5)
    assert "recompute_now" not in text(curator.get(ENTRIES))
    with django_capture_on_commit_callbacks(execute=True):
        curator.post(ENTRIES, {"action": "recompute_now", "_selected_action": [entry.pk]})
        board = entry.snapshot.board
        assert curator.post(reverse("admin:leaderboard_board_recompute", args=[board.pk])).status_code == 403
    entry.refresh_from_db()
    assert entry.mean_modified == 12.5


def test_results_are_neither_added_changed_nor_deleted(admin_client, entry):
    assert admin_client.get(reverse("admin:leaderboard_entry_add")).status_code == 403
    assert admin_client.post(change_url(entry), {"difference": "0"}).status_code == 403
    assert admin_client.post(reverse("admin:leaderboard_entry_delete", args=[entry.pk])).status_code == 403
    board = entry.snapshot.board
    assert admin_client.post(reverse("admin:leaderboard_board_delete", args=[board.pk])).status_code == 403


def test_a_person_publishes_what_the_page_says(admin_client):
    board = boards.board(name="Slider")
    boards.add_entry(draft_of(board), attack=factories.attack(name="cAdv"), difference=42.0)
    page = text(admin_client.get(change_url(board)))
    assert "cAdv on" in page
    assert "+42.00, perceptible, 30 people" in page
    question = text(admin_client.get(reverse("admin:leaderboard_board_publish", args=[board.pk])))
    assert "Publish the draft of Slider?" in question
    assert "> Publish </button>" in question
    assert not Snapshot.objects.exclude(number=None).exists()
    form = {"note": "The first.", "seen": seen_in(question)}
    answer = admin_client.post(reverse("admin:leaderboard_board_publish", args=[board.pk]), form, follow=True)
    snapshot = selectors.published_snapshot(board)
    assert f"Its digest is {snapshot.input_digest}" in text(answer)
    assert (snapshot.number, snapshot.note, snapshot.published_by.username) == (1, "The first.", "admin")
    assert "The draft says what snapshot 1 says." in text(admin_client.get(change_url(board)))


def seen_in(page):
    return re.search(r'name="seen" value="([0-9]+-[0-9a-f]{64})"', page)[1]


def test_only_what_the_page_showed_is_published_and_once(admin_client):
    board = boards.board()
    boards.add_entry(draft_of(board))
    address = reverse("admin:leaderboard_board_publish", args=[board.pk])
    form = {"seen": seen_in(text(admin_client.get(address)))}
    for stale in ({}, {"seen": "0-1"}):
        assert "has changed since you looked" in text(admin_client.post(address, stale, follow=True))
    assert "is published. Its digest" in text(admin_client.post(address, form, follow=True))
    assert "has changed since you looked" in text(admin_client.post(address, form, follow=True)), "a double click"
    form = {"seen": seen_in(text(admin_client.get(address)))}
    boards.add_entry(draft_of(board))
    assert "has changed since you looked" in text(admin_client.post(address, form, follow=True))
    assert board.snapshots.exclude(number=None).count() == 1


def test_what_cannot_be_published_is_said(admin_client):
    board = boards.board()
    answer = admin_client.post(reverse("admin:leaderboard_board_publish", args=[board.pk]), follow=True)
    assert "has no results yet" in text(answer)


def test_a_person_retracts_with_a_reason(admin_client):
    snapshot = boards.published(2)
    address = reverse("admin:leaderboard_snapshot_retract", args=[snapshot.pk])
    assert "> Retract </button>" in text(admin_client.get(address))
    assert "This field is required" in text(admin_client.post(address, {"reason": ""}))
    assert "Retracted: Wrong images." in text(admin_client.post(address, {"reason": "Wrong images."}, follow=True))
    snapshot.refresh_from_db()
    assert (snapshot.status, snapshot.retracted_by.username) == (SnapshotStatus.RETRACTED, "admin")
    assert "nothing to retract" in text(admin_client.post(address, {"reason": "Again."}, follow=True))


def test_who_may_only_look_neither_publishes_nor_retracts_nor_adds(curator):
    snapshot = boards.published(2)
    for name, pk in (("board_publish", snapshot.board.pk), ("snapshot_retract", snapshot.pk)):
        address = reverse(f"admin:leaderboard_{name}", args=[pk])
        assert (curator.get(address).status_code, curator.post(address, {"reason": "x"}).status_code) == (403, 403)
    assert "Publish…" not in text(curator.get(change_url(snapshot.board)))
    assert curator.get(reverse("admin:leaderboard_externalresult_add")).status_code == 403


def test_new_rules_have_the_draft_computed_anew(admin_client, entry, django_capture_on_commit_callbacks):
    board = entry.snapshot.board
    publish(board)
    form = {
        "name": board.name,
        "description": "",
        "equivalence_bound": "3.5",
        "alpha": "0.05",
        "minimum_participants": "1",
        "publication_policy": "manual",
        "is_public": "on",
        "_save": "",
    }
    with django_capture_on_commit_callbacks(execute=True):
        assert "1 pair will be looked at within seconds" in text(
            admin_client.post(change_url(board), form, follow=True)
        )
    entry.refresh_from_db()
    assert entry.details["rules"]["equivalence_bound"] == 3.5
    assert "few_raters" not in entry.flags
    published = selectors.published_snapshot(board)
    assert (published.rules["equivalence_bound"], Board.objects.get().slug) == (10.0, board.slug)
    assert "rules are others than those of snapshot 1" in text(admin_client.get(change_url(board)))


class TestResultsFromElsewhere:
    ADD = reverse("admin:leaderboard_externalresult_add")
    CSV = b"rating,pid,image_type,image_id\n2,a,modified,1\n-1,a,real,2\n"

    @pytest.fixture
    def form(self):
        board = boards.board(scale_minimum=-2, scale_maximum=2)
        return {
            "board": board.pk,
            "attack": factories.attack(name="cAdv").pk,
            "target_model": factories.target_model().pk,
            "high_means": "modified",
            "citation": "Somebody (2024).",
            "source_url": "https://example.org/paper",
            "attack_success_rate": "0.93",
            "_save": "",
        }

    def add(self, client, form, content=CSV):
        return client.post(self.ADD, {**form, "file": SimpleUploadedFile("mine.csv", content)}, follow=True)

    def test_a_file_becomes_an_entry_of_the_draft(self, admin_client, form, django_capture_on_commit_callbacks):
        assert "Where they are from" in text(admin_client.get(self.ADD))
        with django_capture_on_commit_callbacks(execute=True):
            assert "in the board&#x27;s draft within seconds" in text(self.add(admin_client, form))
        entry = Entry.objects.get()
        assert (entry.mean_modified, entry.mean_clean, entry.attack_success_rate) == (2.0, -1.0, 0.93)
        assert entry.external_result.added_by.username == "admin"
        assert entry.flags == ["few_raters", "unverified_images", "external"]

    def test_a_faulty_file_is_told_beside_its_field(self, admin_client, form):
        page = text(self.add(admin_client, form, self.CSV.replace(b"-1", b"-7")))
        assert "mine.csv, line 3, column rating: &#x27;-7&#x27; is no number from -2 to 2" in page
        assert not ExternalResult.objects.exists()

    def test_a_board_that_takes_none_is_told_beside_its_field(self, admin_client, form):
        Board.objects.update(protocol="paper")
        assert "takes only studies made from one preset" in text(self.add(admin_client, form))
        assert not ExternalResult.objects.exists()

    def test_it_is_withdrawn_with_a_reason(self, admin_client, form, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            self.add(admin_client, form)
        external = ExternalResult.objects.get()
        assert "Withdraw…" in text(admin_client.get(change_url(external)))
        address = reverse("admin:leaderboard_external_withdraw", args=[external.pk])
        assert "> Withdraw </button>" in text(admin_client.get(address))
        with django_capture_on_commit_callbacks(execute=True):
            assert "Withdrawn: A fault." in text(admin_client.post(address, {"reason": "A fault."}, follow=True))
        assert not Entry.objects.exists()


def test_what_failed_is_shown(admin_client):
    attack, target_model = factories.attack(name="cAdv"), factories.target_model()
    board = boards.board()
    boards.add_entry(draft_of(board), attack=attack, target_model=target_model)
    Recomputation.objects.create(attack=attack, target_model=target_model, failures=2, problem="LinAlgError: singular")
    assert "LinAlgError: singular" in text(admin_client.get(change_url(board)))
    assert "LinAlgError: singular" in text(admin_client.get(reverse("admin:leaderboard_recomputation_changelist")))


def test_a_slug_that_a_published_address_has_stays_and_the_page_says_why(admin_client):
    attack = boards.published(1).entries.get().attack
    values = {"name": "Snow", "family": attack.family, "parameters": "{}"}
    answer = text(admin_client.post(change_url(attack), {**values, "slug": "snow"}, follow=True))
    assert "Nothing was changed. A published snapshot has results of it" in answer
    text(admin_client.post(change_url(attack), {**values, "slug": attack.slug}, follow=True))
    assert (attack.slug, "Snow") == tuple(type(attack).objects.values_list("slug", "name").get())
