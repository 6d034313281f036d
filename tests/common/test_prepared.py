"""Statements that are sent without the ORM's detours do what the ORM's own do, with any arguments, in any thread."""

import uuid
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from scooter_site.common.prepared import PreparedQuery, change, insertion, write
from studies.models import Participation, ParticipationEvent, Rating, Trial
from tests import factories, walks
from tests.concurrency.threads import at_once

COLUMNS = ("id", "token", "first_shown_at", "parameters", "participation__public_id", "image__linf", "position")


def statements(captured) -> list[str]:
    """What was sent, but for what a connection is sent once."""
    return [query["sql"] for query in captured if not query["sql"].startswith("PREPARE")]


def trials(public_id, slug, position):
    found = Trial.objects.filter(participation__public_id=public_id, participation__study__slug=slug)
    return found.filter(position__lte=position, position__gte=1).order_by("position").values_list(*COLUMNS)[:3]


@pytest.fixture
def prepared():
    return PreparedQuery(trials, uuid.UUID(int=7), "a slug", 31_999)


@pytest.mark.django_db
def test_it_gives_what_the_query_gives(prepared):
    people = [walks.to_main(factories.running_study()) for _ in range(2)]
    Trial.objects.filter(position=2).update(parameters={"exposure_ms": 100})
    for person in people:
        for position in (0, 1, 2, 10):
            arguments = (person.public_id, person.study.slug, position)
            assert [tuple(row) for row in prepared.rows(*arguments)] == list(trials(*arguments))
    assert prepared.rows(people[0].public_id, people[1].study.slug, 10) == []
    with CaptureQueriesContext(connection) as captured:
        prepared.rows(people[0].public_id, people[0].study.slug, 10)
    assert len(captured) == 1


@pytest.mark.django_db(transaction=True)
def test_it_may_be_used_by_many_threads(prepared):
    person = walks.consent(walks.enter(factories.running_study()))
    arguments = (person.public_id, person.study.slug, 10)
    expected = list(trials(*arguments))
    assert len(expected) == 3
    results = at_once([lambda: [tuple(row) for row in prepared.rows(*arguments)]] * 10)
    assert results == [expected] * 10


@pytest.mark.django_db(transaction=True)
def test_a_connection_to_a_server_prepares_a_statement_once_and_a_rollback_keeps_it(prepared):
    first, later = ["PREPARE", "EXECUTE", "SELECT"], ["EXECUTE", "SELECT"]
    if connection.vendor != "postgresql":
        first = later = ["SELECT", "SELECT"]
    person = walks.to_main(factories.running_study())
    arguments = (person.public_id, person.study.slug, 10)

    def sent() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert [tuple(row) for row in prepared.rows(*arguments)] == list(trials(*arguments))
        return [query["sql"].split()[0] for query in captured]

    with transaction.atomic():
        assert sent() == first
        transaction.set_rollback(True)
    for _ in range(10):  # from the sixth time on, PostgreSQL may plan without looking at the arguments
        assert sent() == later
    connection.close()
    assert sent() == first
    # After an error a plan may be of no use any more, as after a migration: the next request makes it anew.
    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM no_such_table")
    connection.health_check_enabled, connection.health_check_done = True, False
    connection.close_if_health_check_failed()
    assert sent() == first
    assert sent() == later


@pytest.mark.django_db
def test_the_name_of_what_is_prepared_is_that_of_the_statement_in_every_process(prepared):
    again = PreparedQuery(trials, uuid.UUID(int=8), "another slug", 31_998)
    other = PreparedQuery(lambda *arguments: trials(*arguments)[:2], uuid.UUID(int=7), "a slug", 31_999)
    names = [query.reading(connection).statement.name for query in (prepared, again, other)]
    assert names[0] == names[1] != names[2]


@pytest.mark.django_db(transaction=True)
def test_a_query_that_locks_rows_is_for_transactions():
    locked = PreparedQuery(lambda pk: Participation.objects.select_for_update().filter(pk=pk), 2**40)
    with transaction.atomic():
        assert locked.first(1) is None
    # SQLite locks no rows: there Django sends the query as any other, and so do we.
    locks_rows = connection.features.has_select_for_update
    with pytest.raises(TransactionManagementError) if locks_rows else nullcontext():
        locked.first(1)


