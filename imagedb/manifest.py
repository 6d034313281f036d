"""The manifest of an import: a table with one row per image, CSV or JSONL. Pure: no Django, no database.

Columns: ``filename, kind (clean|modified), class_index or synset, source_filename (modified), attack, target_model,
predicted_class_index, confidence``. Order, letter case and spaces in the header do not matter, and optional columns
may be absent. In JSONL every line is an object with the columns as keys; values are text, numbers or null. Rows of a
CSV file are numbered as a spreadsheet numbers them, the header being row 1; rows of a JSONL file as its lines.
"""

import contextlib
import csv
import io
import itertools
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Any

COLUMNS = (
    "filename",
    "kind",
    "class_index",
    "synset",
    "source_filename",
    "attack",
    "target_model",
    "predicted_class_index",
    "confidence",
)
KINDS = ("clean", "modified")
LAST_CLASS_INDEX = 999
MAX_NAME = 255
MAX_LINE = 1_000_000  # characters
MAX_IGNORED_COLUMNS = 100
# No name has these; and PostgreSQL stores no text with U+0000. Programs leave them where they copy binary text.
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")


class UnreadableManifest(ValueError):
    """The file as a whole cannot be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class RowError:
    """What is wrong with one row, and what to do about it."""

    row_number: int
    filename: str
    column: str  # empty: the row as a whole
    message: str

    def __str__(self) -> str:
        return f"row {self.row_number} ({self.filename or 'no filename'}): {self.text}"

    @property
    def text(self) -> str:
        """Column and message, without the row."""
        return f"{self.column}: {self.message}" if self.column else self.message


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One image as the manifest describes it; every value is checked for form, none against the catalogue."""

    number: int
    filename: str
    kind: str
    class_index: int | None
    synset: str
    source_filename: str
    attack: str
    target_model: str
    predicted_class_index: int | None
    confidence: float | None


@dataclass
class Manifest:
    """The rows that are well-formed, the errors of the others, and what was not read."""

    rows: list[ManifestRow] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)
    ignored_columns: list[str] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        return len(self.rows) + len({error.row_number for error in self.errors})


def normalise_path(name: str) -> str:
    """Write a relative path with forward slashes, composed letters (macOS decomposes them) and no ``./``.

    Raises ValueError for a path that leaves its folder, or is no text (as file systems allow).
    """
    name.encode()  # fails on bytes that a file system gave and that are no UTF-8
    name = unicodedata.normalize("NFC", name.strip()).replace("\\", "/")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
        raise ValueError("the path leads out of the folder; give it relative to the folder of images")
    return "" if path == PurePosixPath(".") else str(path)


def without_control_characters(text: str) -> str:
    """The text as it can be shown and stored."""
    return CONTROL_CHARACTERS.sub("", text)


def parse(content: bytes) -> Manifest:
    """Parse a whole manifest. Raises UnreadableManifest if nothing can be read, or not to its end."""
    reader = ManifestReader(io.BytesIO(content))
    manifest = Manifest(ignored_columns=reader.ignored_columns)
    for row in reader:
        if isinstance(row, ManifestRow):
            manifest.rows.append(row)
        else:
            manifest.errors.extend(row)
    return manifest


