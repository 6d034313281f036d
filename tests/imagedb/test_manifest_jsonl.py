"""Manifests with one JSON object per line, and manifests too long to be held in memory."""

import io
import itertools
import json
import tracemalloc

import pytest

from imagedb.manifest import ManifestReader, ManifestRow, RowError, UnreadableManifest, parse

CLEAN = {"filename": "a.png", "kind": "clean", "class_index": 281}
MODIFIED = {
    "filename": "b.png",
    "kind": "modified",
    "class_index": 281,
    "source_filename": "a.png",
    "attack": "cAdv",
    "target_model": "ResNet-50",
    "predicted_class_index": 282,
    "confidence": 0.93,
}


def jsonl(*rows: dict[str, object] | str, end: str = "\n") -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + end for row in rows).encode()


def errors(*rows: dict[str, object] | str) -> list[tuple[int, str, str]]:
    return [(error.row_number, error.column, error.message) for error in parse(jsonl(*rows)).errors]


class TestForms:
    def test_says_the_same_as_csv(self):
        header = ",".join(MODIFIED)
        csv = f"{header}\na.png,clean,281,,,,,\n{','.join(str(value) for value in MODIFIED.values())}\n"
        from_csv, from_json = parse(csv.encode()).rows, parse(jsonl(CLEAN, MODIFIED)).rows
        assert from_json[1].confidence == 0.93
        assert [row.number for row in from_json] == [1, 2]  # lines; a CSV file has a header before them
        for one, other in zip(from_csv, from_json, strict=True):
            for column in ManifestRow.__slots__[1:]:
                assert getattr(one, column) == getattr(other, column), column

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n  \n"], ids=["unix", "windows", "blank lines"])
    @pytest.mark.parametrize("mark", [b"", "\ufeff".encode()], ids=["bare", "byte order mark"])
    def test_line_ends_and_byte_order_mark(self, mark, end):
        rows = parse(mark + jsonl(CLEAN, MODIFIED, end=end)).rows
        assert [row.filename for row in rows] == ["a.png", "b.png"]
        assert [row.number for row in rows] == [1, 1 + len(end.strip(" \r").split("\n")) - 1]

    def test_no_line_end_after_the_last(self):
        assert len(parse(jsonl(CLEAN, MODIFIED).rstrip()).rows) == 2

    @pytest.mark.parametrize("index", [0, 0.0, "0", "0.0", " 0 "])
    def test_numbers_and_text(self, index):
        assert parse(jsonl({**CLEAN, "class_index": index})).rows[0].class_index == 0

    @pytest.mark.parametrize(
        ("confidence", "found"), [(0, 0.0), (1, 1.0), (1e-05, 0.00001), ("0.5", 0.5), (None, None)]
    )
    def test_zero_is_an_answer_and_null_is_none(self, confidence, found):
        assert parse(jsonl({**MODIFIED, "confidence": confidence})).rows[0].confidence == found

    def test_keys_are_taken_as_headers_are(self):
        row = {"File Name": "a.png", "KIND": "Clean", "class-index": 281}
        assert parse(jsonl(row)).rows[0].class_index == 281

    def test_unknown_keys_are_reported_once(self):
        parsed = parse(jsonl({**CLEAN, "Comment": {"any": ["thing"]}}, {**CLEAN, "Comment": 1, "camera": None, " ": 1}))
        assert (len(parsed.rows), parsed.ignored_columns) == (2, ["Comment", "camera"])

    def test_names_composed_as_on_a_mac_and_escaped(self):
        assert parse(b'{"filename": "caf\\u0065\\u0301.png", "kind": "clean", "class_index": 1}').rows[0].filename == (
            "caf\u00e9.png"
        )

    def test_line_separators_that_are_no_line_ends(self):
        assert parse(jsonl('{"filename": "a\u2028b.png", "kind": "clean", "class_index": 1}')).rows[0].number == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("row", "column", "words"),
        [
            ({**CLEAN, "class_index": 1000}, "class_index", "from 0 to 999"),
            ({**CLEAN, "class_index": 281.5}, "class_index", "'281.5'"),
            ({**CLEAN, "class_index": True}, "class_index", "not true"),
            ({**CLEAN, "class_index": [281]}, "class_index", "not a list"),
            ({**CLEAN, "kind": {"clean": 1}}, "kind", "not an object"),
            ({"kind": "clean", "class_index": 1}, "filename", "is empty"),
            ({"filename": "b.png", "kind": "modified", "class_index": 1, "attack": "x"}, "source_filename", "is empty"),
            ({**CLEAN, "filename": "../a.png"}, "filename", "leads out"),
            ({**MODIFIED, "attack": "a\0b"}, "attack", "U+0000"),
            ('{"filename": "b.png", "kind": "clean", "class_index": 1, "Kind": "clean"}', "kind", "twice"),
            ('{"filename": "b\\ud800.png", "kind": "clean", "class_index": 1}', "filename", "half a character"),
            ('{"filename": "b.png", "kind": "clean"', "", "is not JSON: Expecting"),
            ('{"filename": "b.png", "kind": "clean", "class_index": NaN}', "", "NaN is no JSON number"),
            ('{"a": 1} {"b": 2}', "", "is not JSON: Extra data at character 10"),
            ('{"class_index": ' + "1" * 5000 + "}", "", "is not JSON that can be read"),
            ("[" * 200_000, "", "is not JSON that can be read"),
            ('["b.png"]', "", "not a JSON object"),
            ("filename,kind", "", "is not JSON"),
        ],
    )
    def test_line_key_and_reason(self, row, column, words):
        found = errors(CLEAN, "", row)
        assert len(found) == 1
        assert found[0][:2] == (3, column)
        assert words in found[0][2]

    def test_the_other_lines_are_read(self):
        parsed = parse(jsonl("{", CLEAN))
        assert [row.filename for row in parsed.rows] == ["a.png"]
        assert parsed.row_count == 2

    def test_everything_wrong_with_a_line_is_said_at_once(self):
        assert [column for _, column, _ in errors({**CLEAN, "class_index": False, "kind": "cleen"})] == [
            "class_index",
            "kind",
        ]

    def test_an_error_can_be_stored_and_shown(self):
        error = parse(jsonl('{"filename": "b\\ud800\\u0000.png", "k\\ud800": 1}')).errors[0]
        assert error.filename == ""
        str(error).encode()

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b'[{"filename": "a.png"}]', "one object per line"),
            ('{"filename": "ä.png"}'.encode("latin-1"), "not UTF-8"),
            (b'{"a": "' + b"x" * 1_100_000 + b'"}', "more than 1,000,000 characters"),
            (b"\xef\xbb\xbf", "is empty"),
        ],
    )
    def test_the_file_as_a_whole(self, content, words):
        with pytest.raises(UnreadableManifest, match=words):
            parse(content)

    def test_different_unknown_keys_in_every_line_do_not_add_up(self):
        parsed = parse(jsonl(*({**CLEAN, f"key {number}": 1} for number in range(300))))
        assert (len(parsed.rows), len(parsed.ignored_columns)) == (300, 100)


