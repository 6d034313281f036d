"""Ratings from a CSV file of another study: columns ``rating, pid, image_type, image_id``, others are ignored."""

import csv
import io
import math
from pathlib import Path

from leaderboard.statistics.analysis import RatingScale
from leaderboard.statistics.ratings import Ratings

COLUMNS = ("rating", "pid", "image_type", "image_id")
# Ratings of real and altered images that use less of their scale were given on another one.
LEAST_SHARE_USED = 0.1
IS_MODIFIED = {"modified": True, "real": False, "clean": False}


class UnreadableRatings(ValueError):
    """The file cannot be used; the message names file, line and column, and says what to do."""


def read_ratings(path: Path, scale: RatingScale) -> Ratings:
    """Read a CSV file in UTF-8, separated by ``,``, ``;`` or tabs. Every row must be complete.

    Every rating must lie on the scale. Raises UnreadableRatings.
    """
    return _read(path, scale, COLUMNS)[0]


def read_ratings_and_sources(path: Path, scale: RatingScale, source_column: str) -> tuple[Ratings, dict[int, int]]:
    """The same with the codes of modified images and those of their own clean sources, of which both were rated.

    ``source_column`` holds, in rows of modified images, the image_id of the clean source; it may be empty.
    """
    ratings, sources = _read(path, scale, (*COLUMNS, source_column.strip().lower()))
    clean = {str(ratings.image_ids[code]): code for code in ratings.images[~ratings.is_modified].tolist()}
    source_of: dict[int, int] = {}
    for code, (line, source) in zip(ratings.images.tolist(), sources, strict=True):
        if source in clean and source_of.setdefault(code, clean[source]) != clean[source]:
            raise UnreadableRatings(
                f"{path}, line {line}, column {source_column}: image {ratings.image_ids[code]} has another source above"
            )
    return ratings, source_of


def scale_in_doubt(ratings: Ratings, scale: RatingScale) -> str:
    """Why the ratings look as if they were given on another scale; empty if they do not.

    A narrower scale than the ratings were given on is refused when they are read. A wider one would turn every verdict
    into "imperceptible": the bound grows with the scale, the difference does not.
    """
    low, high = ratings.values.min(), ratings.values.max()
    if not 0 < high - low < LEAST_SHARE_USED * (scale.maximum - scale.minimum):
        return ""
    return (
        f"all ratings lie between {low:.12g} and {high:.12g}, on a scale from {scale.minimum:.12g} to "
        f"{scale.maximum:.12g}: was it this scale that they were given on?"
    )


def _read(path: Path, scale: RatingScale, wanted: tuple[str, ...]) -> tuple[Ratings, list[tuple[int, str]]]:
    """The ratings, and for each its line and the source of its image, empty if none is given or none ``wanted``."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableRatings(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise UnreadableRatings(f"{path}: is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8") from error
    header = text.partition("\n")[0]
    # Lines end as the csv module says: not at the other signs that Python takes for ends of lines, inside an id.
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), strict=True)
    columns: list[list[object]] = [[], [], [], []]
    sources: list[tuple[int, str]] = []
    try:
        positions = _positions(path, next(rows, []), wanted)
        for row in rows:
            if any(cell.strip() for cell in row):
                for column, value in zip(columns, _values(path, rows.line_num, row, positions, scale), strict=True):
                    column.append(value)
                named = [row[position].strip() for position in positions[4:] if position < len(row)]
                sources.append((rows.line_num, named[0] if named and columns[1][-1] else ""))
    except csv.Error as error:
        raise UnreadableRatings(f"{path}, line {rows.line_num}: is not CSV ({error})") from error
    if not columns[0]:
        raise UnreadableRatings(f"{path}: has no ratings below its header")
    values, is_modified, participants, images = columns
    ratings = Ratings.from_columns(values, is_modified, participants, images)  # type: ignore[arg-type]
    return ratings, sources


def _positions(path: Path, header: list[str], wanted: tuple[str, ...]) -> list[int]:
    names = [name.strip().lower() for name in header]
    for column in wanted:
        if names.count(column) != 1:
            problem = "is missing" if column not in names else "is there twice"
            raise UnreadableRatings(
                f"{path}, line 1: column {column} {problem}; the header must name {', '.join(wanted)}"
            )
    return [names.index(column) for column in wanted]


def _values(
    path: Path, line: int, row: list[str], positions: list[int], scale: RatingScale
) -> tuple[float, bool, str, str]:
    cells = {}
    for column, position in zip(COLUMNS, positions, strict=False):
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
