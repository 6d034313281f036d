"""Folders and archives that images come in."""

import io
import os
import stat
import zipfile

import pytest

from imagedb import image_files
from imagedb.image_files import ArchiveFiles, FileFinder, FileProblem, FolderFiles, NoSuchFile, find_manifest


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> ArchiveFiles:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return ArchiveFiles(buffer, "test.zip")


class TestArchive:
    def test_as_macos_makes_it(self):
        files = archive(
            {
                "set/": b"",
                "set/a.jpg": b"A",
                "set/.DS_Store": b"junk",
                "__MACOSX/set/._a.jpg": b"junk",
                "set/b/c/img.png": b"B",
                "set/Thumbs.db": b"junk",
            }
        )
        assert files.names == ["set/a.jpg", "set/b/c/img.png"]
        assert files.junk_count == 3
        assert files.read("set/b/c/img.png") == b"B"

    @pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b.png", "..\\b.png", "C:\\b.png"])
    def test_paths_that_lead_out_are_refused(self, name):
        files = archive({name: b"x", "a.png": b"A"})
        assert files.names == ["a.png"]
        assert len(files.refused) == 1
        assert "leads out" in files.refused[0]

    def test_links_are_refused(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            link = zipfile.ZipInfo("a.png")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(link, "/etc/passwd")
        files = ArchiveFiles(buffer, "test.zip")
        assert (files.names, files.refused) == ([], ["a.png is a link"])

    def test_high_ratio_is_refused_before_unpacking(self):
        files = archive({"bomb.bmp": bytes(20_000_000), "a.png": b"A"})
        with pytest.raises(FileProblem, match="more than 100-fold"):
            files.read("bomb.bmp")
        assert files.read("a.png") == b"A"

    def test_small_files_may_compress_as_they_like(self):
        assert len(archive({"flat.bmp": bytes(500_000)}).read("flat.bmp")) == 500_000

    def test_size_limit(self, monkeypatch):
        monkeypatch.setattr(image_files, "MAX_FILE_BYTES", 100)
        with pytest.raises(FileProblem, match="the limit"):
            archive({"a.png": bytes(range(101))}, zipfile.ZIP_STORED).read("a.png")

    def test_a_directory_that_understates_the_size(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("a.png", bytes(5_000_000))
        content = buffer.getvalue().replace((5_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
        with pytest.raises(FileProblem, match="cannot be unpacked"):
            ArchiveFiles(io.BytesIO(content), "test.zip").read("a.png")

    def test_damaged_member(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
            file.writestr("a.png", b"content")
        broken = buffer.getvalue().replace(b"content", b"c0ntent", 1)
        with pytest.raises(FileProblem, match="CRC"):
            ArchiveFiles(io.BytesIO(broken), "test.zip").read("a.png")

    @pytest.mark.parametrize(
        "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    )
    def test_damage_anywhere_is_told_and_spares_the_others(self, compression):
        """Every byte is broken once; whatever the decompressor says to it, it is a problem of that one file."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression) as file:
            file.writestr("a.png", b"one" * 30 + bytes(range(64)))
            own_bytes = buffer.tell()
            file.writestr("b.png", b"B")
        problems = []
        for position in range(own_bytes):
            broken = bytearray(buffer.getvalue())
            broken[position] ^= 0xFF
            files = ArchiveFiles(io.BytesIO(broken), "test.zip")
            try:
                files.read("a.png")
            except FileProblem as problem:
                problems.append(str(problem))
            assert files.read("b.png") == b"B"
        assert len(problems) > own_bytes / 2
        assert all(problem.startswith("a.png ") for problem in problems)

    def test_a_member_that_begins_after_the_end(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("a.png", b"content")
        content = bytearray(buffer.getvalue())
        entry = content.index(b"PK\x01\x02")
        content[entry + 42 : entry + 46] = (1_000_000).to_bytes(4, "little")
        with pytest.raises(FileProblem, match="cannot be unpacked"):
            ArchiveFiles(io.BytesIO(content), "test.zip").read("a.png")

    def test_unknown_compression(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("a.png", b"content")
        content = bytearray(buffer.getvalue())
        content[content.index(b"PK\x01\x02") + 10] = 97  # WavPack, by the ZIP specification
        with pytest.raises(FileProblem, match="cannot be unpacked"):
            ArchiveFiles(io.BytesIO(content), "test.zip").read("a.png")

    def test_encrypted_member(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("a.png", b"content")
        content = bytearray(buffer.getvalue())
        content[6] |= 1  # the flag in the member's own header
        content[content.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
        with pytest.raises(FileProblem, match="encrypted"):
            ArchiveFiles(io.BytesIO(content), "test.zip").read("a.png")

    @pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut short"])
    def test_not_an_archive(self, content):
        with pytest.raises(FileProblem, match="not a ZIP archive"):
            ArchiveFiles(io.BytesIO(content), "test.zip")

    def test_twice_the_same_name(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("a.png", b"first")
            with pytest.warns(UserWarning, match="Duplicate"):
                file.writestr("a.png", b"second")
        files = ArchiveFiles(buffer, "test.zip")
        assert files.read("a.png") == b"first"
        assert "twice" in files.refused[0]


class TestFolder:
    def test_nested_files_without_junk(self, tmp_path):
        (tmp_path / "x" / "y").mkdir(parents=True)
        (tmp_path / "a.png").write_bytes(b"A")
        (tmp_path / "x" / "y" / "b.png").write_bytes(b"B")
        (tmp_path / ".DS_Store").write_bytes(b"junk")
        files = FolderFiles(tmp_path)
        assert files.names == ["a.png", "x/y/b.png"]
        assert files.junk_count == 1
        assert files.read("x/y/b.png") == b"B"

    def test_size_limit(self, tmp_path, monkeypatch):
        monkeypatch.setattr(image_files, "MAX_FILE_BYTES", 3)
        (tmp_path / "a.png").write_bytes(b"four")
        with pytest.raises(FileProblem, match="the limit"):
            FolderFiles(tmp_path).read("a.png")

    def test_names_that_only_a_file_system_allows_are_told(self, tmp_path):
        for name in (b"a.png", b"\xff.png", b"..\\b.png", b"c:d.png"):
            (tmp_path / os.fsdecode(name)).write_bytes(b"A")
        files = FolderFiles(tmp_path)
        assert files.names == ["a.png"]
        assert len(files.refused) == 3
        "; ".join(files.refused).encode()  # can be shown and stored

    def test_links_are_refused(self, tmp_path):
        (tmp_path / "secret").write_bytes(b"secret")
        (tmp_path / "elsewhere").mkdir()
        root = tmp_path / "images"
        root.mkdir()
        (root / "a.png").symlink_to(tmp_path / "secret")
        (root / "b.png").symlink_to(tmp_path / "nothing")
        (root / "c.png").write_bytes(b"C")
        (root / "folder").symlink_to(tmp_path / "elsewhere")
        files = FolderFiles(root)
        assert files.names == ["c.png"]
        assert files.refused == [
            f"{name} is a link; put the file itself there" for name in ("a.png", "b.png", "folder")
        ]

    def test_a_file_that_became_a_link(self, tmp_path):
        (tmp_path / "secret").write_bytes(b"secret")
        (tmp_path / "a.png").write_bytes(b"A")
        files = FolderFiles(tmp_path)
        (tmp_path / "a.png").unlink()
        (tmp_path / "a.png").symlink_to(tmp_path / "secret")
        with pytest.raises(FileProblem, match=r"a\.png cannot be read"):
            files.read("a.png")

    def test_the_manifest_among_the_images_is_none_of_them(self, tmp_path):
        for name in ("manifest.csv", "a.png", "caf\u0065\u0301.png"):
            (tmp_path / name).write_bytes(b"A")
        assert FolderFiles(tmp_path, tmp_path / "manifest.csv").names == ["a.png", "caf\u00e9.png"]

    def test_two_ways_to_write_one_name(self, tmp_path):
        (tmp_path / "caf\u0065\u0301.png").write_bytes(b"decomposed")
        (tmp_path / "caf\u00e9.png").write_bytes(b"composed")
        files = FolderFiles(tmp_path)
        assert (files.names, files.read("caf\u00e9.png")) == (["caf\u00e9.png"], b"decomposed")
        assert "twice" in files.refused[0]

    def test_a_file_that_vanished(self, tmp_path):
        (tmp_path / "a.png").write_bytes(b"A")
        files = FolderFiles(tmp_path)
        (tmp_path / "a.png").unlink()
        with pytest.raises(FileProblem, match="cannot be read"):
            files.read("a.png")


class TestFinder:
    finder = FileFinder(["a.png", "x/b.png", "x/c.png", "y/c.png", "m/a.png"], base="m")

    @pytest.mark.parametrize(
        ("filename", "found"),
        [("a.png", "a.png"), ("x/c.png", "x/c.png"), ("b.png", "x/b.png"), ("images/b.png", "x/b.png")],
    )
    def test_by_path_else_by_basename(self, filename, found):
        assert self.finder.find(filename) == found

    def test_relative_to_the_manifest(self):
        finder = FileFinder(["set/a.png", "set/old/a.png"], base="set")
        assert finder.find("a.png") == "set/a.png"
        assert finder.find("old/a.png") == "set/old/a.png"

    def test_ambiguous_basename_names_both(self):
        with pytest.raises(FileProblem, match=r"x/c\.png, y/c\.png"):
            self.finder.find("c.png")

    def test_absent(self):
        with pytest.raises(NoSuchFile):
            self.finder.find("d.png")


class TestManifestOfAnArchive:
    @pytest.mark.parametrize(
        ("names", "chosen"),
        [
            (["a.png", "manifest.csv"], "manifest.csv"),
            (["set/Manifest.CSV", "set/notes.csv"], "set/Manifest.CSV"),
            (["a.png", "images.csv"], "images.csv"),
        ],
    )
    def test_found(self, names, chosen):
        assert find_manifest(names) == chosen

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["a.png"], "has no manifest"),
            (["one.csv", "two.csv"], "several manifests: one.csv, two.csv"),
            (["a/manifest.csv", "b/manifest.csv"], "several manifests"),
        ],
    )
    def test_none_or_several(self, names, words):
        with pytest.raises(FileProblem, match=words):
            find_manifest(names)
