"""Statements for the few requests that come by the thousand.

Turning a small statement into SQL costs Django several times what sending it costs, and planning it costs PostgreSQL
several times what executing it costs. So both is done once: by each process, and on each connection (PREPARE).
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2s
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, DataError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.transaction import TransactionManagementError

from scooter_site.common.postgresql.base import DatabaseWrapper as PostgresqlWrapper


@dataclass(frozen=True)
class _Argument:
    """Stands in a statement's parameters for the value that a call gives."""

    number: int


@dataclass(frozen=True)
class _Statement:
    """SQL with a marker (%s) for each of its parameters."""

    sql: str
    parameters: Sequence[Any]

    @cached_property
    def name(self) -> str:
        """Of what is prepared: the same in all processes for the same statement, and only for that."""
        return "prepared_" + blake2s(repr(self.definition()).encode(), digest_size=12).hexdigest()

    def with_arguments(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The parameters of one call."""
        return [arguments[each.number] if isinstance(each, _Argument) else each for each in self.parameters]

    def definition(self) -> tuple[str, list[Any]]:
        """The same with PostgreSQL's names of arguments ($1), and the parameters that are none."""
        markers = [f"${each.number + 1}" if isinstance(each, _Argument) else "%s" for each in self.parameters]
        pieces = self.sql.split("%s")
        sql = "".join(itertools.chain.from_iterable(zip(pieces, [*markers, ""], strict=True)))
        return sql, [each for each in self.parameters if not isinstance(each, _Argument)]


@dataclass(frozen=True)
class _Reading:
    """How a query is sent, and what its rows become."""

    statement: _Statement
    locks: bool
    make: Callable[[Sequence[Any]], Model] | None  # a row's object, unless the query asks for values
    converters: Mapping[int, tuple[Sequence[Callable[..., Any]], Any]]  # by position: functions, and their expression


class PreparedQuery:
    """A query that the ORM turns into SQL once, and that is then sent again and again with other arguments.

    ``build`` makes the query from ``stand_ins``, values of the arguments' types (int, str, UUID) that occur nowhere
    else in it.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], *stand_ins: int | str | UUID) -> None:
        self._build = build
        self._stand_ins = stand_ins
        self._readings: dict[str, _Reading] = {}

    def rows(self, *arguments: int | str | UUID) -> list[list[Any]]:
        """The columns that the query selects, as Python values."""
        return read((self, arguments))[0]

    def objects(self, *arguments: int | str | UUID) -> list[Any]:
        """The objects that the query is for, with what ``select_related`` adds to them."""
        return self.objects_of(self.rows(*arguments))

    def objects_of(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The objects that these rows of the query are."""
        make = self.reading(connections[DEFAULT_DB_ALIAS]).make
        if make is None:
            raise TypeError("This query asks for values: they are in rows().")
        return [make(row) for row in rows]

    def first(self, *arguments: int | str | UUID) -> Any:
        """The first object, None if there is none."""
        return next(iter(self.objects(*arguments)), None)

    def reading(self, connection: BaseDatabaseWrapper) -> _Reading:
        """How this kind of database is asked."""
        found = self._readings.get(connection.vendor)
        if found is None:
            query = self._build(*self._stand_ins).query
            compiler: Any = query.get_compiler(connection=connection)
            sql, parameters = compiler.as_sql()
            stand_ins = [_for_database(value, connection) for value in self._stand_ins]
            if not set(stand_ins) <= set(parameters):  # as when a number is beyond its column's range
                raise ValueError(f"Django leaves a stand-in out of the query: {self._stand_ins} became {parameters}.")
            selected = [expression for expression, _, _ in compiler.select]
            found = self._readings[connection.vendor] = _Reading(
                statement=_Statement(
                    sql,
                    [_Argument(stand_ins.index(value)) if value in stand_ins else value for value in parameters],
                ),
                locks=query.select_for_update and connection.features.has_select_for_update,
                make=None if query.values_select else _maker(compiler),
                converters=compiler.get_converters(selected),
            )
        return found


def _maker(compiler: Any) -> Callable[[Sequence[Any]], Model]:
    """What turns a row into an object, as Django's own ``ModelIterable`` does it."""
    selected, info = compiler.select, compiler.klass_info
    model, fields = info["model"], slice(info["select_fields"][0], info["select_fields"][-1] + 1)
    columns = [expression.target.attname for expression, _, _ in selected[fields]]
    related = get_related_populators(info, selected, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # stubs of a later one

    def make(row: Sequence[Any]) -> Model:
        made = model.from_db(DEFAULT_DB_ALIAS, columns, row[fields])
        for populator in related:
            populator.populate(row, made)
        return made

    return make


def read(*queries: tuple[PreparedQuery, Sequence[int | str | UUID]]) -> list[list[list[Any]]]:
    """The rows of each query with its arguments, one query after the other.

    In one exchange with a database that is another process; also then each sees what was committed before it began, as
    while a lock that the one before took was waited for.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    readings = [query.reading(connection) for query, _ in queries]
    if any(reading.locks for reading in readings) and not connection.in_atomic_block:
        raise TransactionManagementError("A query that locks rows is for use in a transaction, which keeps the locks.")
    calls = [
        (reading.statement, [_for_database(value, connection) for value in arguments])
        for reading, (_, arguments) in zip(readings, queries, strict=True)
    ]
    found = _send(connection, calls, has_rows=True)
    return [_converted(rows, reading, connection) for reading, rows in zip(readings, found, strict=True)]


def _converted(found: Iterable[Sequence[Any]], reading: _Reading, connection: BaseDatabaseWrapper) -> list[list[Any]]:
    """The database's rows as the ORM's own would be."""
    rows = [list(row) for row in found]
    for position, (functions, expression) in reading.converters.items():
        for row in rows:
            for function in functions:
                row[position] = function(row[position], expression, connection)
    return rows


@dataclass(frozen=True)
class Write:
    """A statement that changes a row, for ``write``."""

    statement: _Statement
    values: Sequence[Any]


def insertion(model: type[Model], values: Mapping[str, Any]) -> Write:
    """A new row with these columns (``trial_id``, ...). Fills in no default and sends no signal."""
    return _write(_insert, model, values)


def change(model: type[Model], pk: int, values: Mapping[str, Any]) -> Write:
    """Other values in these columns of the row with this primary key. Sends no signal."""
    return _write(_update, model, {**values, model._meta.pk.attname: pk})


def write(*writes: Write) -> None:
    """Do these one after the other, in one exchange with a database that is another process.

    Several are for use in a transaction: without one, PostgreSQL would do all of them or none, SQLite what it can.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if len(writes) > 1 and not connection.in_atomic_block:
        raise TransactionManagementError("Several changes are for use in a transaction, which does all or none.")
    _send(connection, [(each.statement, each.values) for each in writes], has_rows=False)


def _write(
    statement_of: Callable[[type[Model], tuple[str, ...], str], _Statement],
    model: type[Model],
    values: Mapping[str, Any],
) -> Write:
    connection = connections[DEFAULT_DB_ALIAS]
    statement = statement_of(model, tuple(values), connection.vendor)
    fields: Iterable[Any] = map(model._meta.get_field, values)
    return Write(
        statement,
        [each.get_db_prep_save(value, connection) for each, value in zip(fields, values.values(), strict=True)],
    )


@lru_cache(maxsize=100)
def _insert(model: type[Model], names: tuple[str, ...], vendor: str) -> _Statement:
    table, columns = _quoted(model, names)
    markers = ", ".join(["%s"] * len(columns))
    return _with_all(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({markers})", columns)  # noqa: S608 - model's names


@lru_cache(maxsize=100)
def _update(model: type[Model], names: tuple[str, ...], vendor: str) -> _Statement:
    table, columns = _quoted(model, names)
    *assignments, condition = [f"{column} = %s" for column in columns]
    return _with_all(f"UPDATE {table} SET {', '.join(assignments)} WHERE {condition}", columns)  # noqa: S608 - model's names


def _with_all(sql: str, columns: Sequence[str]) -> _Statement:
    return _Statement(sql, [_Argument(number) for number in range(len(columns))])


def _quoted(model: type[Model], names: Iterable[str]) -> tuple[str, list[str]]:
    """The names of the table and of the columns as SQL has them."""
    quoted = connections[DEFAULT_DB_ALIAS].ops.quote_name
    fields: Iterable[Any] = map(model._meta.get_field, names)
    return quoted(model._meta.db_table), [quoted(each.column) for each in fields]


def _send(
    connection: BaseDatabaseWrapper, calls: Sequence[tuple[_Statement, Sequence[Any]]], *, has_rows: bool
) -> list[list[Any]]:
    """Send the statements with their arguments, in one exchange where there is one; give the rows of each."""
    found = []
    with connection.cursor() as cursor:
        if isinstance(connection, PostgresqlWrapper):
            names = [connection.prepared(statement.name, statement.definition) for statement, _ in calls]
            sql = "; ".join(
                f"EXECUTE {name} ({', '.join(['%s'] * len(arguments))})"
                for name, (_, arguments) in zip(names, calls, strict=True)
            )
            try:
                cursor.execute(sql, [value for _, arguments in calls for value in arguments])
            except DataError:
                # May be the plan's fault, when a column has become wider since. Django looks at a connection anew only
                # after errors that are not about values.
                connection.errors_occurred = True
                raise
            for number in range(len(calls) if has_rows else 0):
                if number:
                    cursor.nextset()
                found.append(cursor.fetchall())
        else:
            for statement, arguments in calls:
                cursor.execute(statement.sql, statement.with_arguments(arguments))
                found.append(cursor.fetchall() if has_rows else [])
    return found


def _for_database(value: int | str | UUID, connection: BaseDatabaseWrapper) -> int | str | UUID:
    return value.hex if isinstance(value, UUID) and not connection.features.has_native_uuid_field else value