@pytest.mark.django_db(transaction=True)
def test_several_changes_are_for_transactions():
    person = walks.enter(factories.running_study())
    changes = [change(Participation, person.pk, {"attention_failures": number}) for number in (1, 2)]
    with pytest.raises(TransactionManagementError):
        write(*changes)
    person.refresh_from_db()
    assert person.attention_failures == 0
    with transaction.atomic():
        write(*changes)
    person.refresh_from_db()
    assert person.attention_failures == 2


@pytest.mark.django_db
def test_objects_come_with_their_related_ones_and_without_deferred_columns(django_assert_num_queries):
    prepared = PreparedQuery(
        lambda pk: (
            Participation.objects.select_related("study__attack", "identity", "completion_code")
            .defer("study__title", "step")
            .filter(pk=pk)
        ),
        2**40,
    )
    person = walks.enter(factories.running_study(), participant_id="p")
    stranger = Participation.objects.create(study=person.study)
    with CaptureQueriesContext(connection) as captured:
        found, without_identity = (prepared.first(pk) for pk in (person.pk, stranger.pk))
        assert found == person
        assert (found.study, found.study.attack.pk) == (person.study, person.study.attack_id)
        assert found.identity.participation is found
        assert (found.identity.participant_id, found.completion_code) == ("p", None)
        assert not hasattr(without_identity, "identity")
    assert len(statements(captured)) == 2
    with django_assert_num_queries(2):  # what was left out is looked up as usual
        assert (found.step, found.study.title) == (person.step, person.study.title)
    found.study.title = "Another"
    found.study.save(update_fields=["title"])
    assert prepared.first(person.pk).study.title == "Another"
    assert prepared.first(0) is None
    assert prepared.objects(0) == []


@pytest.mark.django_db
def test_a_query_for_values_has_no_objects(prepared):
    with pytest.raises(TypeError, match="asks for values"):
        prepared.objects(uuid.uuid4(), "x", 1)


@pytest.mark.django_db
def test_an_argument_that_would_have_no_effect_is_refused():
    nothing = PreparedQuery(lambda pk: Trial.objects.filter(pk=3).values_list("pk"), 2**40)
    with pytest.raises(ValueError, match="leaves a stand-in out"):
        nothing.rows(3)


@pytest.mark.django_db
def test_rows_are_written_as_the_orm_writes_them():
    """Every kind of column that a rating request writes: numbers, a time, JSON, and what is empty."""
    participation = walks.to_main(factories.running_study())
    first, second, third = participation.trials.order_by("position")[:3]
    at = datetime(2026, 11, 30, 12, 0, 1, 234567, UTC)
    with CaptureQueriesContext(connection) as captured:
        write(
            insertion(Rating, {"trial_id": first.pk, "value": 0, "answered_at": at, "first_interaction_ms": 1}),
            change(Trial, second.pk, {"first_shown_at": at, "parameters": {"exposure_ms": 100, "quoted": "it's; %s"}}),
            insertion(ParticipationEvent, {"participation_id": participation.pk, "name": "x", "detail": {}, "at": at}),
        )
    assert len(statements(captured)) == (1 if connection.vendor == "postgresql" else 3)
    rating = Rating.objects.get()
    assert (rating.trial, rating.value, rating.answered_at, rating.response_ms) == (first, 0, at, None)
    second.refresh_from_db()
    assert (second.first_shown_at, second.parameters) == (at, {"exposure_ms": 100, "quoted": "it's; %s"})
    assert Trial.objects.filter(parameters__exposure_ms=100).get() == second
    third.refresh_from_db()
    assert (third.first_shown_at, third.parameters) == (None, {})
    assert participation.events.get(name="x").at == at
    write(change(Trial, second.pk, {"first_shown_at": None}))
    second.refresh_from_db()
    assert second.first_shown_at is None


@pytest.mark.django_db
def test_what_the_database_refuses_is_an_error_of_djangos():
    participation = walks.to_main(factories.running_study())
    rating = {
        "trial_id": participation.trials.first().pk, "value": 1, "first_interaction_ms": 1,
        "answered_at": datetime(2026, 11, 30, tzinfo=UTC),
    }  # fmt: skip
    write(insertion(Rating, rating))
    at_step = change(Participation, participation.pk, {"step": "feedback"})
    for writes in ([at_step, insertion(Rating, rating)], [insertion(Rating, rating), at_step]):
        with pytest.raises(IntegrityError), transaction.atomic():
            write(*writes)
        participation.refresh_from_db()
        assert (Rating.objects.count(), participation.step) == (1, "main")
