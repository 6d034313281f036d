"""Long lists of files: two of them side by side, in batches, and the digest of one file."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

BLOCK_BYTES = 1024 * 1024


class Named(Protocol):
    """Anything with a file's name."""

    @property
    def name(self) -> str: ...


Left = TypeVar("Left", bound=Named)
Right = TypeVar("Right", bound=Named)
Value = TypeVar("Value")


class NotInOrder(Exception):
    """A list of names is not in the order of their bytes, so that it cannot be compared with another."""


def side_by_side(left: Iterable[Left], right: Iterable[Right]) -> Iterator[tuple[Left | None, Right | None]]:
    """What two lists have under each name, with None where one has nothing.

    Both must be in the order of their names' UTF-8 bytes; only one item of each is in memory. Raises NotInOrder.
    """
    lefts, rights = _in_order(left), _in_order(right)
    mine, theirs = next(lefts, None), next(rights, None)
    while mine is not None or theirs is not None:
        if theirs is None or (mine is not None and mine.name < theirs.name):
            yield mine, None
            mine = next(lefts, None)
        elif mine is None or theirs.name < mine.name:
            yield None, theirs
            theirs = next(rights, None)
        else:
            yield mine, theirs
            mine, theirs = next(lefts, None), next(rights, None)


def _in_order(files: Iterable[Value]) -> Iterator[Value]:
    before = ""
    for file in files:
        name = file.name  # type: ignore[attr-defined]  # the caller's types say so
        if name <= before:
            raise NotInOrder(f"Names are not listed in the order of their bytes: {before} came before {name}.")
        before = name
        yield file


def batched(values: Iterable[Value], size: int) -> Iterator[list[Value]]:
    """The values in lists of at most ``size``."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def digest_of(storage: Any, name: str, algorithm: str) -> str:
    """The digest of a stored file in hexadecimal, read in blocks. Raises FileNotFoundError."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    stream, _ = storage.stream(name)
    try:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
    finally:
        stream.close()
    return digest.hexdigest()
