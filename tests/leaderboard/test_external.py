"""Results from elsewhere: the field version's published sets give its table, and a faulty file gives nothing."""

import json

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboard import selectors
from leaderboard.inputs import read_inputs
from leaderboard.models import Entry, ExternalResult, Recomputation
from leaderboard.services.external import add_external_result, withdraw_external_result
from leaderboard.services.publication import publish
from leaderboard.services.recompute import recompute_pair
from leaderboard.statistics.ratings_file import UnreadableRatings
from tests import factories
from tests.leaderboard import boards, rows

pytestmark = pytest.mark.django_db

# The field version's table (protocol.md): participants, mean of modified and of clean images, difference of the mixed
# model. There high means clean; here it means modified, so that the means change their signs.
FIELD_VERSION = {
    "semanticadv": (74, -1.064, 0.921, 1.99),
    "cadv": (61, -1.674, 0.920, 2.60),
    "aca": (50, -1.155, 0.715, 1.88),
}
SMALL = b"rating,pid,image_type,image_id\n2,a,modified,1\n-1,a,real,2\n"


@pytest.fixture
def board():
    return boards.board(name="Field version", slug="field", scale_minimum=-2, scale_maximum=2)


def add(board, content=SMALL, name="ratings.csv", **fields):
    pair = {
        "attack": fields.pop("attack", None) or factories.attack(),
        "target_model": fields.pop("target_model", None) or factories.target_model(),
    }
    return add_external_result(
        board=board,
        content=content,
        name=name,
        **{"high_means": "clean", "citation": "Somebody (2024).", "added_by": None, **pair, **fields},
    )


def compute(external):
    recompute_pair(external.attack_id, external.target_model_id)


def test_the_published_sets_give_the_table_of_the_field_version(board, shared_data):
    folder = shared_data / "ratings"
    lme4 = json.loads((folder / "expected_lme4.json").read_text())
    for name in FIELD_VERSION:
        external = add(board, (folder / f"{name}.csv").read_bytes(), attack=factories.attack(slug=name))
        compute(external)
    snapshot = publish(board)
    entries = {entry.attack.slug: entry for entry in selectors.visible_entries(snapshot)}
    assert list(entries) == ["aca", "semanticadv", "cadv"], "the smallest difference first"
    for name, (participants, mean_modified, mean_clean, difference) in FIELD_VERSION.items():
        entry, expected = entries[name], lme4[name]["lmm"]
        assert entry.participants == participants
        assert round(-entry.mean_modified, 3) == mean_modified
        assert round(-entry.mean_clean, 3) == mean_clean
        assert round(entry.difference, 2) == difference
        assert entry.standard_error == pytest.approx(expected["standard_error"], rel=1e-4)
        assert [entry.ci90_low, entry.ci90_high] == pytest.approx(expected["ci90"], rel=1e-4)
        assert (entry.verdict, entry.flags[-1]) == ("perceptible", "external")
    assert [entry.rank for entry in entries.values()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("rules", "field"),
    [({"protocol": "paper"}, "board"), ({"verified_images_only": True}, "board"), ({}, "target_model")],
)
def test_a_board_that_does_not_take_it_refuses_it_and_drops_it(board, rules, field):
    external = add(board)
    compute(external)
    assert Entry.objects.count() == 1
    type(board).objects.update(**rules)
    if not rules:
        board.target_models.add(factories.target_model())
    board.refresh_from_db()
    with pytest.raises(ValidationError) as error:
        add(board)
    assert list(error.value.message_dict) == [field]
    compute(external)
    assert not Entry.objects.exists()


def test_a_participant_cannot_be_told_by_the_published_id(board):
    external = add(board, b"rating,pid,image_type,image_id\n2,60a1b2c3d4e5f60718293a4b,modified,=cmd()\n")
    compute(external)
    entry = Entry.objects.get()
    with entry.inputs.open("rb") as file:
        (pair,) = read_inputs(file.read(), "inputs")
    (rating,) = pair.ratings
    assert len(rating.participant) == 32
    assert "60a1b2c3" not in rating.participant
    assert (rating.image, rating.is_modified, rating.value) == ("modified:=cmd()", True, -2.0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"rating,pid,image_type,image_id\n3,a,modified,1\n", "mine.csv, line 2, column rating: '3' is no number"),
        (b"rating,pid,image_type,image_id\n1,a,fake,1\n", "mine.csv, line 2, column image_type: 'fake' is none of"),
        (b"rating,pid,image_id\n1,a,1\n", "mine.csv, line 1: column image_type is missing"),
        (b"rating,pid,image_type,image_id\n", "mine.csv: has no ratings"),
        (b"\xff\xfe", "mine.csv: is not UTF-8"),
        (
            b"rating,pid,image_type,image_id\n0.1,a,clean,1\n-0.1,a,modified,1\n",
            "mine.csv: all ratings lie between -0.1 and 0.1, on a scale from -2 to 2: was it this scale",
        ),
    ],
)
def test_a_faulty_file_is_refused_by_its_own_name_and_leaves_nothing(board, content, message):
    with pytest.raises(UnreadableRatings) as error:
        add(board, content, "mine.csv")
    assert str(error.value).startswith(message)
    assert not ExternalResult.objects.exists()


def test_a_pair_has_one_on_a_board(board):
    first = add(board)
    with pytest.raises(ValidationError, match="Withdraw it first"):
        add(board, attack=first.attack, target_model=first.target_model)
    withdraw_external_result(first, reason="Wrong file.")
    add(board, attack=first.attack, target_model=first.target_model)
    assert ExternalResult.objects.count() == 2


def test_a_board_of_the_demonstration_takes_none():
    with pytest.raises(ValidationError, match="holds no real results"):
        add(boards.board(is_demo=True, scale_minimum=-2, scale_maximum=2))


def test_what_is_withdrawn_leaves_draft_and_pages(board):
    external = add(board)
    compute(external)
    snapshot = publish(board)
    assert [entry.external_result for entry in selectors.visible_entries(snapshot)] == [external]
    with pytest.raises(ValidationError, match="Say why"):
        withdraw_external_result(external, reason=" ")
    withdraw_external_result(external, reason="Its authors found a fault.")
    assert Recomputation.objects.get().requested_at is not None
    compute(external)
    assert selectors.visible_entries(snapshot) == []
    assert list(Entry.objects.values_list("snapshot", flat=True)) == [snapshot.pk]


def test_own_ratings_go_before_those_from_elsewhere(board):
    external = add(board)
    compute(external)
    assert Entry.objects.get().external_result == external
    image = factories.modified_image(attack=external.attack, target_model=external.target_model)
    study = rows.study(external.attack, external.target_model, scale_minimum=-2, scale_maximum=2)
    rows.finished(study, [(image, 1)])
    compute(external)
    entry = Entry.objects.get()
    assert (entry.external_result, entry.mean_modified) == (None, 1.0)
    assert "external" not in entry.flags


def test_rows_come_with_their_sources_in_one_query(board):
    for _ in range(2):
        compute(add(board))
    publish(board)
    with CaptureQueriesContext(connection) as queries:
        cited = [row.external_result.citation for row in selectors.published_rows()]
    assert (cited, len(queries)) == (["Somebody (2024)."] * 2, 1)
