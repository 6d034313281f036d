"""A connection that PostgreSQL has ended is replaced before a request fails by it, without asking at each request."""

import select

import psycopg
import pytest
from django.db import DataError, connection

from scooter_site.common.postgresql.base import base
from scooter_site.common.prepared import Write, _Argument, _Statement, write

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's connections"),
]


@pytest.fixture
def asked(monkeypatch):
    """Each time that the server is asked whether it is alive."""
    times = []
    ask = base.DatabaseWrapper.is_usable

    def noted(self):
        times.append(self)
        return ask(self)

    monkeypatch.setattr(base.DatabaseWrapper, "is_usable", noted)
    return times


@pytest.fixture(autouse=True)
def between_requests():
    """As a web process has it between two requests: connected, kept, and to be checked at the next statement."""
    connection.ensure_connection()
    connection.health_check_enabled = True
    connection.health_check_done = False
    yield
    connection.close()


def process_id() -> int:
    return connection.connection.info.backend_pid


def from_outside(sql: str) -> None:
    with psycopg.connect(connection.connection.info.dsn, password=connection.settings_dict["PASSWORD"]) as other:
        other.execute(sql)


def test_a_live_connection_is_kept_and_the_server_is_not_asked(asked):
    before = process_id()
    connection.close_if_health_check_failed()
    assert connection.is_usable()
    assert (process_id(), asked) == (before, [])


def test_a_connection_that_the_server_ended_is_replaced_before_the_next_statement(asked):
    before = process_id()
    from_outside(f"SELECT pg_terminate_backend({before}, 10000)")  # as a restart or a failover does it
    with connection.cursor() as cursor:
        cursor.execute("SELECT 41 + 1")
        assert cursor.fetchone() == (42,)
    assert process_id() != before
    assert len(asked) == 1


def test_one_that_we_closed_ourselves_is_replaced_too():
    connection.connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_after_an_error_of_the_database_it_is_asked(asked):
    connection.errors_occurred = True
    connection.close_if_unusable_or_obsolete()
    assert (len(asked), connection.errors_occurred) == (1, False)


def test_a_message_from_the_server_is_no_end(asked):
    """As when a changed setting is announced to all who are connected."""
    before = process_id()
    with connection.cursor() as cursor:
        cursor.execute("LISTEN something")
    from_outside("NOTIFY something")
    select.select([connection.connection], [], [], 30)  # until the message is here
    assert connection.is_usable()
    assert process_id() == before
    assert len(asked) == 1
    assert connection.is_usable()
    assert len(asked) == 1


def test_a_plan_is_made_anew_after_a_migration_has_widened_its_column():
    adding = _Statement("INSERT INTO widened VALUES (%s)", [_Argument(0)])
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE widened (number integer)")
        write(Write(adding, [1]))
        cursor.execute("ALTER TABLE widened ALTER COLUMN number TYPE bigint")
    with pytest.raises(DataError, match="out of range"):  # the old plan
        write(Write(adding, [2**40]))
    connection.close_if_unusable_or_obsolete()  # as at the beginning of a request
    write(Write(adding, [2**40]))
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM widened ORDER BY number")
        assert cursor.fetchall() == [(1,), (2**40,)]
