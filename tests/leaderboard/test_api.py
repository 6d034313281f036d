import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

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
        "id": entry.pk,
        "board": {"slug": "slider", "name": "Scale −100 to 100", "scale_minimum": -100, "scale_maximum": 100},
        "rank": 1,
        "attack": "cadv",
        "attack_name": "cAdv",
        "target_model": "resnet-50",
        "target_model_name": "ResNet-50",
        "participants": 30,
        "ratings": 3000,
        "ratings_modified": 1500,
        "ratings_clean": 1500,
        "images_modified": 120,
        "images_clean": 130,
        "mean_modified": 0.0,
        "sd_modified": 30.0,
        "mean_clean": -10.5,
        "sd_clean": None,
        "difference": 10.5,
        "is_demo": False,
        "input_digest": "0" * 64,
        "computed_at": entry.computed_at.isoformat().replace("+00:00", "Z"),
    }
    assert results(client) == [expected]
    assert client.get(f"{URL}{entry.pk}/").json() == expected


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
    [("atack", "cadv"), ("attack", "unknown"), ("target_model", "unknown"), ("is_demo", "perhaps")],
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
    assert counts == [1, 1]


def test_the_root_lists_all_endpoints(client):
    assert {"images", "classes", "attacks", "target-models", "leaderboard"} <= client.get("/api/v1/").json().keys()


def test_the_schema_is_public_and_valid(client, tmp_path):
    response = client.get("/api/v1/schema/")
    assert response.status_code == 200
    assert b"/api/v1/leaderboard/" in response.content
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yaml"))
