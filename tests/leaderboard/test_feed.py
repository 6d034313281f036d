"""The feed of snapshots: what happened last, on boards of real data."""

from xml.etree import ElementTree

import pytest
from django.urls import reverse

from leaderboard.services.publication import retract
from tests.leaderboard import boards

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def curator(django_user_model):
    return django_user_model.objects.create_user("curator")


def entries(client):
    """Title and summary of each, in order."""
    feed = client.get(reverse("board-feed"))
    assert feed["Content-Type"].startswith("application/atom+xml")
    found = ElementTree.fromstring(feed.content)  # noqa: S314 - our own
    return [
        (entry.findtext(f"{ATOM}title"), entry.findtext(f"{ATOM}summary"), entry.find(f"{ATOM}link").get("href"))
        for entry in found.iter(f"{ATOM}entry")
    ]


def test_it_tells_of_publications_and_retractions(client, curator):
    snapshot = boards.published(1, name="Slider & co", slug="slider")
    boards.published(1, name="Secret", is_public=False)
    ((title, _, link),) = entries(client)
    assert title == "Slider & co, snapshot 1"
    assert link.endswith("/leaderboard/slider/?snapshot=1")
    retract(snapshot, by=curator, reason="Wrong scale.")
    assert [entry[:2] for entry in entries(client)] == [
        ("Slider & co, snapshot 1 (retracted)", "Retracted: Wrong scale.")
    ]


def test_a_late_retraction_comes_first_and_demonstrations_never(client, curator, monkeypatch):
    monkeypatch.setattr("leaderboard.feeds.NEWEST", 2)
    wrong, *_ = (boards.published(1, name=f"Board {name}") for name in "ABC")
    boards.published(1, name="Demonstration", is_demo=True)
    assert [title for title, *_ in entries(client)] == ["Board C, snapshot 1", "Board B, snapshot 1"]
    retract(wrong, by=curator, reason="Wrong scale.")
    assert [title for title, *_ in entries(client)] == ["Board A, snapshot 1 (retracted)", "Board C, snapshot 1"]


def test_what_people_write_is_no_html_in_a_reader(client, curator):
    snapshot = boards.published(1)
    retract(snapshot, by=curator, reason="<b>p</b> < 0.05 & more")
    ((_, summary, _),) = entries(client)
    assert summary == "Retracted: &lt;b&gt;p&lt;/b&gt; &lt; 0.05 &amp; more"
