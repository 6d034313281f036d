"""The two formats, as other programs read them: small and huge files, odd names, very many entries."""

import io
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from imagedb.archives.layout import StoredFile, WrittenFile
from imagedb.archives.tar import TarWriter
from imagedb.archives.zip import ZipWriter
from tests.imagedb.archives.made import Contents, LayoutFile, whole, zeros

GIB = 1024**3
ODD_NAMES = [
    "plain.png",
    "with space.png",
    "folder/deeper/deepest.jpg",
    "ünïcödé/κόσμος/日本語/🦔.png",
    "quotes'\"&<>;|$(x)`.png",
    "back\\slash.png",
    "-rf",
    "per%cent.png",
    f"{'long/' * 30}name.png",
    f"{'длинное/' * 30}имя.png",
]


def filled(writer, contents: Contents):
    for name in contents.contents:
        writer.add_stored(name, contents.stored(name))
    writer.add_bytes("added.txt", b"added")
    with WrittenFile() as written:
        written.write(b"one,")
        written.write(b"two")
        writer.add_written("written.csv", written)
    return writer.finish()


@pytest.fixture
def contents() -> Contents:
    return Contents({name: os.urandom(number * 300) for number, name in enumerate(ODD_NAMES)})


@pytest.fixture
def expected(contents):
    return {**contents.contents, "added.txt": b"added", "written.csv": b"one,two"}


