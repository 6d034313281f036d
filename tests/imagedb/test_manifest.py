"""Manifests as people's programs write them."""

import pytest

from imagedb.manifest import UnreadableManifest, normalise_path, parse

HEADER = "filename,kind,class_index,synset,source_filename,attack,target_model,predicted_class_index,confidence"


def manifest(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join([header, *rows]).encode()


def errors(*rows: str, **options) -> list[tuple[int, str, str]]:
    return [(error.row_number, error.column, error.message) for error in parse(manifest(*rows, **options)).errors]


class TestForms:
    def test_all_columns(self):
        rows = parse(
            manifest(
                "clean/a.png,clean,281,n02123045,,,ResNet-50,281,0.93",
                "b.png,modified,281,,clean/a.png,cAdv,ResNet-50,282,0",
            )
        ).rows
        assert [row.number for row in rows] == [2, 3]
        clean, modified = rows
        assert (clean.filename, clean.kind, clean.class_index, clean.synset) == (
            "clean/a.png",
            "clean",
            281,
            "n02123045",
        )
        assert (clean.target_model, clean.predicted_class_index, clean.confidence) == ("ResNet-50", 281, 0.93)
        assert (modified.source_filename, modified.attack) == ("clean/a.png", "cAdv")
        assert modified.confidence == 0.0  # an answer, not a gap

    @pytest.mark.parametrize("index", [0, 999])
    def test_first_and_last_class(self, index):
        assert parse(manifest(f"a.png,clean,{index},,,,,,")).rows[0].class_index == index

    def test_only_what_is_needed(self):
        row = parse(b"filename,kind,synset\na.png,clean,n02123045\n").rows[0]
        assert (row.class_index, row.synset, row.attack, row.confidence) == (None, "n02123045", "", None)

    def test_as_a_spreadsheet_in_german_saves_it(self):
        content = "\ufefffilename;kind;class_index;target_model;predicted_class_index;confidence\r\n"
        content += '"a;b.png";clean;281;ResNet-50;281;0,93\r\n'
        row = parse(content.encode()).rows[0]
        assert (row.filename, row.confidence) == ("a;b.png", 0.93)

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["bare", "byte order mark"])
    def test_separators_line_ends_and_byte_order_mark(self, separator, line_end, mark):
        lines = [["filename", "kind", "class_index"], ['"a,b;c""d.png"', "clean", "0"], ["b.png", "clean", "999"]]
        content = mark + line_end.join(separator.join(cells) for cells in lines) + line_end
        rows = parse(content.encode()).rows
        assert [(row.number, row.filename, row.class_index) for row in rows] == [
            (2, 'a,b;c"d.png', 0),
            (3, "b.png", 999),
        ]

    def test_as_pandas_saves_a_column_with_gaps(self):
        row = parse(manifest("a.png,clean,281.0,,,,m,281.0,")).rows[0]
        assert (row.class_index, row.predicted_class_index) == (281, 281)

    @pytest.mark.parametrize(
        "header", ["File Name, KIND ,Class-Index", " filename,Kind,classindex", "FILENAME,kind,class index"]
    )
    def test_letter_case_and_spaces_of_the_header_do_not_matter(self, header):
        assert parse(manifest("a.png,Clean,281", header=header)).rows[0].kind == "clean"

    def test_order_of_columns_does_not_matter(self):
        assert parse(manifest("281,clean,a.png", header="class_index,kind,filename")).rows[0].filename == "a.png"

    def test_more_columns_are_reported(self):
        parsed = parse(manifest("a.png,clean,281,x,y", header="filename,kind,class_index,Comment,photographer"))
        assert parsed.ignored_columns == ["Comment", "photographer"]
        assert len(parsed.rows) == 1

    def test_empty_rows_are_skipped_and_counted_as_a_spreadsheet_does(self):
        parsed = parse(manifest("a.png,clean,281,,,,,,", "", ",,,,,,,,", "b.png,clean,281,,,,,,"))
        assert [row.number for row in parsed.rows] == [2, 5]

    def test_a_cell_with_a_line_break_is_one_row(self):
        parsed = parse(
            manifest('a.png,clean,281,"one\ntwo"', "b.png,clean,281,x", header="filename,kind,class_index,note")
        )
        assert [row.number for row in parsed.rows] == [2, 3]

    def test_short_rows_lack_only_what_is_optional(self):
        assert parse(manifest("a.png,clean,281")).rows[0].confidence is None

    def test_names_composed_as_on_a_mac(self):
        assert parse(manifest("caf\u0065\u0301.png,clean,281,,,,,,")).rows[0].filename == "caf\u00e9.png"


