"""Rules between rows (``database_rules``) as triggers of SQLite and PostgreSQL.

They are taken away before migrations and put back after them: SQLite loses a table's triggers when a migration remakes
the table, and refuses to remake one that a trigger of another table reads. So a rule that is new or has changed needs
no migration of its own; it is there after the next ``migrate``.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.apps import AppConfig
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_migrate, pre_migrate

from scooter_site.common.database_rules import UPDATE, Check, Effect, Rule

# How the databases say that two values differ, null being a value.
DIFFERS = {"sqlite": "IS NOT", "postgresql": "IS DISTINCT FROM"}
# Of all apps, for what has to do without rules.
_ALL: "list[Triggers]" = []


@dataclass
class Triggers:
    """The triggers of one app, on its own tables or on those of an app below it.

    ``locks``, by table and operation: statements that a check runs first, on PostgreSQL only.
    """

    app: str
    checks: Sequence[Check]
    effects: Sequence[Effect] = ()
    locks: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What the names of its triggers begin with."""
        return f"{self.app}_rules_"

    @property
    def rules(self) -> list[Rule]:
        """Each rule once."""
        return list(dict.fromkeys(check.rule for check in self.checks))

    def broken_rule(self, error: DatabaseError) -> Rule | None:
        """The rule that the database refused to break; none if the error is about something else."""
        text = str(error)
        return next((rule for rule in self.rules if text.startswith(f"{rule.name}: ")), None)

    def install(self, connection: BaseDatabaseWrapper) -> None:
        """Bring the database's triggers to what the rules say now. Does nothing if they are so already."""
        wanted, installed = self._wanted(connection.vendor), self.installed(connection)
        with connection.cursor() as cursor:
            for name, (table, digest) in installed.items():
                if name not in wanted or _digest(wanted[name][1]) != digest:
                    drop(cursor, connection.vendor, name, table)
            for name, (table, sql) in wanted.items():
                if installed.get(name, ("", ""))[1] != _digest(sql):
                    cursor.execute(sql)
                    if connection.vendor == "postgresql":
                        cursor.execute(f"COMMENT ON TRIGGER {name} ON {table} IS '{_digest(sql)}'")

    def remove(self, connection: BaseDatabaseWrapper) -> None:
        """Take all triggers of the app away."""
        with connection.cursor() as cursor:
            for name, (table, _digest_of) in self.installed(connection).items():
                drop(cursor, connection.vendor, name, table)

    def installed(self, connection: BaseDatabaseWrapper) -> dict[str, tuple[str, str]]:
        """By name: the table of every trigger of the app, and the digest of the SQL that it was made with."""
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(
                    "SELECT t.tgname, c.relname, COALESCE(obj_description(t.oid, 'pg_trigger'), '') FROM pg_trigger t "
                    "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
                    "WHERE n.nspname = current_schema() AND starts_with(t.tgname, %s)",
                    [self.prefix],
                )
                return {name: (table, digest) for name, table, digest in cursor.fetchall()}
            cursor.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
            rows = cursor.fetchall()
        return {name: (table, _digest(sql)) for name, table, sql in rows if name.startswith(self.prefix)}

    def follow_migrations(self, app: AppConfig) -> None:
        """Take the triggers away before migrations and put them back after; called when the app is ready."""
        _ALL.append(self)
        pre_migrate.connect(self.remove_before_migrations, sender=app, dispatch_uid=f"{self.prefix}remove")
        post_migrate.connect(self.install_after_migrations, sender=app, dispatch_uid=f"{self.prefix}install")

    def remove_before_migrations(self, using: str, plan: list[Any], **kwargs: Any) -> None:
        """Receiver of ``pre_migrate``."""
        if plan:
            self.remove(connections[using])

    def install_after_migrations(self, using: str, **kwargs: Any) -> None:
        """Receiver of ``post_migrate``. A database migrated back to before the app's tables gets no triggers."""
        connection = connections[using]
        if {check.table for check in self.checks} <= set(connection.introspection.table_names()):
            self.install(connection)

    def _wanted(self, vendor: str) -> dict[str, tuple[str, str]]:
        """By name: the table and the SQL of every trigger; one for each table and operation."""
        checks = sorted(self.checks, key=lambda check: (check.table, check.operation))
        triggers = {}
        for (table, operation), group in groupby(checks, key=lambda check: (check.table, check.operation)):
            name = f"{self.prefix}{table.removeprefix(f'{self.app}_')}_{operation.lower()}"
            if vendor == "sqlite":
                sql = _sqlite_trigger(name, table, operation, list(group))
            else:
                sql = _postgresql_trigger(name, table, operation, list(group), self.locks.get((table, operation), ()))
            triggers[name] = table, sql
        for effect in self.effects:
            name = f"{self.prefix}{effect.name}"
            triggers[name] = effect.table, _effect_trigger(name, effect, vendor)
        return triggers