class TestZip:
    def test_every_file_comes_out_as_it_went_in(self, contents, expected):
        layout = filled(ZipWriter(), contents)
        with zipfile.ZipFile(LayoutFile(layout, contents)) as archive:
            assert archive.testzip() is None
            assert {name: archive.read(name) for name in archive.namelist()} == expected
            for entry in archive.infolist():
                assert entry.date_time == (1980, 1, 1, 0, 0, 0)
                assert stat.S_IMODE(entry.external_attr >> 16) == 0o644
                assert entry.compress_type == zipfile.ZIP_STORED
        layout.close()

    @pytest.mark.skipif(not shutil.which("unzip"), reason="there is no unzip")
    def test_unzip_finds_no_fault(self, contents, expected, tmp_path):
        layout = filled(ZipWriter(), contents)
        (tmp_path / "archive.zip").write_bytes(whole(layout, contents))
        layout.close()
        subprocess.run(["unzip", "-tq", "archive.zip"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        utf8 = {**os.environ, "LC_ALL": "C.UTF-8"}
        subprocess.run(["unzip", "-q", "-d", "out", "archive.zip"], cwd=tmp_path, check=True, env=utf8)
        out = tmp_path / "out"
        assert {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()} == expected

    def test_nothing_is_an_archive_too(self):
        layout = ZipWriter().finish()
        assert layout.length == 22
        assert zipfile.ZipFile(LayoutFile(layout, zeros)).namelist() == []
        layout.close()

    def test_no_zip64_where_none_is_needed(self, contents):
        layout = filled(ZipWriter(), contents)
        content = whole(layout, contents)
        layout.close()
        assert b"PK\6\6" not in content
        assert all(not entry.extra for entry in zipfile.ZipFile(io.BytesIO(content)).infolist())

    @pytest.mark.parametrize("size", [2**32 - 2, 2**32 - 1, 2**32, 5 * GIB])
    def test_a_file_of_four_gibibytes_and_what_follows_it(self, size, tmp_path):
        """Listed by zipfile and by unzip (from a file with a hole), with the following file where it should be."""
        writer = ZipWriter()
        writer.add_stored("huge.bin", StoredFile("huge", size, 0, "0" * 64))
        writer.add_bytes("after.txt", b"after the huge one")
        layout = writer.finish()
        with zipfile.ZipFile(LayoutFile(layout, zeros)) as archive:
            assert [entry.file_size for entry in archive.infolist()] == [size, 18]
            assert archive.read("after.txt") == b"after the huge one"
        if shutil.which("unzip") and size != 2**32 - 1:  # that one size unzip 6.0 takes for the mark "see ZIP64"
            path = with_holes(layout, tmp_path / "huge.zip")
            listed = subprocess.run(["unzip", "-Zl", path], check=True, capture_output=True, text=True).stdout
            assert f" {size} " in listed
            extracted = subprocess.run(["unzip", "-p", path, "after.txt"], check=True, capture_output=True).stdout
            assert extracted == b"after the huge one"
        layout.close()

    @pytest.mark.parametrize("count", [65_534, 65_536])
    def test_more_entries_than_16_bits_count(self, count):
        contents = Contents({"one": b"content"})
        stored = contents.stored("one")
        writer = ZipWriter()
        for number in range(count):
            writer.add_stored(f"{number:05}.txt", stored)
        layout = writer.finish()
        file = LayoutFile(layout, contents)
        file.seek(-22 - 20 - 56, 2)
        assert (b"PK\6\6" in file.read()) == (count >= 65_535)
        with zipfile.ZipFile(file) as archive:
            assert len(archive.namelist()) == count
            contents.reads = 0
            assert archive.read(f"{count - 1:05}.txt") == b"content"
            assert contents.reads < 5  # what lies before is not read
        layout.close()


class TestTar:
    def test_every_file_comes_out_as_it_went_in(self, contents, expected):
        layout = filled(TarWriter(), contents)
        with tarfile.open(fileobj=LayoutFile(layout, contents), mode="r:") as archive:
            assert {entry.name: archive.extractfile(entry).read() for entry in archive} == expected
            for entry in archive:
                assert (entry.mtime, entry.mode, entry.uid, entry.gid) == (315532800, 0o644, 0, 0)
        assert layout.length % 512 == 0
        layout.close()

    @pytest.mark.skipif(not shutil.which("tar"), reason="there is no tar")
    def test_tar_unpacks_it(self, contents, expected, tmp_path):
        layout = filled(TarWriter(), contents)
        (tmp_path / "archive.tar").write_bytes(whole(layout, contents))
        layout.close()
        out = tmp_path / "out"
        out.mkdir()
        unpacked = subprocess.run(["tar", "xf", "../archive.tar"], cwd=out, check=True, capture_output=True)
        assert unpacked.stderr == b""
        assert {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()} == expected

    def test_nothing_is_an_archive_too(self):
        layout = TarWriter().finish()
        assert layout.length == 1024
        assert names_in_tar(layout) == []
        layout.close()

    @pytest.mark.parametrize("size", [8 * GIB - 1, 8 * GIB, 9 * GIB + 1])
    def test_a_file_of_eight_gibibytes_and_what_follows_it(self, size, tmp_path):
        writer = TarWriter()
        writer.add_stored("huge.bin", StoredFile("huge", size, 0, "0" * 64))
        writer.add_bytes("after.txt", b"after the huge one")
        layout = writer.finish()
        with tarfile.open(fileobj=LayoutFile(layout, zeros), mode="r:") as archive:
            assert [(entry.name, entry.size) for entry in archive] == [("huge.bin", size), ("after.txt", 18)]
            assert archive.extractfile("after.txt").read() == b"after the huge one"
        if shutil.which("tar"):
            path = with_holes(layout, tmp_path / "huge.tar")
            listed = subprocess.run(["tar", "tvf", path], check=True, capture_output=True, text=True).stdout
            assert f" {size} " in listed
            assert listed.splitlines()[1].endswith(" after.txt")
        layout.close()

    def test_the_shortest_pax_record_counts_its_own_digits(self):
        """A name of a length at which the length of the record gains a digit."""
        for length in (80, *range(101, 110), *range(985, 1000)):
            name = "ä" + "n" * length
            writer = TarWriter()
            writer.add_bytes(name, b"x")
            layout = writer.finish()
            assert names_in_tar(layout) == [name]
            layout.close()


def names_in_tar(layout) -> list[str]:
    with tarfile.open(fileobj=LayoutFile(layout, zeros), mode="r:") as archive:
        return archive.getnames()


def with_holes(layout, path: Path) -> str:
    """The archive on disk, where stored files, all of zeros, are holes."""
    with path.open("wb") as file:
        for piece in layout.pieces():
            if isinstance(piece, bytes):
                file.write(piece)
            else:
                file.seek(piece.length, os.SEEK_CUR)
    return str(path)
