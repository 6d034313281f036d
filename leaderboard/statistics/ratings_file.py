"""Ratings from a CSV file of another study: columns ``rating, pid, image_type, image_id``, others are ignored."""

import csv
import math
from pathlib import Path

from leaderboard.statistics.analysis import RatingScale
from leaderboard.statistics.ratings import Ratings

COLUMNS = ("rating", "pid", "image_type", "image_id")
IS_MODIFIED = {"modified": True, "real": False, "clean": False}


class UnreadableRatings(ValueError):
    """The file cannot be used; the message names file, line and column, and says what to do."""


def read_ratings(path: Path, scale: RatingScale) -> Ratings:
    """Read a CSV file in UTF-8, separated by ``,`` or ``;``. Every row must be complete and every rating on the scale.

    Raises UnreadableRatings.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableRatings(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise UnreadableRatings(f"{path}: is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8") from error
    lines = text.splitlines(keepends=True)
    separator = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    rows = csv.reader(lines, delimiter=separator, strict=True)
    columns: list[list[object]] = [[], [], [], []]
    try:
        positions = _positions(path, next(rows, []))
        for row in rows:
            if any(cell.strip() for cell in row):
                for column, value in zip(columns, _values(path, rows.line_num, row, positions, scale), strict=True):
                    column.append(value)
    except csv.Error as error:
        raise UnreadableRatings(f"{path}, line {rows.line_num}: is not CSV ({error})") from error
    if not columns[0]:
        raise UnreadableRatings(f"{path}: has no ratings below its header")
    values, is_modified, participants, images = columns
    return Ratings.from_columns(values, is_modified, participants, images)  # type: ignore[arg-type]


def _positions(path: Path, header: list[str]) -> list[int]:
    names = [name.strip().lower() for name in header]
    for column in COLUMNS:
        if names.count(column) != 1:
            problem = "is missing" if column not in names else "is there twice"
            raise UnreadableRatings(
                f"{path}, line 1: column {column} {problem}; the header must name {', '.join(COLUMNS)}"
            )
    return [names.index(column) for column in COLUMNS]


def _values(
    path: Path, line: int, row: list[str], positions: list[int], scale: RatingScale
) -> tuple[float, bool, str, str]:
    cells = {}
    for column, position in zip(COLUMNS, positions, strict=True):
        cells[column] = row[position].strip() if position < len(row) else ""
        if not cells[column]:
            raise UnreadableRatings(f"{path}, line {line}, column {column}: is empty")
    try:
        rating = float(cells["rating"])
    except ValueError:
        rating = math.nan
    if not scale.minimum <= rating <= scale.maximum:
        raise UnreadableRatings(
            f"{path}, line {line}, column rating: {cells['rating']!r} is no number from {scale.minimum:g} to "
            f"{scale.maximum:g}; correct it, or give the scale that was used"
        )
    kind = cells["image_type"].lower()
    if kind not in IS_MODIFIED:
        raise UnreadableRatings(
            f"{path}, line {line}, column image_type: {cells['image_type']!r} is none of {', '.join(IS_MODIFIED)}"
        )
    return rating, IS_MODIFIED[kind], cells["pid"], cells["image_id"]
