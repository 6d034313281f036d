"""Names within archives: junk, ways out, links, doubles, archives within archives, encodings."""

import io
import stat
import struct
import unicodedata
import zipfile
import zlib

import pytest

from imagedb.image_files import ArchiveFiles, FileProblem, RowFiles
from tests.imagedb.awkward.archives import archive, named, opened, zipped

DECOMPOSED, COMPOSED = "caf\u0065\u0301.png", "caf\u00e9.png"


def test_as_macos_makes_it():
    files = archive(
        {
            "set/": b"",
            "set/a.jpg": b"A",
            "set/.DS_Store": b"junk",
            "__MACOSX/set/._a.jpg": b"junk",
            "set/b/c/img.png": b"B",
            "set/Thumbs.db": b"junk",
            "set/desktop.ini": b"junk",
        }
    )
    assert files.names == ["set/a.jpg", "set/b/c/img.png"]
    assert (files.junk_count, files.refused) == (4, [])
    assert files.read("set/b/c/img.png") == b"B"


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b.png", "..\\b.png", "C:\\b.png"])
def test_paths_that_lead_out_are_refused(name):
    files = archive({name: b"x", "a.png": b"A"})
    assert files.names == ["a.png"]
    assert len(files.refused) == 1
    assert repr(name) in files.refused[0]
    assert "leads out" in files.refused[0]


@pytest.mark.parametrize("name", [b"a\0b.png", b"a\nb.png", b"a\x1bb.png", b"a\x7f.png"])
def test_names_with_control_characters_are_refused(name):
    files = opened(named(name))
    assert files.names == []
    assert "no manifest can give" in files.refused[0]
    assert files.refused[0].isprintable()


def test_links_are_refused():
    files = opened(named(b"a.png", b"/etc/passwd", mode=stat.S_IFLNK | 0o777))
    assert (files.names, files.refused) == ([], ["a.png is a link; put the file itself there"])


def test_twice_the_same_name():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a.png", b"first")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a.png", b"second")
    files = ArchiveFiles(buffer, "test.zip")
    assert files.read("a.png") == b"first"
    assert files.refused == ["a.png is in the archive twice; the first was taken"]


def test_the_same_basename_in_two_folders_is_two_files():
    files = archive({"x/c.png": b"X", "y/c.png": b"Y"})
    rows = RowFiles(files, ["x/c.png", "y/c.png", "c.png"])
    assert (rows.read("x/c.png"), rows.read("y/c.png")) == (b"X", b"Y")
    with pytest.raises(FileProblem, match=r"may be any of x/c\.png, y/c\.png; write the whole path"):
        rows.read("c.png")


@pytest.mark.parametrize("name", ["more.zip", "set/IMAGES.ZIP", "a.7z", "a.rar", "a.tar", "a.tar.gz", "a.tgz"])
def test_archives_within_the_archive_are_refused(name):
    files = archive({name: zipped({"b.png": b"B"}), "a.png": b"A"})
    assert files.names == ["a.png"]
    assert files.refused == [f"{name} is an archive within the archive; unpack it and put its files there"]


class TestEncodings:
    @pytest.mark.parametrize("flags", [0x800, 0], ids=["flagged", "as macOS writes"])
    @pytest.mark.parametrize("name", [COMPOSED, DECOMPOSED], ids=["composed", "decomposed"])
    def test_utf8(self, name, flags):
        files = opened(named(name.encode(), flags=flags))
        assert (files.names, files.hint) == ([COMPOSED], "")
        assert files.read(COMPOSED) == b"content"
        assert RowFiles(files, [unicodedata.normalize("NFC", name)]).read(COMPOSED) == b"content"

    def test_both_ways_to_write_one_name(self):
        files = archive({DECOMPOSED: b"first", COMPOSED: b"second"})
        assert files.read(COMPOSED) == b"first"
        assert "twice" in files.refused[0]

    def test_code_page_437_as_the_standard_says(self):
        files = opened(named("K\u00e4se.png".encode("cp437")))
        assert files.names == ["K\u00e4se.png"]
        assert files.read("K\u00e4se.png") == b"content"

    def test_any_other_encoding_is_named_where_the_file_is_not_found(self):
        files = opened(named(COMPOSED.encode("latin-1")))
        assert files.names == ["caf\u0398.png"]
        with pytest.raises(FileProblem, match="no such file") as caught:
            RowFiles(files, [COMPOSED]).read(COMPOSED)
        assert str(caught.value) == (
            "caf\u00e9.png in the archive test.zip: no such file; correct the name or add the file (names of the "
            "archive that are not in UTF-8 may be read wrongly, such as caf\u0398.png; make the archive with UTF-8 "
            "names)"
        )

    def test_an_extra_field_has_the_name_in_utf8(self):
        raw, name = "日本.png".encode("shift-jis"), "日本.png".encode()
        field = struct.pack("<BL", 1, zlib.crc32(raw)) + name
        files = opened(named(raw, extra=struct.pack("<HH", 0x7075, len(field)) + field))
        assert (files.names, files.hint) == (["日本.png"], "")
        assert files.read("日本.png") == b"content"

    def test_an_extra_field_of_another_name_is_not_believed(self):
        field = struct.pack("<BL", 1, zlib.crc32(b"another")) + b"b.png"
        files = opened(named("\u00e4.png".encode("cp437"), extra=struct.pack("<HH", 0x7075, len(field)) + field))
        assert files.names == ["\u00e4.png"]

    def test_a_name_that_only_says_it_is_utf8(self):
        with pytest.raises(FileProblem, match=r"test\.zip has a file whose name b'caf\\xe9\.png' is said to be UTF-8"):
            opened(named(COMPOSED.encode("latin-1"), flags=0x800))