class ManifestReader:
    """Reads a manifest row by row, so that one of a million rows needs little memory.

    Each row comes as a ManifestRow, or as the list of what is wrong with it. CSV is separated by ``,``, ``;`` or tab;
    a file whose first character is ``{`` is JSONL. Raises UnreadableManifest: when it is made, if nothing can be read;
    while rows are taken, if the file is broken further down.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.ignored_columns: list[str] = []  # of JSONL, complete once all rows are taken
        lines = _lines(file)
        first = next(lines, "")
        if first.lstrip().startswith("["):
            raise UnreadableManifest("The manifest is one JSON array. Write one object per line (JSONL), or CSV.")
        lines = itertools.chain([first], lines)
        self._rows = self._json_rows(lines) if first.lstrip().startswith("{") else self._csv_rows(lines, first)

    def __iter__(self) -> Iterator[ManifestRow | list[RowError]]:
        is_empty = True
        for row in self._rows:
            is_empty = False
            yield row
        if is_empty:
            raise UnreadableManifest("The manifest has a header but no rows.")

    def _csv_rows(self, lines: Iterable[str], first: str) -> Iterator[ManifestRow | list[RowError]]:
        # Of the separators that occur equally often, max takes the first: the comma.
        records = _csv_records(lines, max(",;\t", key=first.count))
        header = [without_control_characters(name) for name in next(records, [])]
        if not any(cell.strip() for cell in header):
            raise UnreadableManifest(f"The manifest is empty. Its first row names the columns: {', '.join(COLUMNS)}.")
        positions, self.ignored_columns = _positions(header)
        return self._rows_of_records(records, len(header), positions)

    def _rows_of_records(
        self, records: Iterator[list[str]], width: int, positions: dict[str, int]
    ) -> Iterator[ManifestRow | list[RowError]]:
        for number, cells in enumerate(records, start=2):
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > width:
                name = without_control_characters(cells[positions["filename"]]).strip()
                message = f"the row has {len(cells)} cells, the header {width}; put text with separators in quotes"
                yield [RowError(number, name, "", message)]
                continue
            values = {
                column: cells[position].strip() if position < len(cells) else ""
                for column, position in positions.items()
            }
            yield _RowParser(number, values).parse()

    def _json_rows(self, lines: Iterable[str]) -> Iterator[ManifestRow | list[RowError]]:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield self._json_row(number, line)

    def _json_row(self, number: int, line: str) -> ManifestRow | list[RowError]:
        try:
            pairs = json.loads(line, object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            return [RowError(number, "", "", f"is not JSON: {error.msg} at character {error.colno}")]
        except (ValueError, RecursionError) as error:
            return [RowError(number, "", "", f"is not JSON that can be read: {error}")]
        if not isinstance(pairs, _Pairs):
            return [RowError(number, "", "", "is not a JSON object; write {...} with the columns as keys")]
        values: dict[str, str] = {}
        wrong: dict[str, str] = {}
        for key, value in pairs:
            column = _KNOWN_COLUMNS.get(_key(key))
            if column is None:
                self._ignore(key)
            elif column in values:
                wrong[column] = "is there twice; keep one"
            else:
                try:
                    values[column] = _json_text(value)
                except ValueError as error:
                    values[column], wrong[column] = "", str(error)
        row = _RowParser(number, dict.fromkeys(COLUMNS, "") | values).parse()
        if not wrong:
            return row
        filename = without_control_characters(values.get("filename", ""))
        others = [] if isinstance(row, ManifestRow) else [error for error in row if error.column not in wrong]
        return [RowError(number, filename, column, message) for column, message in wrong.items()] + others

    def _ignore(self, key: str) -> None:
        name = _without_half_characters(without_control_characters(key)).strip()[:MAX_NAME]
        # Keys that are different in every line must not fill the memory.
        if name and name not in self.ignored_columns and len(self.ignored_columns) < MAX_IGNORED_COLUMNS:
            self.ignored_columns.append(name)


def _lines(file: IO[bytes]) -> Iterator[str]:
    """The lines of a file in UTF-8, with or without byte order mark, each with its line end."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        for number in itertools.count(1):
            try:
                line = text.readline(MAX_LINE + 1)
            except UnicodeDecodeError:
                raise UnreadableManifest(
                    f"The manifest is not UTF-8 text (in or after line {number}). Save it with UTF-8 encoding."
                ) from None
            if not line:
                return
            if len(line) > MAX_LINE:
                raise UnreadableManifest(f"Line {number} of the manifest has more than {MAX_LINE:,} characters.")
            yield line
    finally:
        # Or the file would be closed along with it; it may be closed already when reading has ended early.
        with contextlib.suppress(ValueError):
            text.detach()


def _csv_records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UnreadableManifest(f"The manifest is not valid CSV near line {reader.line_num}: {error}.") from None
        yield record


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object as written, the same key twice included."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number; write null")


def _without_half_characters(text: str) -> str:
    """The text with a mark in place of what JSON can write and nothing can store, such as a lone ``\\ud800``."""
    return text.encode("utf-8", "replace").decode()


