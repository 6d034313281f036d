"""Results in the admin: to look at, and to compute anew."""

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from leaderboard.models import Board, Entry
from scooter_site.common.admin_tools import change_url
from tests import factories, walks

pytestmark = pytest.mark.django_db

ENTRIES = reverse("admin:leaderboard_entry_changelist")


@pytest.fixture
def entry(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        walks.complete(factories.running_study())
    return Entry.objects.get()


def test_results_are_shown(admin_client, entry):
    for page in (
        ENTRIES,
        change_url(entry),
        reverse("admin:leaderboard_board_changelist"),
        change_url(entry.snapshot.board),
    ):
        answer = admin_client.get(page)
        assert answer.status_code == 200
    assert f"{entry.mean_modified:.2f}".encode() in admin_client.get(ENTRIES).content


def test_results_are_recomputed_on_request(admin_client, entry, django_capture_on_commit_callbacks):
    right = entry.mean_modified
    Entry.objects.update(mean_modified=12.5, input_digest="")
    with django_capture_on_commit_callbacks(execute=True):
        answer = admin_client.post(ENTRIES, {"action": "recompute_now", "_selected_action": [entry.pk]}, follow=True)
    assert b"1 pair will be recomputed" in answer.content
    entry.refresh_from_db()
    assert entry.mean_modified == right


def test_results_are_not_recomputed_for_who_may_only_look(client, entry, django_capture_on_commit_callbacks):
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_entry"))
    client.force_login(viewer)
    Entry.objects.update(mean_modified=12.5)
    assert b"recompute_now" not in client.get(ENTRIES).content
    with django_capture_on_commit_callbacks(execute=True):
        client.post(ENTRIES, {"action": "recompute_now", "_selected_action": [entry.pk]})
    entry.refresh_from_db()
    assert entry.mean_modified == 12.5


def test_results_are_neither_added_changed_nor_deleted(admin_client, entry):
    assert admin_client.get(reverse("admin:leaderboard_entry_add")).status_code == 403
    assert admin_client.post(change_url(entry), {"difference": "0"}).status_code == 403
    assert admin_client.post(reverse("admin:leaderboard_entry_delete", args=[entry.pk])).status_code == 403
    board = entry.snapshot.board
    assert admin_client.post(reverse("admin:leaderboard_board_delete", args=[board.pk])).status_code == 403


def test_a_board_can_be_named_but_its_scale_is_fixed(admin_client, entry):
    admin_client.post(
        change_url(entry.snapshot.board), {"name": "Sliders", "slug": "sliders", "scale_maximum": "7", "_save": "Save"}
    )
    board = Board.objects.get()
    assert (board.name, board.scale_maximum) == ("Sliders", 100)


def test_the_list_costs_the_same_for_3_and_for_30(admin_client, entry, django_assert_max_num_queries):
    def grow(count):
        for _ in range(count):
            entry.pk = None
            entry.attack, entry.target_model = factories.attack(), factories.target_model()
            entry.save()

    def queries():
        with django_assert_max_num_queries(30) as captured:
            assert admin_client.get(ENTRIES).status_code == 200
        return len(captured)

    grow(2)
    few = queries()
    grow(27)
    assert queries() == few