def broken_rule(error: DatabaseError) -> Rule | None:
    """The rule, of any app, that the database refused to break; none if the error is about something else."""
    return next((rule for triggers in _ALL if (rule := triggers.broken_rule(error))), None)


@contextmanager
def lifted(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Without the rules of any app, for what empties the whole database row by row."""
    for triggers in _ALL:
        triggers.remove(connection)
    try:
        yield
    finally:
        for triggers in _ALL:
            triggers.install(connection)


def drop(cursor: Any, vendor: str, name: str, table: str) -> None:
    """Drop one trigger, and the function that PostgreSQL has for it."""
    if vendor == "postgresql":
        cursor.execute(f"DROP TRIGGER {name} ON {table}; DROP FUNCTION IF EXISTS {name}()")
    else:
        cursor.execute(f"DROP TRIGGER {name}")


def _effect_trigger(name: str, effect: Effect, vendor: str) -> str:
    head = _head(name, effect.table, effect.operation, [effect], vendor)
    statements = "".join(f"{statement}; " for statement in effect.statements)
    if vendor == "sqlite":
        return f"{head} BEGIN {statements}END"
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $rules$ "
        f"BEGIN {statements}RETURN NULL; END $rules$; {head} EXECUTE FUNCTION {name}()"
    )


def _guard(check: Check | Effect, vendor: str) -> str:
    """The cheap condition under which the check is worth a query; empty: always."""
    changed = [f'OLD."{column}" {DIFFERS[vendor]} NEW."{column}"' for column in check.columns]
    parts = [f"({' OR '.join(changed)})"] if changed else []
    parts += [check.only_if] if check.only_if else []
    return " AND ".join(parts)


def _head(name: str, table: str, operation: str, checks: Sequence[Check | Effect], vendor: str) -> str:
    columns = list(dict.fromkeys(column for check in checks for column in check.columns))
    of_columns = ""
    if operation == UPDATE and all(check.columns for check in checks):
        of_columns = " OF " + ", ".join(f'"{column}"' for column in columns)
    guards = [_guard(check, vendor) for check in checks]
    when = f" WHEN ({' OR '.join(f'({guard})' for guard in dict.fromkeys(guards))})" if all(guards) else ""
    return f"CREATE TRIGGER {name} AFTER {operation}{of_columns} ON {table} FOR EACH ROW{when}"


def _condition(check: Check, vendor: str) -> str:
    guard = _guard(check, vendor)
    return f"({guard}) AND ({check.broken_if})" if guard else check.broken_if


def _text(rule: Rule) -> str:
    return f"{rule.name}: {rule.message}".replace("'", "''")


def _sqlite_trigger(name: str, table: str, operation: str, checks: list[Check]) -> str:
    refusals = [f"SELECT RAISE(ABORT, '{_text(check.rule)}') WHERE {_condition(check, 'sqlite')};" for check in checks]
    return f"{_head(name, table, operation, checks, 'sqlite')} BEGIN {' '.join(refusals)} END"


def _postgresql_trigger(name: str, table: str, operation: str, checks: list[Check], locks_of: Sequence[str]) -> str:
    locks = "".join(f"{lock}; " for lock in locks_of)
    refusals = [
        f"IF {_condition(check, 'postgresql')} THEN RAISE EXCEPTION USING ERRCODE = '23514', "
        f"CONSTRAINT = '{check.rule.name}', MESSAGE = '{_text(check.rule)}'; END IF;"
        for check in checks
    ]
    return (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $rules$ "
        f"BEGIN {locks}{' '.join(refusals)} RETURN NULL; END $rules$; "
        f"{_head(name, table, operation, checks, 'postgresql')} EXECUTE FUNCTION {name}()"
    )


def _digest(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
