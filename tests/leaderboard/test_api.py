import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboard.exports import VALUES
from leaderboard.models import Board
from tests import factories
from tests.leaderboard import boards, rows

pytestmark = pytest.mark.django_db
URL = "/api/v1/leaderboard/"


def results(client, **parameters):
    response = client.get(URL, parameters)
    assert response.status_code == 200, response.content
    return response.json()["results"]


def test_gives_the_numbers_of_the_page_to_anyone(client):
    entry = rows.entry(
        attack=factories.attack(name="cAdv", slug="cadv"),
        target_model=factories.target_model(name="ResNet-50", slug="resnet-50"),
        mean_modified=0.0,
        mean_clean=-10.5,
        sd_clean=None,
        difference=10.5,
        input_digest="0" * 64,
    )
    expected = {
        "attack": "cadv",
        "attack_name": "cAdv",
        "family": "other",
        "year": None,
        "target_model": "resnet-50",
        "target_model_name": "ResNet-50",
        **{name: getattr(entry, name) for name in VALUES},
        "difference": 10.5,
        "mean_modified": 0.0,
        "mean_clean": -10.5,
        "sd_clean": None,
        "rank": 1,
        "verdict": "inconclusive",
        "flags": [],
        "input_digest": "0" * 64,
        "computed_at": entry.computed_at.isoformat().replace("+00:00", "Z"),
        "is_demo": False,
        "external_citation": None,
        "page": "http://testserver/leaderboard/slider/cadv/resnet-50/?snapshot=1",
    }
    found = results(client)
    assert client.get(f"{URL}{entry.pk}/").json() == found[0]
    assert {name: value for name, value in found[0].items() if name in expected} == expected
    assert found[0]["board"]["slug"] == "slider"
    assert (found[0]["snapshot"]["number"], found[0]["snapshot"]["equivalence_bound"]) == (1, 10.0)
    assert found[0].keys() - expected.keys() == {"id", "board", "snapshot"}


def test_boards_and_their_snapshots(client):
    snapshot = boards.published(2, name="Slider", slug="slider")
    boards.published(1, name="Secret", slug="secret", is_public=False)
    assert [board["slug"] for board in client.get("/api/v1/boards/").json()["results"]] == ["slider"]
    assert client.get("/api/v1/boards/slider/").json()["name"] == "Slider"
    assert client.get("/api/v1/boards/secret/").status_code == 404
    found = client.get("/api/v1/boards/slider/snapshots/").json()["results"]
    assert [(one["board"], one["number"], one["status"]) for one in found] == [("slider", 1, "published")]
    assert client.get("/api/v1/boards/slider/snapshots/1/").json()["input_digest"] == snapshot.input_digest
    for missing in ("slider/snapshots/2", "secret/snapshots", "secret/snapshots/1"):
        assert client.get(f"/api/v1/boards/{missing}/").status_code == 404


def test_an_entry_has_the_bound_and_level_that_it_was_tested_at(client):
    board = boards.published(1, equivalence_bound=7.5, alpha=0.01).board
    type(board).objects.update(equivalence_bound=30.0, alpha=0.2)
    (found,) = results(client, snapshot=1)
    assert (found["snapshot"]["equivalence_bound"], found["snapshot"]["alpha"]) == (7.5, 0.01)
    assert "equivalence_bound" not in found["board"]
    assert client.get(f"/api/v1/boards/{board.slug}/").json()["equivalence_bound"] == 30.0


def test_older_snapshots_stay_readable(client):
    board = boards.published(2).board
    boards.published(3, of=board)
    assert len(results(client)) == 3 + 2
    old = results(client, board=board.slug, snapshot=1)
    assert {row["snapshot"]["number"] for row in old} == {1}
    assert sorted(row["rank"] for row in old) == [1, 2]
    assert client.get(f"{URL}{old[0]['id']}/").json() == old[0]
    assert results(client, board=board.slug, snapshot=9) == []


@pytest.mark.parametrize(
    ("parameter", "value", "count"),
    [("family", "texture", 1), ("verdict", "imperceptible", 1), ("year", 2019, 1), ("min_raters", 31, 0)],
)
def test_filters_of_the_page(client, parameter, value, count):
    boards.published(3)
    assert len(results(client, **{parameter: value})) == count


def test_filters_keep_the_rank_among_all(client):
    model = factories.target_model(slug="resnet")
    first, second, demo, unscored = (factories.attack(slug=slug) for slug in ("first", "second", "demo", "unscored"))
    rows.entry(attack=first, target_model=model, difference=5.0)
    rows.entry(attack=second, target_model=factories.target_model(slug="swin"), difference=-9.0)
    rows.entry(attack=demo, target_model=model, difference=1.0, is_demo=True)
    rows.entry(attack=unscored, target_model=model, difference=None)

    def ranks(**parameters):
        return {row["attack"]: row["rank"] for row in results(client, **parameters)}

    assert ranks() == {"first": 1, "second": 2, "demo": 1, "unscored": None}
    assert ranks(target_model="swin") == {"second": 2}
    assert ranks(attack="second") == {"second": 2}
    assert ranks(is_demo="true") == {"demo": 1}
    assert ranks(is_demo="false", target_model="resnet") == {"first": 1, "unscored": None}


def test_boards_are_ranked_apart(client):
    likert = Board.objects.create(name="Five points", slug="five", scale_minimum=-2, scale_maximum=2)
    rows.entry(difference=40.0)
    rows.entry(board=likert, difference=1.0)
    assert [row["rank"] for row in results(client)] == [1, 1]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("atack", "cadv"),
        ("attack", "unknown"),
        ("target_model", "unknown"),
        ("is_demo", "perhaps"),
        ("family", "noise"),
    ],
)
def test_what_it_does_not_know_is_refused_by_name(client, parameter, value):
    rows.entry()
    response = client.get(URL, {parameter: value})
    assert response.status_code == 400
    assert list(response.json()) == [parameter]


def test_is_read_only(client):
    entry = rows.entry()
    for method in ("post", "put", "patch", "delete"):
        assert getattr(client, method)(f"{URL}{entry.pk}/").status_code in {401, 405}


def test_pages_give_each_row_once(client):
    before = {entry.pk for entry in boards.published(5).entries.all()}
    seen, address = [], f"{URL}?page_size=2"
    while address:
        page = client.get(address).json()
        seen += [row["id"] for row in page["results"]]
        address = page["next"]
    assert len(seen) == 5
    assert set(seen) == before


def test_queries_do_not_grow_with_rows(client):
    counts = []
    for _ in range(2):
        rows.entry()
        rows.entry()
        with CaptureQueriesContext(connection) as queries:
            results(client)
        counts.append(len(queries))
    assert counts == [3, 3]


def test_the_root_lists_all_endpoints(client):
    assert {"images", "classes", "attacks", "target-models", "leaderboard"} <= client.get("/api/v1/").json().keys()


def test_the_schema_is_public_and_valid(client, tmp_path):
    response = client.get("/api/v1/schema/")
    assert response.status_code == 200
    assert b"/api/v1/leaderboard/" in response.content
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yaml"))
