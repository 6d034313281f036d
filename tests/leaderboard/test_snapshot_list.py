"""The list of a board's snapshots, and what changed between two."""

import re
from importlib import import_module

import pytest
from django.urls import reverse

from leaderboard.models import Board
from tests import factories
from tests.leaderboard import boards
from tests.leaderboard.page_tables import table_rows

pytestmark = pytest.mark.django_db


def address(board):
    return reverse("board-snapshots", args=[board.slug])


def test_snapshots_are_listed_and_compared(client):
    board = boards.board()
    resnet = factories.target_model(name="ResNet-50")
    same, gone, new = (
        {"attack": factories.attack(name=name), "target_model": resnet, "difference": difference}
        for name, difference in (("Same", 1.0), ("Gone", 2.0), ("New", 60.0))
    )
    boards.publish_entries(board, [same, gone])
    boards.publish_entries(board, [same, new])
    page = client.get(address(board), {"older": 1, "newer": 2}).content.decode()
    assert [cells[:2] for cells in table_rows(page)] == [
        ["New on ResNet-50", "Added"],
        ["Gone on ResNet-50", "Removed"],
    ]
    assert "Snapshot 1" in page
    assert "Changes since 1" in page
    for query in ({"older": 1}, {"older": "x", "newer": 2}, {"other": 1}):
        assert client.get(address(board), query).status_code == 400
    assert client.get(address(board), {"older": 1, "newer": 9}).status_code == 404


def test_other_rules_are_told_beside_what_they_changed(client):
    board = boards.board()
    row = {"attack": factories.attack(), "target_model": factories.target_model(slug="resnet")}
    boards.publish_entries(board, [row])
    boards.publish_entries(board, [row])
    Board.objects.update(equivalence_bound=2.5, ranks_few_raters=False)
    board.refresh_from_db()
    board.target_models.add(row["target_model"])
    boards.publish_entries(board, [row])

    def told(older, newer):
        page = client.get(address(board), {"older": older, "newer": newer}).content.decode()
        facts = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", page, re.DOTALL)
        return {name: re.sub(r"<[^>]*>|\s+", " ", value).split() for name, value in facts}

    assert told(1, 2) == {}
    assert told(2, 3) == {
        "Target models": ["from", "any", "to", "resnet"],
        "Equivalence bound": ["from", "10.0", "to", "2.5"],
        "Rank entries of few raters": ["from", "yes", "to", "no"],
    }


def test_snapshots_are_listed_page_by_page(client, monkeypatch):
    monkeypatch.setattr(import_module("leaderboard.views.snapshots"), "ON_A_PAGE", 2)
    board = boards.published(1).board
    for _ in range(3):
        boards.published(1, of=board)

    def page(**query):
        content = client.get(address(board), query).content.decode()
        return [int(cells[0].split()[1]) for cells in table_rows(content)], content

    numbers, first = page()
    assert (numbers, 'href="?before=3"' in first, "Changes since 2" in first) == ([4, 3], True, True)
    # Any two can be compared, without a list of all.
    assert [field.split() for field in re.findall(r"<input ([^>]*)>", first)] == [
        ['id="older"', 'name="older"', 'type="number"', 'min="1"', 'max="4"', 'value="3"', "required"],
        ['id="newer"', 'name="newer"', 'type="number"', 'min="1"', 'max="4"', 'value="4"', "required"],
    ]
    numbers, last = page(before=3)
    assert (numbers, "?before=" in last, "Newest snapshots" in last) == ([2, 1], False, True)
    for number in (0, 1):
        content = client.get(address(board), {"before": number}).content.decode()
        assert f"none before snapshot {number}" in content
    for query in ({"before": "x"}, {"before": 3, "newer": 2}):
        assert client.get(address(board), query).status_code == 400
