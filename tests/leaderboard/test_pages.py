import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from leaderboard.models import Board
from leaderboard.tables import format_number
from tests import factories
from tests.leaderboard import rows

pytestmark = pytest.mark.django_db


def body_rows(page):
    """The cells of every result, tags removed, white space collapsed."""
    found = []
    for body in re.findall(r"<tbody.*?</tbody>", page, re.DOTALL):
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL):
            cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            found.append([re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", cell))).strip() for cell in cells])
    return found


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
    for name in ("home", "leaderboard", "api-docs"):
        response = client.get(reverse(name))
        assert not response.cookies
        policy = response["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy


def test_an_empty_leaderboard_explains_itself(client):
    page = get(client)
    assert "No results yet" in page
    assert "<table" not in page
    assert "What the columns mean" in page


def test_a_row_shows_the_stored_numbers(client):
    rows.entry(
        attack=factories.attack(name="cAdv", family="colour"),
        target_model=factories.target_model(name="ResNet-50"),
        participants=612,
        ratings=61200,
        images_modified=3000,
        images_clean=2999,
        mean_modified=44.16,
        sd_modified=40.04,
        mean_clean=-1.06,
        sd_clean=None,
        difference=45.22,
    )
    assert body_rows(get(client)) == [
        ["1", "cAdv Colour", "ResNet-50", "+45.2", "", "44.2 SD 40.0", "−1.1 SD –", "612", "61,200", "5,999"]
    ]


def test_most_imperceptible_first_ties_share_and_unscored_last(client):
    model = factories.target_model(name="M")
    for name, difference in [("E", None), ("D", 30.0), ("c", -20.0), ("B", 20.0), ("A", 0.0)]:
        rows.entry(attack=factories.attack(name=name), target_model=model, difference=difference)
    shown = [(cells[0], cells[1].split()[0], cells[3]) for cells in body_rows(get(client))]
    assert shown == [
        ("1", "A", "0.0"),
        ("2", "B", "+20.0"),
        ("2", "c", "−20.0"),
        ("4", "D", "+30.0"),
        ("–", "E", "–"),
    ]


def test_stored_values_decide_not_displayed_ones(client):
    for name, difference in [("A", 20.04), ("B", 20.01)]:
        rows.entry(attack=factories.attack(name=name), difference=difference)
    assert [(cells[0], cells[1][0], cells[3]) for cells in body_rows(get(client))] == [
        ("1", "B", "+20.0"),
        ("2", "A", "+20.0"),
    ]


def test_demonstration_data_is_marked_explained_and_ranked_apart(client):
    rows.entry(attack=factories.attack(name="Stand-in", is_demo=True), difference=1.0, is_demo=True)
    rows.entry(attack=factories.attack(name="Published"), difference=50.0)
    page = get(client)
    first, second = body_rows(page)
    assert (first[0], first[1]) == ("1", "Published Other")
    assert (second[0], second[1]) == ("1", "Stand-in Other Demonstration data: bots")
    assert "Programs (and visitors trying the demonstration) gave these ratings" in page


def test_no_demonstration_notice_without_demonstration_data(client):
    rows.entry()
    assert "bots" not in get(client)


def test_every_board_names_its_scale_and_rounds_to_it(client):
    rows.entry(difference=40.0)
    likert = Board.objects.create(name="Five points", slug="five", scale_minimum=-2, scale_maximum=2)
    rows.entry(board=likert, difference=1.986, mean_modified=1.064, mean_clean=-0.921, sd_modified=1.31, sd_clean=1.29)
    page = get(client)
    assert re.sub(r"\s+", " ", page).count("(certainly modified): higher = modified.") == 2
    assert "Scale from −2 (certainly unmodified) to 2 (certainly modified)" in page
    assert [cells[3] for cells in body_rows(page)] == ["+1.99", "+40.0"]


def test_says_when_it_was_computed(client):
    entry = rows.entry()
    assert f'<time datetime="{entry.computed_at.isoformat()}">' in get(client)


def test_the_figure_places_the_means_on_the_scale(client):
    rows.entry(mean_clean=-50.0, mean_modified=50.0, difference=100.0)
    page = get(client)
    assert 'aria-label="Mean of clean images −50.0, of modified images 50.0"' in page
    # The scale runs from 10 to 230 in the drawing: -50 is a quarter of the way, 50 three quarters.
    assert 'class="figure-clean" cx="65.0"' in page
    assert 'class="figure-modified" cx="175.0"' in page
    assert 'class="figure-bar" x="65.0" y="11" width="110.0"' in page


def test_the_figure_of_an_unscored_row_shows_what_there_is(client):
    rows.entry(difference=None, mean_clean=0.0)
    figure = re.search(r'<svg class="figure".*?</svg>', get(client), re.DOTALL).group()
    assert 'class="figure-clean" cx="120.0"' in figure
    assert "figure-modified" not in figure
    assert "figure-bar" not in figure


def test_names_are_text_never_markup(client):
    rows.entry(attack=factories.attack(name="<script>alert(1)</script>"))
    page = get(client)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_no_query_per_row(client):
    rows.entry()
    with CaptureQueriesContext(connection) as queries:
        get(client)
    assert len(queries) == 2
    for _ in range(5):
        rows.entry()
    with CaptureQueriesContext(connection) as queries:
        get(client)
    assert len(queries) == 2


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
