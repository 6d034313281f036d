"""Whatever leaves the page of a retracted snapshot says that it was retracted."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from leaderboard.services.publication import retract
from tests import factories
from tests.leaderboard import boards

pytestmark = pytest.mark.django_db
PAIR = ["slider", "cadv", "resnet"]


@pytest.fixture(autouse=True)
def _retracted(django_user_model):
    cache.clear()
    pair = {"attack": factories.attack(slug="cadv"), "target_model": factories.target_model(slug="resnet")}
    snapshot = boards.publish_entries(boards.board(name="Slider", slug="slider"), [pair])
    retract(snapshot, by=django_user_model.objects.create_user("curator"), reason="Wrong scale.")


def get(client, name, *arguments):
    response = client.get(reverse(name, args=arguments), {"snapshot": 1})
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("name", "arguments", "parts"),
    [
        (
            "board",
            PAIR[:1],
            ["<title>Slider, snapshot 1 (retracted)", "Retracted: Slider: human ratings", ", retracted on 20"],
        ),
        ("board-plot", [*PAIR[:1], "intervals"], ["Slider, snapshot 1 (retracted)"]),
        ("board-plot-file", [*PAIR[:1], "heat-map", "svg"], ["<title>Slider, snapshot 1 (retracted): attacks"]),
        ("board-table-file", [*PAIR[:1], "tex"], [r"\caption{Slider, snapshot 1 (retracted) of 20"]),
        ("entry", PAIR, [": Slider, snapshot 1 (retracted)", "Retracted: ", ", retracted on 20"]),
        ("entry-plot-file", [*PAIR, "distributions", "svg"], ["(retracted): ratings of"]),
        ("entry-plot-file", [*PAIR, "image-effects", "svg"], ["(retracted): answers"]),
        ("entry-plot-file", [*PAIR, "participants", "svg"], ["(retracted): differences"]),
    ],
)
def test_it_is_told(client, name, arguments, parts):
    content = get(client, name, *arguments)
    assert [part for part in parts if part not in content] == []


def test_a_badge_gives_no_verdict(client):
    badge = get(client, "entry-badge", *PAIR)
    assert "<title>Scooter: retracted</title>" in badge
    assert "perceptible" not in badge
