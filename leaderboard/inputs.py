"""The ratings that a result follows from, as a file that anybody can compute it from again.

CSV in UTF-8, compressed with gzip, one line per valid rating:

    attack,target_model,participant,image,kind,rating,source,misleads

``attack`` and ``target_model`` are slugs. ``participant`` and ``image`` are public ids, which say nothing about a
person or a file; only images of external results have the ids of the file that was uploaded. ``kind`` is modified or
clean; ``rating`` is in points of the scale, "higher = more certain that the image is modified"; ``source`` is the id of
the clean image that a modified one was made from, and ``misleads`` 1 or 0: whether the target model takes it for
another class (either is empty where it is not known).

The ratings of one pair are one gzip member without a header; members in a row are again a gzip file, so that the
download of a snapshot is a header and the stored files of its entries. No Django here.
"""

import csv
import gzip
import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass

COLUMNS = ("attack", "target_model", "participant", "image", "kind", "rating", "source", "misleads")
KINDS = {"modified": True, "clean": False}
MISLEADS = {"1": True, "0": False, "": None}


class UnreadableInputs(ValueError):
    """A file is not what this module writes; the message says where."""


@dataclass(frozen=True, order=True)
class InputRating:
    """One rating, as in the file."""

    participant: str
    image: str
    is_modified: bool
    value: float
    source: str
    misleads: bool | None


@dataclass(frozen=True)
class Inputs:
    """The ratings of one pair, sorted: what is computed from them does not hang on the order they came in."""

    attack: str
    target_model: str
    ratings: tuple[InputRating, ...]

    @classmethod
    def of(cls, attack: str, target_model: str, ratings: Iterable[InputRating]) -> "Inputs":
        """The same ratings in any order are the same inputs."""
        return cls(attack, target_model, tuple(sorted(ratings, key=_order)))

    @property
    def digest(self) -> str:
        """SHA-256, as 64 hexadecimal digits, over the sorted lines without the columns attack and target_model."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(_cells(rating) for rating in self.ratings)
        return hashlib.sha256(text.getvalue().encode()).hexdigest()

    def as_gzip(self) -> bytes:
        """A gzip member with one line per rating and no header. The same inputs are the same bytes."""
        return _compressed([self.attack, self.target_model, *_cells(rating)] for rating in self.ratings)


def header() -> bytes:
    """The gzip member that a download begins with."""
    return _compressed([COLUMNS])


def read_inputs(content: bytes, name: str) -> list[Inputs]:
    """The pairs in a file, with a header or without one. Raises UnreadableInputs, naming the file and the line."""
    try:
        text = gzip.decompress(content).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UnreadableInputs(f"{name}: is not a gzip file of UTF-8 text ({error})") from error
    pairs: dict[tuple[str, str], list[InputRating]] = {}
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if tuple(row) == COLUMNS and rows.line_num == 1:
                continue
            attack, target_model, participant, image, kind, value, source, misleads = row  # or ValueError
            rating = InputRating(participant, image, KINDS[kind], float(value), source, MISLEADS[misleads])
            pairs.setdefault((attack, target_model), []).append(rating)
    except (csv.Error, ValueError, KeyError) as error:
        raise UnreadableInputs(f"{name}, line {rows.line_num}: {error}") from error
    return [Inputs.of(*pair, ratings) for pair, ratings in pairs.items()]


def _order(rating: InputRating) -> tuple[str, str, bool, float]:
    return rating.participant, rating.image, rating.is_modified, rating.value


def _cells(rating: InputRating) -> list[str]:
    return [
        rating.participant,
        rating.image,
        "modified" if rating.is_modified else "clean",
        f"{rating.value:.15g}",
        rating.source,
        "" if rating.misleads is None else str(int(rating.misleads)),
    ]


def _compressed(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)
