"""The first page, what all public pages have in common, and the list of boards."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from leaderboard.formatting import format_number, format_p_value, format_percent, format_range
from tests import factories
from tests.leaderboard import boards, rows

pytestmark = pytest.mark.django_db


def get(client, name="leaderboard"):
    response = client.get(reverse(name))
    assert response.status_code == 200
    return response.content.decode()


def test_home_says_what_this_is_and_leads_on(client):
    page = get(client, "home")
    assert "Is it really imperceptible?" in page
    assert page.count("<li>") == 4 + 3
    for name in ("leaderboard", "api-docs", "admin:index"):
        assert f'href="{reverse(name)}"' in page


def test_public_pages_set_no_cookie_and_keep_to_the_policy(client):
    board = boards.published(2).board
    boards.board()
    for address in (*map(reverse, ("home", "leaderboard", "api-docs")), reverse("board", args=[board.slug])):
        response = client.get(address)
        assert not response.cookies
        policy = response["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy


def test_an_empty_leaderboard_explains_itself(client):
    page = get(client)
    assert "No results yet" in page
    assert "<table" not in page


def test_a_single_board_is_the_leaderboard(client):
    board = boards.published(2).board
    response = client.get(reverse("leaderboard"), {"verdict": "perceptible"})
    assert response.status_code == 302
    assert response["Location"] == f"/leaderboard/{board.slug}/?verdict=perceptible"


def test_boards_are_listed_with_their_first_entries_and_what_there_is(client):
    boards.published(7, name="Slider board", slug="first")
    boards.board(name="Waiting board")
    boards.board(name="Secret board", is_public=False)
    rows.entry(attack=factories.attack(name="Stand-in", is_demo=True), is_demo=True)
    page = get(client)
    assert re.findall(r'<h2[^>]*class="board-name">\s*(?:<a[^>]*>)?([^<]*?)\s*<', page) == [
        "Slider board",
        "Demonstration: slider",
        "Waiting board",
    ]
    assert page.count('<tr role="row"><') == 5 + 1
    assert "The whole board: 7 rows" in page
    assert "Demonstration data: bots" in page
    assert "Nothing is published yet." in page
    assert "Secret" not in page


def test_queries_of_the_list_do_not_grow_with_boards_or_rows(client):
    counts = []
    for _ in range(2):
        boards.published(3)
        boards.published(5)
        with CaptureQueriesContext(connection) as queries:
            get(client)
        counts.append(len(queries))
    assert counts == [3, 3]


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "text"),
    [
        (None, 1, True, "–"),
        (0.0, 1, True, "0.0"),
        (-0.04, 1, True, "0.0"),
        (0.06, 1, True, "+0.1"),
        (-12.345, 2, False, "−12.35"),
        (12.0, 0, False, "12"),
        (-100, 0, False, "−100"),
    ],
)
def test_format_number(value, decimals, signed, text):
    assert format_number(value, decimals, always_signed=signed) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "–"), (0.0, "0 %"), (0.004, "<1 %"), (0.5, "50 %"), (0.997, ">99 %"), (1.0, "100 %")],
)
def test_format_percent_never_rounds_to_all_or_nothing(share, text):
    assert format_percent(share) == text


def test_format_p_value_and_range():
    assert [format_p_value(value) for value in (None, 0.0004, 0.0494, 1.0)] == ["–", "<0.001", "0.049", "1.000"]
    assert [format_range(*ends) for ends in ((None, None), (3, 3), (1, 4))] == ["–", "3", "1–4"]
