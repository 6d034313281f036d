"""One rating request: what it costs the database, what it stores, changing an answer, and keeping a place."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from studies.flow import Step
from studies.models import Participation, Rating, RatingChange, TrialKind
from tests import factories, walks
from tests.studies.visitor import Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def revisable():
    """A browser in the main study of a study whose answers may be changed."""
    visitor = Visitor(factories.running_study(may_go_back=True))
    visitor.at(Step.MAIN)
    return visitor


def post(visitor, name, **fields):
    return visitor.client.post(visitor.address(name), fields, content_type="application/json")


def statements(act) -> list[str]:
    """The SQL of a request; what PostgreSQL is sent at once is told apart.

    But for BEGIN and COMMIT, and for PREPARE, of which a connection sees one per kind of statement.
    """
    with CaptureQueriesContext(connection) as captured:
        act()
    sent = [statement for query in captured for statement in query["sql"].split("; ")]
    return [statement for statement in sent if not statement.startswith(("BEGIN", "COMMIT", "PREPARE"))]


@pytest.mark.django_db(transaction=True)
def test_a_rating_request_costs_five_statements_and_six_where_a_check_is_failed():
    visitor = Visitor(factories.running_study(corrupted_check_count=2, instructed_check_count=2))
    participation = visitor.at(Step.MAIN)
    costs = {True: set(), False: set()}
    trials = list(participation.trials.select_related("image").order_by("position"))
    for trial in trials[:-1]:
        is_check = trial.kind != TrialKind.IMAGE
        value = walks.wrong_value(trial) if is_check else walks.right_value(trial)
        sent = statements(lambda trial=trial, value=value: visitor.rate(trial.token, value))
        assert not any("SAVEPOINT" in sql for sql in sent), sent
        costs[is_check].add(len(sent))
    assert costs == {False: {5}, True: {6}}
    assert Rating.objects.count() == len(trials) - 1
    repeat = statements(lambda: visitor.rate(trials[0].token, 0))
    assert len(repeat) == 3, repeat


def test_everything_measured_is_stored(visitor):
    trial = walks.current_trial(visitor.at(Step.MAIN))
    before = timezone.now()
    measured = {
        "response_ms": 2100, "first_interaction_ms": 900, "last_interaction_ms": 1800, "visible_ms": 2050,
        "focus_losses": 2, "shown_width": 1240, "shown_height": 930, "client_ms": 987_654,
    }  # fmt: skip
    assert visitor.rate(trial.token, 0, start_position=0, **measured).status_code == 200
    rating = Rating.objects.get()
    assert {name: getattr(rating, name) for name in measured} == measured
    assert (rating.value, rating.start_position) == (0, 0)
    assert before <= rating.answered_at <= timezone.now()


def test_an_item_says_what_is_stored_for_it_and_zero_is_an_answer(revisable):
    token = revisable.page().context["data"]["trial"]["token"]
    assert revisable.page().context["data"]["trial"]["answer"] is None
    following = revisable.rate(token, 0).json()["trial"]
    assert following["answer"] is None
    assert post(revisable, "back", token=following["token"]).json()["trial"]["answer"] == 0


def test_three_items_ahead_are_given_and_no_more(visitor):
    participation = visitor.at(Step.MAIN)
    tokens = [str(token) for token in participation.trials.order_by("position").values_list("token", flat=True)]
    state = visitor.page().context["data"]
    for position in range(len(tokens)):
        given = [item["token"] for item in (state["trial"], *state["upcoming"])]
        assert given == tokens[position : position + 4]
        state = visitor.rate(tokens[position], 0).json()
    assert state == {"trial": None, "upcoming": []}


def test_answers_that_waited_offline_are_taken_one_after_the_other(visitor):
    """Four are given without a connection; the second is sent too early, then all in order, one of them twice."""
    participation = visitor.at(Step.MAIN)
    tokens = [trial.token for trial in participation.trials.order_by("position")]
    assert visitor.rate(tokens[1], 2).status_code == 409
    assert not Rating.objects.exists()
    for value, token in enumerate([*tokens[:2], *tokens[1:4]]):
        assert visitor.rate(token, value).status_code == 200
    stored = Rating.objects.order_by("trial__position").values_list("value", flat=True)
    assert list(stored) == [0, 1, 3, 4]


# --- Going back -----------------------------------------------------------------------------------------------


def test_going_back_and_changing_an_answer_keeps_the_one_before(revisable):
    tokens = [str(trial.token) for trial in revisable.participation.trials.order_by("position")]
    for token in tokens[:3]:
        revisable.rate(token, 10)
    first_at = Rating.objects.get(trial__token=tokens[1]).answered_at
    assert post(revisable, "back", token=tokens[3]).json()["trial"]["token"] == tokens[2]
    shown = post(revisable, "back", token=tokens[2]).json()
    assert [item["token"] for item in (shown["trial"], *shown["upcoming"])] == tokens[1:5]
    assert [item["answer"] for item in (shown["trial"], *shown["upcoming"])] == [10, 10, None, None]
    assert not RatingChange.objects.exists()

    after = revisable.rate(tokens[1], -20, revision=True, response_ms=700).json()
    assert (after["trial"]["token"], after["trial"]["answer"]) == (tokens[2], 10)
    rating = Rating.objects.get(trial__token=tokens[1])
    assert (rating.value, rating.response_ms, rating.answered_at > first_at) == (-20, 700, True)
    change = RatingChange.objects.get()
    assert (change.rating, change.value, change.answered_at, change.response_ms) == (rating, 10, first_at, 1200)
    # The place where the participant is has not moved.
    assert revisable.page().context["data"]["trial"]["token"] == tokens[3]
    # Sent again, as after a lost answer, it is no further change.
    again = revisable.rate(tokens[1], -20, revision=True)
    assert again.json() == after
    assert RatingChange.objects.count() == 1


def test_only_a_revision_changes_an_answer(revisable):
    token = revisable.page().context["data"]["trial"]["token"]
    revisable.rate(token, 10)
    assert revisable.rate(token, 20).json()["trial"]["position"] == 2
    assert Rating.objects.get().value == 10
    assert revisable.rate(token, 20, revision=True).status_code == 200
    assert Rating.objects.get().value == 20


def test_without_the_setting_nothing_is_shown_again_or_changed(visitor):
    tokens = [trial.token for trial in visitor.at(Step.MAIN).trials.order_by("position")]
    visitor.rate(tokens[0], 10)
    assert post(visitor, "back", token=str(tokens[1])).status_code == 409
    assert visitor.rate(tokens[0], 20, revision=True).status_code == 409
    assert (Rating.objects.get().value, RatingChange.objects.count()) == (10, 0)


def test_there_is_nothing_before_the_first_item_nor_beyond_the_current_one(revisable):
    tokens = [str(trial.token) for trial in revisable.participation.trials.order_by("position")]
    assert post(revisable, "back", token=tokens[0]).status_code == 409
    assert post(revisable, "back", token=tokens[2]).status_code == 409
    assert post(revisable, "back", token="x").status_code == 400
    assert revisable.rate(tokens[1], 5, revision=True).status_code == 409
    revisable.rate(tokens[0], 5)
    assert post(revisable, "back", token=tokens[1]).json()["trial"]["token"] == tokens[0]


def test_a_changed_answer_to_a_check_is_judged_anew(revisable):
    participation = revisable.participation
    check = participation.trials.get(kind=TrialKind.INSTRUCTED)
    while walks.current_trial(participation) != check:
        participation = walks.rate(participation)
    failures = []
    for value in (walks.wrong_value(check), walks.right_value(check), walks.wrong_value(check)):
        assert revisable.rate(check.token, value, revision=bool(failures)).status_code == 200
        failures.append(revisable.participation.attention_failures)
    assert failures == [1, 0, 1]
    assert [change.value for change in RatingChange.objects.all()] == [
        walks.wrong_value(check), walks.right_value(check),
    ]  # fmt: skip


def test_when_the_ratings_are_over_none_can_be_changed(revisable):
    participation = revisable.participation
    last = participation.trials.order_by("-position")[0]
    walks.rate_all(participation)
    assert post(revisable, "back", token=str(last.token)).status_code == 409
    assert revisable.rate(last.token, 1, revision=True).status_code == 409
    assert not RatingChange.objects.exists()


# --- The heartbeat --------------------------------------------------------------------------------------------


def test_a_heartbeat_keeps_the_place(visitor):
    participation = visitor.at(Step.MAIN)
    long_ago = timezone.now() - timedelta(hours=2)
    Participation.objects.update(last_seen_at=long_ago, lease_expires_at=long_ago)
    answer = post(visitor, "heartbeat")
    assert (answer.status_code, answer.content) == (204, b"")
    participation.refresh_from_db()
    left = participation.lease_expires_at - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(minutes=visitor.study.lease_minutes)
    assert participation.last_seen_at > long_ago


def test_a_heartbeat_after_the_end_says_that_the_page_is_out_of_date(visitor):
    visitor.at(Step.END)
    before = Participation.objects.values().get()
    assert post(visitor, "heartbeat").status_code == 409
    assert Participation.objects.values().get() == before


@pytest.mark.parametrize("name", ["rate", "back", "heartbeat"])
def test_strangers_are_told_that_they_are_not_known(study, name):
    stranger = Visitor(study)
    assert post(stranger, name, token="x").status_code == 403
    known = Visitor(study)
    known.at(Step.MAIN)
    Participation.objects.all().delete()
    trial = {"token": "00000000-0000-4000-8000-000000000000", "value": 1, "first_interaction_ms": 1}
    assert post(known, name, **trial).status_code == 403