class TestFileErrors:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "is empty"),
            (b"\n\n", "is empty"),
            (b"filename,kind,class_index\n", "no rows"),
            (b"filename,label\na.png,1\n", "lacks the columns kind, class_index \\(or synset\\)"),
            (b"name,kind,synset\na,b,c\n", "lacks the column filename"),
            (b"filename,kind,synset,Filename\na,b,c,d\n", "column filename twice"),
            ("filename,kind,synset\nä.png,clean,n02123045\n".encode("latin-1"), "not UTF-8"),
            ("filename,kind,synset\na,clean,n02123045\n".encode("utf-16"), "not UTF-8"),
            (b'filename,kind,synset\n"a.png,clean,n02123045\n', "not valid CSV"),
            (b"PK\x03\x04\x00\x00", "lacks the columns|not UTF-8"),
            ("filename,kind\na,clean\n".encode("utf-16-le"), "lacks the column class_index"),
        ],
    )
    def test_one_clear_error(self, content, words):
        with pytest.raises(UnreadableManifest, match=words):
            parse(content)


class TestRowErrors:
    @pytest.mark.parametrize(
        ("row", "column", "words"),
        [
            (",clean,281,,,,,,", "filename", "is empty"),
            ("../a.png,clean,281,,,,,,", "filename", "leads out"),
            ("/etc/passwd,clean,281,,,,,,", "filename", "leads out"),
            ("..\\a.png,clean,281,,,,,,", "filename", "leads out"),
            ("C:\\a.png,clean,281,,,,,,", "filename", "leads out"),
            (f"{'a' * 252}.png,clean,281,,,,,,", "filename", "256 characters"),
            ("a.png,cleen,281,,,,,,", "kind", "'cleen'"),
            ("a.png,,281,,,,,,", "kind", "must be clean or modified"),
            ("a.png,clean,1000,,,,,,", "class_index", "from 0 to 999"),
            ("a.png,clean,-1,,,,,,", "class_index", "from 0 to 999"),
            ("a.png,clean,cat,,,,,,", "class_index", "'cat'"),
            ("a.png,clean,281.5,,,,,,", "class_index", "'281.5'"),
            ("a.png,clean,٣,,,,,,", "class_index", "whole number"),
            ("a.png,clean,,,,,,,", "class_index", "is empty"),
            ("a.png,clean,,tabby,,,,,", "synset", "'tabby'"),
            ("a.png,clean,281,,,,m,281,1.01", "confidence", "'1.01'"),
            ("a.png,clean,281,,,,m,281,-0.1", "confidence", "from 0 to 1"),
            ("a.png,clean,281,,,,m,281,nan", "confidence", "'nan'"),
            ("a.png,clean,281,,,,m,281,93%", "confidence", "'93%'"),
            ("a.png,clean,281,,,,m,1000,", "predicted_class_index", "from 0 to 999"),
            ("a.png,clean,281,,,,,281,", "target_model", "is empty"),
            ("a.png,clean,281,,,,m,,0.9", "predicted_class_index", "is empty"),
            ("a.png,clean,281,,b.png,,,,", "source_filename", "must be empty for a clean image"),
            ("a.png,clean,281,,,cAdv,,,", "attack", "must be empty for a clean image"),
            ("a.png,modified,281,,,cAdv,,,", "source_filename", "is empty"),
            ("a.png,modified,281,,b.png,,,,", "attack", "is empty"),
            ("a.png,modified,281,,../b.png,cAdv,,,", "source_filename", "leads out"),
            ("a.png,clean,281,,,,,,,more", "", "10 cells, the header 9"),
            ("a\0.png,clean,281,,,,,,", "filename", "control character U+0000"),
            ("a.png,cl\0ean,281,,,,,,", "kind", "control character U+0000 ('cl\\x00ean')"),
            ("a.png,clean,28\x001,,,,,,", "class_index", "U+0000"),
            ("a.png,modified,281,,b\0.png,cAdv,,,", "source_filename", "U+0000"),
            ("a.png,modified,281,,b.png,c\x1bAdv,,,", "attack", "U+001B"),
            ('a.png,clean,281,,,,"m\nn",281,', "target_model", "U+000A"),
        ],
    )
    def test_row_column_and_reason(self, row, column, words):
        found = errors("good.png,clean,281,,,,,,", row)
        assert len(found) == 1
        assert found[0][:2] == (3, column)
        assert words in found[0][2]

    @pytest.mark.parametrize("row", ["a\0.png,clean,281,,,,,,", "a\0.png,clean,281,,,,,,,more"])
    def test_the_name_of_a_row_can_be_stored(self, row):
        assert parse(manifest(row)).errors[0].filename == "a.png"

    def test_the_other_rows_are_read(self):
        parsed = parse(manifest("a.png,cleen,281,,,,,,", "b.png,clean,281,,,,,,"))
        assert [row.filename for row in parsed.rows] == ["b.png"]
        assert parsed.row_count == 2

    def test_everything_wrong_with_a_row_is_said_at_once(self):
        assert [column for _, column, _ in errors("a.png,cleen,1000,x,,,,,2")] == [
            "kind",
            "class_index",
            "synset",
            "confidence",
        ]

    def test_absent_column_is_named(self):
        found = errors("a.png,modified,281,b.png", header="filename,kind,class_index,source_filename")
        assert "no such column" in found[0][2]


@pytest.mark.parametrize(
    ("name", "path"), [("./a.png", "a.png"), ("a//b.png", "a/b.png"), ("a\\b.png", "a/b.png"), (" a.png ", "a.png")]
)
def test_paths_are_brought_into_one_form(name, path):
    assert normalise_path(name) == path