class Endless(io.RawIOBase):
    """A file of one header and as many rows as wanted, written while it is read."""

    def __init__(self, header: bytes, row: bytes, count: int) -> None:
        self._parts = itertools.chain([header] if header else [], (row % (number % 1_000) for number in range(count)))
        self._rest = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while len(self._rest) < len(buffer) and (part := next(self._parts, b"")):
            self._rest += part
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class TestLongManifests:
    @pytest.mark.parametrize(
        ("header", "row"),
        [
            (b"filename,kind,class_index\r\n", b'"a.png",clean,%d\r\n'),
            (b"", b'{"filename": "a.png", "kind": "clean", "class_index": %d}\n'),
        ],
        ids=["csv", "jsonl"],
    )
    def test_rows_are_read_one_at_a_time(self, header, row):
        reader = iter(ManifestReader(Endless(header, row, 6_000)))
        assert all(isinstance(next(reader), ManifestRow) for _ in range(1_000))  # and what is made once is made
        tracemalloc.start()
        try:
            assert sum(1 for _ in reader) == 5_000
            assert tracemalloc.get_traced_memory()[1] < 300_000  # rows that are kept would need a million
        finally:
            tracemalloc.stop()

    def test_rows_before_a_break_are_given(self):
        reader = iter(ManifestReader(io.BytesIO(b'filename,kind,class_index\na.png,clean,1\n"b.png,clean,1\n')))
        assert next(reader).filename == "a.png"
        with pytest.raises(UnreadableManifest, match="not valid CSV"):
            next(reader)

    def test_the_file_is_left_open(self):
        file = io.BytesIO(jsonl(CLEAN))
        list(ManifestReader(file))
        assert not file.closed

    def test_errors_come_in_place(self):
        rows = list(ManifestReader(io.BytesIO(jsonl(CLEAN, "{", MODIFIED))))
        assert [isinstance(row, ManifestRow) for row in rows] == [True, False, True]
        assert isinstance(rows[1][0], RowError)
