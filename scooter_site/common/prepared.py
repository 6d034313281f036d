"""Statements for the few requests that come by the thousand.

Turning a small statement into SQL costs Django several times what sending it costs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import get_related_populators


@dataclass(frozen=True)
class _Statement:
    sql: str
    parameters: Sequence[Any]
    argument_of: Sequence[int | None]  # for each parameter, which argument takes its place
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
        self._statements: dict[str, _Statement] = {}

    def rows(self, *arguments: int | str | UUID) -> list[list[Any]]:
        """The columns that the query selects, as Python values."""
        return read((self, arguments))[0]

    def objects(self, *arguments: int | str | UUID) -> list[Any]:
        """The objects that the query is for, with what ``select_related`` adds to them."""
        return self.objects_of(self.rows(*arguments))

    def objects_of(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The objects that these rows of the query are."""
        make = self._statement(connections[DEFAULT_DB_ALIAS]).make
        if make is None:
            raise TypeError("This query asks for values: they are in rows().")
        return [make(row) for row in rows]

    def first(self, *arguments: int | str | UUID) -> Any:
        """The first object, None if there is none."""
        return next(iter(self.objects(*arguments)), None)

    def sql_and_parameters(self, arguments: Sequence[int | str | UUID]) -> tuple[str, list[Any]]:
        """What the database is sent."""
        connection = connections[DEFAULT_DB_ALIAS]
        statement = self._statement(connection)
        parameters = [
            parameter if number is None else _for_database(arguments[number], connection)
            for parameter, number in zip(statement.parameters, statement.argument_of, strict=True)
        ]
        return statement.sql, parameters

    def converted(self, rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
        """The database's rows as the ORM's own would be, by the connection of this thread."""
        connection = connections[DEFAULT_DB_ALIAS]
        found = [list(row) for row in rows]
        for position, (functions, expression) in self._statement(connection).converters.items():
            for row in found:
                for function in functions:
                    row[position] = function(row[position], expression, connection)
        return found

    def _statement(self, connection: BaseDatabaseWrapper) -> _Statement:
        found = self._statements.get(connection.vendor)
        if found is None:
            query = self._build(*self._stand_ins).query
            compiler: Any = query.get_compiler(connection=connection)
            sql, parameters = compiler.as_sql()
            stand_ins = [_for_database(value, connection) for value in self._stand_ins]
            if not set(stand_ins) <= set(parameters):  # as when a number is beyond its column's range
                raise ValueError(f"Django leaves a stand-in out of the query: {self._stand_ins} became {parameters}.")
            selected = [expression for expression, _, _ in compiler.select]
            found = self._statements[connection.vendor] = _Statement(
                sql=sql,
                parameters=parameters,
                argument_of=[stand_ins.index(value) if value in stand_ins else None for value in parameters],
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
    statements = [query.sql_and_parameters(arguments) for query, arguments in queries]
    found = []
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sql = "; ".join(sql for sql, _ in statements)
            cursor.execute(sql, [parameter for _, parameters in statements for parameter in parameters])
            for number, (query, _) in enumerate(queries):
                if number:
                    cursor.nextset()
                found.append(query.converted(cursor.fetchall()))
        else:
            for (query, _), (sql, parameters) in zip(queries, statements, strict=True):
                cursor.execute(sql, parameters)
                found.append(query.converted(cursor.fetchall()))
    return found


@dataclass(frozen=True)
class Write:
    """A statement that changes a row, for ``write``."""

    sql: str
    parameters: Sequence[Any]


def insertion(model: type[Model], values: Mapping[str, Any]) -> Write:
    """A new row with these columns (``trial_id``, ...). Fills in no default and sends no signal."""
    table, columns, parameters = _for_columns(model, values)
    markers = ", ".join(["%s"] * len(columns))
    return Write(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({markers})", parameters)  # noqa: S608 - model's names


def change(model: type[Model], pk: int, values: Mapping[str, Any]) -> Write:
    """Other values in these columns of the row with this primary key. Sends no signal."""
    table, columns, parameters = _for_columns(model, {**values, model._meta.pk.attname: pk})
    *assignments, condition = [f"{column} = %s" for column in columns]
    return Write(f"UPDATE {table} SET {', '.join(assignments)} WHERE {condition}", parameters)  # noqa: S608 - model's names


def write(*writes: Write) -> None:
    """Do these one after the other, in one exchange with a database that is another process."""
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sql = "; ".join(each.sql for each in writes)
            cursor.execute(sql, [parameter for each in writes for parameter in each.parameters])
        else:
            for each in writes:
                cursor.execute(each.sql, each.parameters)


def _for_columns(model: type[Model], values: Mapping[str, Any]) -> tuple[str, list[str], list[Any]]:
    """The names of the table and of the columns as SQL has them, and the values as the database takes them."""
    connection = connections[DEFAULT_DB_ALIAS]
    quoted = connection.ops.quote_name
    fields: list[Any] = [model._meta.get_field(name) for name in values]
    parameters = [
        field.get_db_prep_save(value, connection) for field, value in zip(fields, values.values(), strict=True)
    ]
    return quoted(model._meta.db_table), [quoted(field.column) for field in fields], parameters


def _for_database(value: int | str | UUID, connection: BaseDatabaseWrapper) -> int | str | UUID:
    return value.hex if isinstance(value, UUID) and not connection.features.has_native_uuid_field else value
