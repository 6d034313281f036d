"""Which rows have files, and the files that go when no row has them any more.

The models are looked through for FileFields, so that a new one can be forgotten neither here nor by
``manage.py verify_storage``. Beside a field ``original``, columns ``original_bytes`` and ``original_sha256`` are taken
to say what its file must be; a model that says so otherwise has an attribute ``stored_files`` with FileFacts.
"""

import heapq
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from django.apps import apps
from django.core.files.storage import storages
from django.db import connection, transaction
from django.db.models import BooleanField, Case, F, Field, IntegerField, Model, Q, Value, When
from django.db.models.fields.files import FieldFile, FileField
from django.db.models.functions import Collate
from django.db.models.signals import post_delete

from scooter_site.common.file_lists import batched
from scooter_site.common.storage import LEVELS

logger = logging.getLogger(__name__)

# Databases take a limited number of parameters in one query, and a model may have several fields to look through.
NAMES_PER_QUERY = 1000


@dataclass(frozen=True)
class FileFacts:
    """What the columns beside a FileField say of its file. ``whole``: the rows whose file is complete, and must be."""

    size: str | None = None
    digest: str | None = None
    whole: Q = field(default_factory=Q)


@dataclass(frozen=True)
class FileColumn:
    """One FileField of one model."""

    model: type[Model]
    name: str
    level: str
    facts: FileFacts

    @property
    def label(self) -> str:
        """As people read it: ``image.original``."""
        return f"{self.model._meta.model_name}.{self.name}"


@dataclass(frozen=True)
class Owner:
    """A row that has a file, and what it says of it."""

    column: FileColumn
    pk: Any
    size: int | None
    sha256: str
    is_whole: bool

    def __str__(self) -> str:
        return f"{self.column.label} {self.pk}"


@dataclass(frozen=True)
class KnownFile:
    """A file that at least one row has."""

    name: str
    owners: tuple[Owner, ...]


def file_columns() -> list[FileColumn]:
    """Every FileField of every model."""
    return [
        FileColumn(model, column.name, level_of(column), _facts(model, column.name))
        for model in apps.get_models(include_auto_created=True)
        if not model._meta.proxy
        for column in model._meta.local_concrete_fields
        if isinstance(column, FileField)
    ]


def level_of(column: FileField) -> str:
    """Which of the three storages the field's files are in."""
    storage: Any = column.storage
    return storage.level


def _facts(model: type[Model], name: str) -> FileFacts:
    said = getattr(model, "stored_files", {})
    if name in said:
        return said[name]
    columns = {column.name for column in model._meta.local_concrete_fields}

    def beside(ending: str) -> str | None:
        return f"{name}_{ending}" if f"{name}_{ending}" in columns else None

    return FileFacts(size=beside("bytes"), digest=beside("sha256"))


def known_files(level: str) -> Iterator[KnownFile]:
    """The files of a level that rows have, by name in the order of its UTF-8 bytes, a batch at a time in memory."""
    columns = [column for column in file_columns() if column.level == level]
    name = ""
    owners: list[Owner] = []
    for next_name, _, owner in heapq.merge(*map(_owners, columns), key=lambda found: found[:2]):
        if next_name != name and owners:
            yield KnownFile(name, tuple(owners))
            owners = []
        name = next_name
        owners.append(owner)
    if owners:
        yield KnownFile(name, tuple(owners))


def _owners(column: FileColumn) -> Iterator[tuple[str, str, Owner]]:
    facts = column.facts
    rows = (
        column.model._base_manager.filter(**{f"{column.name}__gt": ""})
        .annotate(
            said_size=F(facts.size) if facts.size else _nothing(IntegerField()),
            said_digest=F(facts.digest) if facts.digest else Value(""),
            is_whole=Case(
                When(facts.whole, then=Value(True)) if facts.whole else When(pk__isnull=False, then=Value(True)),
                default=Value(False),
                output_field=BooleanField(),
            ),
        )
        .order_by(_in_order_of_bytes(column.name))
        .values_list(column.name, "pk", "said_size", "said_digest", "is_whole")
    )
    for name, pk, size, digest, is_whole in rows.iterator(chunk_size=2000):
        yield name, column.label, Owner(column, pk, size, digest, is_whole)


def _nothing(kind: Field) -> Value:
    return Value(None, output_field=kind)


def _in_order_of_bytes(column: str) -> Any:
    """PostgreSQL orders text by the rules of a language unless told otherwise; storages order it by its bytes."""
    return Collate(F(column), "C") if connection.vendor == "postgresql" else F(column)


def names_in_use(level: str, names: Collection[str]) -> set[str]:
    """Those of the names that a row has now. One look through each table for every thousand names."""
    used: set[str] = set()
    by_model: dict[type[Model], list[str]] = defaultdict(list)
    for column in file_columns():
        if column.level == level:
            by_model[column.model].append(column.name)
    for batch in batched(names, NAMES_PER_QUERY):
        wanted = set(batch)
        for model, columns in by_model.items():
            has_one = reduce(or_, (Q(**{f"{column}__in": batch}) for column in columns))
            for row in model._base_manager.filter(has_one).values_list(*columns).iterator():
                used |= wanted.intersection(row)
    return used


def delete_files_after_commit(files: Iterable[FieldFile]) -> None:
    """Delete stored files once the current transaction has committed, except those that a row still has then.

    Deleting a row does this by itself (``delete_files_of_deleted_rows``); call it where a row gets another file. Only
    when the rows are surely gone: a row without its file is worse than a file without its row. A file that cannot be
    deleted is logged, and ``manage.py verify_storage --repair`` deletes it.
    """
    unused = [(level_of(file.field), str(file.name)) for file in files if file.name]
    if not unused:
        return
    # A thousand rows deleted at once are asked for together: asking looks through whole tables.
    for savepoints, hook, *_ in connection.run_on_commit:
        if isinstance(hook, _Deletion) and not hook.is_done and savepoints == set(connection.savepoint_ids):
            hook.files += unused
            return
    transaction.on_commit(_Deletion(unused), robust=True)


class _Deletion:
    """Deletes files after a commit."""

    def __init__(self, files: list[tuple[str, str]]) -> None:
        self.files = files
        self.is_done = False

    def __call__(self) -> None:
        self.is_done = True
        for level in LEVELS:
            names = {name for of_level, name in self.files if of_level == level}
            for name in names - names_in_use(level, names):
                try:
                    storages[level].delete(name)
                except Exception:
                    logger.exception("Could not delete %s (%s), which no row has any more", name, level)


def _delete_files_of(sender: type[Model], instance: Model, **_: object) -> None:
    columns = [column for column in sender._meta.local_concrete_fields if isinstance(column, FileField)]
    delete_files_after_commit(getattr(instance, column.name) for column in columns)


def delete_files_of_deleted_rows() -> None:
    """See to it that files go with their rows, whoever deletes them: a service, the admin, or a cascade."""
    for model in {column.model for column in file_columns()}:
        post_delete.connect(_delete_files_of, sender=model, dispatch_uid="delete_files_of_deleted_rows")