def _json_text(value: Any) -> str:
    """A JSON value as a CSV cell would have it. Raises ValueError if it is no text, number or null."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = value.strip()
        if text != _without_half_characters(text):
            raise ValueError(f"holds half a character ({value!a}); write it in UTF-8")
        return text
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    kind = "an object" if isinstance(value, _Pairs) else "a list" if isinstance(value, list) else str(value).lower()
    raise ValueError(f"must be text or a number, not {kind}")


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


_KNOWN_COLUMNS = {_key(column): column for column in COLUMNS}


def _positions(header: list[str]) -> tuple[dict[str, int], list[str]]:
    """Where each known column is, and the names of the columns nobody knows."""
    positions: dict[str, int] = {}
    ignored = []
    for position, name in enumerate(header):
        column = _KNOWN_COLUMNS.get(_key(name))
        if column is None:
            if name.strip():
                ignored.append(name.strip())
        elif column in positions:
            raise UnreadableManifest(f"The manifest has the column {column} twice. Remove one.")
        else:
            positions[column] = position
    missing = [column for column in ("filename", "kind") if column not in positions]
    if "class_index" not in positions and "synset" not in positions:
        missing.append("class_index (or synset)")
    if missing:
        raise UnreadableManifest(
            f"The manifest lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}. "
            f"Its first row has: {', '.join(name.strip() for name in header)}."
        )
    return positions, ignored


class _RowParser:
    """Checks the form of one row and collects everything that is wrong with it."""

    def __init__(self, number: int, values: dict[str, str]) -> None:
        self.number = number
        self.values = {column: without_control_characters(value) for column, value in values.items()}
        self.errors: list[RowError] = []
        for column, value in values.items():
            if found := CONTROL_CHARACTERS.search(value):
                self._error(
                    column, f"holds the control character U+{ord(found[0]):04X} ({value!r}); write the cell without it"
                )

    def parse(self) -> ManifestRow | list[RowError]:
        row = ManifestRow(
            number=self.number,
            filename=self._path("filename"),
            kind=self._kind(),
            class_index=self._class_index("class_index"),
            synset=self._synset(),
            source_filename=self._path("source_filename"),
            attack=self._text("attack"),
            target_model=self._text("target_model"),
            predicted_class_index=self._class_index("predicted_class_index"),
            confidence=self._confidence(),
        )
        if not self.errors:
            self._check_together(row)
        return self.errors or row

    def _error(self, column: str, message: str) -> None:
        self.errors.append(RowError(self.number, self.values.get("filename", ""), column, message))

    def _text(self, column: str) -> str:
        return self.values.get(column, "")

    def _path(self, column: str) -> str:
        value = self._text(column)
        try:
            path = normalise_path(value)
        except ValueError as error:
            self._error(column, str(error))
            return value
        if len(path) > MAX_NAME:
            self._error(column, f"the name has {len(path)} characters; the limit is {MAX_NAME}")
        if column == "filename" and not path:
            self._error(column, "is empty; name the image file")
        return path

    def _kind(self) -> str:
        kind = self._text("kind").lower()
        if kind not in KINDS:
            self._error("kind", f"must be clean or modified, not {self._text('kind')!r}")
        return kind

    def _class_index(self, column: str) -> int | None:
        value = self._text(column)
        if not value:
            return None
        # Spreadsheets and pandas write whole numbers of a column with gaps as 281.0.
        if not re.fullmatch(r"[+-]?\d{1,9}(\.0+)?", value, re.ASCII):
            self._error(column, f"must be a whole number from 0 to {LAST_CLASS_INDEX}, not {value!r}")
            return None
        index = int(float(value))
        if not 0 <= index <= LAST_CLASS_INDEX:
            self._error(column, f"must be from 0 to {LAST_CLASS_INDEX}, not {index}")
        return index

    def _synset(self) -> str:
        synset = self._text("synset").lower()
        if synset and not re.fullmatch(r"n\d{8}", synset, re.ASCII):
            self._error("synset", f"must look like n02123045, not {self._text('synset')!r}")
        return synset

    def _confidence(self) -> float | None:
        value = self._text("confidence")
        if not value:
            return None
        try:
            confidence = float(value.replace(",", "."))  # a decimal comma, as some spreadsheets write it
        except ValueError:
            confidence = math.nan
        if not 0 <= confidence <= 1:
            self._error("confidence", f"must be a number from 0 to 1, not {value!r}")
            return None
        return confidence

    def _check_together(self, row: ManifestRow) -> None:
        if row.class_index is None and not row.synset:
            self._error("class_index", "is empty; give the class index or the synset of the image's true class")
        if row.kind == "modified":
            for column in ("source_filename", "attack"):
                if not self._text(column):
                    absent = "" if column in self.values else " (the manifest has no such column)"
                    self._error(column, f"is empty{absent}; a modified image needs it")
        else:
            for column in ("source_filename", "attack"):
                if self._text(column):
                    self._error(column, "must be empty for a clean image; or is the kind meant to be modified?")
        if row.predicted_class_index is not None and not row.target_model:
            self._error("target_model", "is empty; name the model that made the prediction")
        if row.confidence is not None and row.predicted_class_index is None:
            self._error("predicted_class_index", "is empty; a confidence belongs to a predicted class")
