"""Folders that images come in: junk, links, odd names, nested archives."""

import os

import pytest

from imagedb import image_files
from imagedb.image_files import FileProblem, FolderFiles


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

    def test_archives_in_the_folder_are_refused(self, tmp_path):
        for name in ("images.zip", "a.png"):
            (tmp_path / name).write_bytes(b"A")
        files = FolderFiles(tmp_path)
        assert files.names == ["a.png"]
        assert files.refused == ["images.zip is an archive within the folder; unpack it and put its files there"]

    def test_the_same_basename_in_two_folders_is_two_files(self, tmp_path):
        for name in ("x", "y"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "c.png").write_bytes(name.encode())
        files = FolderFiles(tmp_path)
        assert [files.read(name) for name in files.names] == [b"x", b"y"]

    def test_what_is_no_file_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "a.png")
        with pytest.raises(FileProblem, match=r"a\.png is no ordinary file"):
            FolderFiles(tmp_path).read("a.png")

    def test_manifest_as_a_stream(self, tmp_path, monkeypatch):
        (tmp_path / "manifest.jsonl").write_bytes(b"{}\n")
        monkeypatch.setattr(image_files, "MAX_FILE_BYTES", 1)
        with FolderFiles(tmp_path).open_manifest("manifest.jsonl") as stream:
            assert stream.read() == b"{}\n"
        monkeypatch.setattr(image_files, "MAX_MANIFEST_BYTES", 1)
        with pytest.raises(FileProblem, match="the limit"):
            FolderFiles(tmp_path).open_manifest("manifest.jsonl")

    def test_file_of_more_than_two_gigabytes(self, tmp_path):
        with open(tmp_path / "a.bmp", "wb") as file:
            file.truncate(2_500_000_000)  # sparse
        with pytest.raises(FileProblem, match=r"a\.bmp has 2500 MB; the limit is 67 MB"):
            FolderFiles(tmp_path).read("a.bmp")
