"""Copy all stored files from one storage to another: from folders to a bucket, back, or from one bucket to another.

It can be stopped at any time and run again: what is in the new storage with the same size and digest is passed over.
Both storages are listed in the order of names and gone through together, so that memory does not grow with the number
of files. Nothing in the database changes: rows have names, and the settings say where names are looked up.
"""

import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import StorageHandler

from scooter_site.common.file_lists import batched, digest_of, side_by_side
from scooter_site.common.storage import LEVELS, UNFINISHED_ENDING, LocalStorage, StoredFile

logger = logging.getLogger(__name__)

BATCH = 500
# For a bucket each answer takes some milliseconds of waiting, which can be done side by side.
THREADS = 8

Levels = dict[str, Any]  # one storage for each


class CannotMove(Exception):
    """The files cannot be copied; the message says why and what to do."""


@dataclass
class Counts:
    """What became of the files so far."""

    copied: int = 0
    copied_bytes: int = 0
    there_already: int = 0
    deleted: int = 0
    different: int = 0  # not the same after it was copied; the log names it
    only_in_new: int = 0

    def add(self, others: "Counts") -> None:
        for name, count in vars(others).items():
            setattr(self, name, getattr(self, name) + count)


Handler = Callable[[Any, Any, StoredFile, StoredFile | None], Counts]


def opened_storages(settings: dict[str, dict[str, Any]]) -> Levels:
    """The storages of the three levels, from entries of Django's STORAGES."""
    handler = StorageHandler(settings)  # type: ignore[arg-type]  # the stubs confuse entries with storages
    return {level: handler[level] for level in LEVELS}


def check_apart(old: Levels, new: Levels) -> None:
    """Raise CannotMove if both are the same place, by whatever address; errors tell if the new one takes no files.

    A file that is put into the new storage must not appear in the old one: deleting it there would delete both.
    """
    for mine in old.values():
        for theirs in new.values():
            if isinstance(mine, LocalStorage) and isinstance(theirs, LocalStorage):
                one, other = Path(mine.location).resolve(), Path(theirs.location).resolve()
                if one.is_relative_to(other) or other.is_relative_to(one):
                    raise CannotMove(f"{other} is in the present storage, or holds it. Give another folder.")
    for level in LEVELS:
        name = f"probe/{uuid.uuid4().hex}.bin"
        new[level].save(name, ContentFile(b"probe"))
        try:
            if any(storage.exists(name) for storage in old.values()):
                raise CannotMove("The new storage is the present one. Give another bucket.")
        finally:
            new[level].delete(name)


def copy_files(old: Levels, new: Levels, progress: Callable[[Counts], None]) -> Counts:
    """Copy what the new storage lacks or has otherwise, and make sure that what was written is the same."""
    return _each(_copy, old, new, progress)


def delete_copied(old: Levels, new: Levels, progress: Callable[[Counts], None]) -> Counts:
    """Delete each file from the old storage after reading every byte of both copies and finding them the same.

    What a service says of its files is not enough here: this is the last moment at which there are two.
    """
    return _each(_delete, old, new, progress)


def _each(handle: Handler, old: Levels, new: Levels, progress: Callable[[Counts], None]) -> Counts:
    """Do it for every file of the old storage. An error stops all of it: it can be run again."""
    counts = Counts()
    pool = ThreadPoolExecutor(THREADS)
    try:
        for level in LEVELS:

            def one(pair: tuple[StoredFile | None, StoredFile | None], level: str = level) -> Counts:
                return _handled(handle, old[level], new[level], *pair)

            for batch in batched(side_by_side(old[level].listing(), new[level].listing()), BATCH):
                for result in pool.map(one, batch):
                    counts.add(result)
                progress(counts)
    finally:
        pool.shutdown(cancel_futures=True)
    return counts


def _handled(handle: Handler, old: Any, new: Any, mine: StoredFile | None, theirs: StoredFile | None) -> Counts:
    name = (mine or theirs).name  # type: ignore[union-attr]  # one of the two is there
    if name.endswith(UNFINISHED_ENDING):
        return Counts()  # it gets its name when it is whole, and the next run finds it
    if mine is None:
        return Counts(only_in_new=1)
    try:
        return handle(old, new, mine, theirs)
    except FileNotFoundError:  # deleted by the running site since it was listed
        return Counts()


def _copy(old: Any, new: Any, mine: StoredFile, theirs: StoredFile | None) -> Counts:
    if theirs is not None and _are_same(old, new, mine, theirs):
        return Counts(there_already=1)
    with old.open(mine.name) as content:
        new.save(mine.name, content)
    if not _are_same(old, new, old.describe(mine.name), new.describe(mine.name)):
        logger.error("%s is not the same in both storages after it was copied", mine.name)
        return Counts(different=1)
    return Counts(copied=1, copied_bytes=mine.size)


def _delete(old: Any, new: Any, mine: StoredFile, theirs: StoredFile | None) -> Counts:
    if theirs is None or digest_of(old, mine.name, "sha256") != digest_of(new, mine.name, "sha256"):
        logger.error("%s is not the same in both storages, and is not deleted", mine.name)
        return Counts(different=1)
    old.delete(mine.name)
    return Counts(deleted=1)


def _are_same(old: Any, new: Any, mine: StoredFile, theirs: StoredFile) -> bool:
    """Whether two files have the same size and digest.

    A bucket mostly knows the MD5 of what it got, which saves reading that again. Only equality is believed: what
    looks like an MD5 need not be one.
    """
    if mine.size != theirs.size:
        return False
    if (mine.md5 or theirs.md5) and (mine.md5 or digest_of(old, mine.name, "md5")) == (
        theirs.md5 or digest_of(new, mine.name, "md5")
    ):
        return True
    return digest_of(old, mine.name, "sha256") == digest_of(new, mine.name, "sha256")
