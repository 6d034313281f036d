"""Statements for the few requests that come by the thousand.

Turning a small statement into SQL costs Django several times what sending it costs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet


@dataclass(frozen=True)
class _Statement:
    sql: str
    parameters: Sequence[Any]
    argument_of: Sequence[int | None]  # for each parameter, which argument takes its place
    columns: Sequence[Any]  # the fields that are selected
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
        connection = connections[DEFAULT_DB_ALIAS]
        statement = self._statement(connection)
        parameters = [
            parameter if number is None else _for_database(arguments[number], connection)
            for parameter, number in zip(statement.parameters, statement.argument_of, strict=True)
        ]
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, parameters)
            rows = [list(row) for row in cursor.fetchall()]
        # As the ORM's own, but with the connection of this thread.
        for position, (functions, expression) in statement.converters.items():
            for row in rows:
                for function in functions:
                    row[position] = function(row[position], expression, connection)
        return rows

    def columns_of(self, model: type[Model]) -> list[str]:
        """The names of the columns of ``model``, in the order of ``rows``."""
        columns = self._statement(connections[DEFAULT_DB_ALIAS]).columns
        return [column.attname for column in columns if column.model is model]

    def _statement(self, connection: BaseDatabaseWrapper) -> _Statement:
        found = self._statements.get(connection.vendor)
        if found is None:
            compiler: Any = self._build(*self._stand_ins).query.get_compiler(connection=connection)
            sql, parameters = compiler.as_sql()
            stand_ins = [_for_database(value, connection) for value in self._stand_ins]
            if not set(stand_ins) <= set(parameters):  # as when a number is beyond its column's range
                raise ValueError(f"Django leaves a stand-in out of the query: {self._stand_ins} became {parameters}.")
            selected = [expression for expression, _, _ in compiler.select]
            found = self._statements[connection.vendor] = _Statement(
                sql=sql,
                parameters=parameters,
                argument_of=[stand_ins.index(value) if value in stand_ins else None for value in parameters],
                columns=[expression.target for expression in selected],
                converters=compiler.get_converters(selected),
            )
        return found


def insert_row(model: type[Model], values: Mapping[str, Any]) -> None:
    """Insert a row with these columns (``trial_id``, ...). Fills in no default and sends no signal."""
    table, columns, parameters = _for_columns(model, values)
    markers = ", ".join(["%s"] * len(columns))
    _execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({markers})", parameters)  # noqa: S608 - model's names


def update_row(model: type[Model], pk: int, values: Mapping[str, Any]) -> None:
    """Set these columns of the row with this primary key. Sends no signal."""
    table, columns, parameters = _for_columns(model, {**values, model._meta.pk.attname: pk})
    *assignments, condition = [f"{column} = %s" for column in columns]
    _execute(f"UPDATE {table} SET {', '.join(assignments)} WHERE {condition}", parameters)  # noqa: S608 - model's names


def _for_columns(model: type[Model], values: Mapping[str, Any]) -> tuple[str, list[str], list[Any]]:
    """The names of the table and of the columns as SQL has them, and the values as the database takes them."""
    connection = connections[DEFAULT_DB_ALIAS]
    quoted = connection.ops.quote_name
    fields: list[Any] = [model._meta.get_field(name) for name in values]
    parameters = [
        field.get_db_prep_save(value, connection) for field, value in zip(fields, values.values(), strict=True)
    ]
    return quoted(model._meta.db_table), [quoted(field.column) for field in fields], parameters


def _execute(sql: str, parameters: Sequence[Any]) -> None:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, parameters)


def _for_database(value: int | str | UUID, connection: BaseDatabaseWrapper) -> int | str | UUID:
    return value.hex if isinstance(value, UUID) and not connection.features.has_native_uuid_field else value
