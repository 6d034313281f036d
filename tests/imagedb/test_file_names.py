"""Which file a name in a manifest means, and which file is the manifest."""

import pytest

from imagedb.image_files import FileFinder, FileProblem, NoSuchFile, find_manifest


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
            (["manifest.jsonl", "notes.csv"], "manifest.jsonl"),
            (["a.png", "set/Images.JSONL"], "set/Images.JSONL"),
        ],
    )
    def test_found(self, names, chosen):
        assert find_manifest(names) == chosen

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["a.png"], "has no manifest"),
            (["one.csv", "two.csv"], "several manifests: one.csv, two.csv"),
            (["one.csv", "two.jsonl"], "several manifests: one.csv, two.jsonl"),
            (["a/manifest.csv", "b/manifest.csv"], "several manifests"),
            (["manifest.csv", "manifest.jsonl"], "several manifests"),
            ([f"{number}.csv" for number in range(11)], r"9\.csv and 1 more\. Keep"),
        ],
    )
    def test_none_or_several(self, names, words):
        with pytest.raises(FileProblem, match=words):
            find_manifest(names)

    def test_says_what_lacks_it(self):
        with pytest.raises(FileProblem, match="The prefix has no manifest"):
            find_manifest(["a.png"], "prefix")
