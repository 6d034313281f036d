"""What can be downloaded of a board: the rows of the page, in the same order, and the ratings behind them."""

import csv
import gzip
import io
import json

import pytest
from django.urls import reverse

from leaderboard import latex
from leaderboard.exports import VALUES
from leaderboard.inputs import read_inputs
from tests import factories
from tests.leaderboard import boards

pytestmark = pytest.mark.django_db


@pytest.fixture
def board():
    board = boards.board(name="Slider & more", slug="slider")
    resnet = factories.target_model(name="ResNet_50", slug="resnet")
    vit = factories.target_model(name="ViT", slug="vit")
    rows = [
        {"attack": factories.attack(name="=cAdv", slug="cadv"), "target_model": resnet, "difference": 1 / 3},
        {"attack": factories.attack(name="100%", slug="all"), "target_model": vit, "difference": -60.0},
        {"attack": factories.attack(name="StAdv", slug="stadv"), "target_model": vit, "difference": None},
    ]
    boards.publish_entries(board, rows)
    return board


def get(client, kind, **parameters):
    response = client.get(reverse("board-table-file", args=["slider", kind]), parameters)
    assert response.status_code == 200
    return response


def test_csv_has_every_stored_value_and_the_snapshot(client, board):
    response = get(client, "csv")
    assert response["Content-Disposition"] == 'inline; filename="slider-snapshot-1.csv"'
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [row["attack"] for row in rows] == ["cadv", "all", "stadv"]
    first, _, last = rows
    assert (first["board"], first["snapshot"], first["snapshot_status"]) == ("slider", "1", "published")
    assert float(first["difference"]) == 1 / 3
    assert first["attack_name"] == "'=cAdv"  # no formula for a spreadsheet
    assert first["page"] == "http://testserver/leaderboard/slider/cadv/resnet/?snapshot=1"
    assert (last["difference"], last["rank"]) == ("", "")
    assert set(VALUES) <= first.keys()


def test_csv_of_no_rows_has_the_same_columns(client, board):
    whole, nothing = (get(client, "csv", **query).content.decode() for query in ({}, {"min_raters": 999}))
    assert nothing.splitlines() == whole.splitlines()[:1]


def test_json_says_what_it_is_a_part_of(client, board):
    found = json.loads(get(client, "json", target_model="vit").content)
    assert found["query"] == "target_model=vit&snapshot=1"
    assert (found["snapshot"]["board"], found["snapshot"]["number"]) == ("slider", 1)
    assert found["snapshot"]["input_digest"] == board.snapshots.get(number=1).input_digest
    assert [entry["difference"] for entry in found["entries"]] == [-60.0, None]


@pytest.mark.parametrize("kind", ["csv", "json", "tex"])
def test_files_have_the_rows_and_the_order_of_the_page(client, board, kind):
    text = get(client, kind, sort="-attack").content.decode()
    names = ["StAdv", "cAdv", r"100\%" if kind == "tex" else "100%"]
    places = [text.index(name) for name in names]
    assert places == sorted(places)
    assert "StAdv" in get(client, kind, target_model="vit").content.decode()
    assert "cAdv" not in get(client, kind, target_model="vit").content.decode()


def test_latex_has_the_columns_of_the_page_rounded_as_there(client, board):
    columns = ["rank", "attack", "target_model", "difference", "interval", "verdict"]
    text = get(client, "tex", columns=columns).content.decode()
    assert r"1 & =cAdv & ResNet\_50 & +0.3 & {}[$-$3.1, 3.7] & Imperceptible \\" in text
    assert r"-- & StAdv & ViT & -- & -- & Not estimable \\" in text
    assert r"\begin{tabular}{lllrll}" in text
    assert "% Slider & more, snapshot 1 (Published), input digest " in text
    assert r"\caption{Slider \& more, snapshot 1 of" in text
    assert r"equivalence bounds $\pm$10, each one-sided test at the level 0.05.}" in text


def test_latex_takes_no_command_from_a_name():
    assert latex.escaped(r"\input{x} $5 50% a_b #1 ~^") == (
        r"\textbackslash{}input\{x\} \$5 50\% a\_b \#1 \textasciitilde{}\textasciicircum{}"
    )
    assert latex.escaped("a\nb") == "a b"


def test_latex_comments_stay_on_their_lines():
    text = latex.table([("A", False)], [["x"]], caption="", label="t", comments=["one\n\\input{secret}"])
    assert text.splitlines()[0] == r"% one \input{secret}"


def test_inputs_are_the_ratings_of_all_entries(client, board):
    response = client.get(reverse("board-inputs", args=["slider", 1]))
    assert response["Content-Disposition"] == 'attachment; filename="slider-snapshot-1-inputs.csv.gz"'
    content = b"".join(response.streaming_content)
    assert gzip.decompress(content).decode().count("\n") == 1 + 3 * 2
    assert [inputs.attack for inputs in read_inputs(content, "inputs")] == ["cadv", "all", "stadv"]
    assert client.get(reverse("board-inputs", args=["slider", 2])).status_code == 404
