"""What the cache keeps of boards: a number of pages and plots that nobody outside can raise."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from tests.leaderboard import boards

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("query", "is_kept"),
    [
        ({}, True),
        ({"sort": "-difference"}, True),
        ({"snapshot": 1}, True),
        ({"min_raters": 7}, False),
        ({"verdict": "imperceptible"}, False),
        ({"columns": ["difference", "verdict"]}, False),
    ],
)
@pytest.mark.parametrize(("name", "more"), [("board", []), ("board-plot-file", ["intervals", "svg"])])
def test_only_what_many_ask_for_is_kept(client, monkeypatch, name, more, query, is_kept):
    board = boards.published(2).board
    kept = []
    monkeypatch.setattr("leaderboard.kept.cache.set", lambda key, *_: kept.append(key))
    cache.clear()
    response = client.get(reverse(name, args=[board.slug, *more]), query, follow=True)
    assert response.status_code == 200
    assert (len([key for key in kept if key.startswith("leaderboard-")]) > 0) is is_kept
