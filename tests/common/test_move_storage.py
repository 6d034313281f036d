"""``manage.py move_storage`` between two folders. Tests with a bucket are in tests/services/test_s3_moving.py."""

import logging
import os
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import CommandError, call_command

from scooter_site.common import storage_move
from scooter_site.common.file_lists import NotInOrder, batched, side_by_side
from scooter_site.common.s3_url import storage_settings
from scooter_site.common.storage import LocalStorage, StoredFile


@pytest.fixture
def old(tmp_path, settings) -> Path:
    """The present storage: a folder with three files."""
    folder = tmp_path / "old"
    settings.STORAGES = {**settings.STORAGES, **storage_settings("", folder)}
    storages["protected"].save("original/ab/a.png", ContentFile(b"A" * 100))
    storages["protected"].save("rendition/ab/b.png", ContentFile(b"B" * 200))
    storages["private"].save("upload/ab/c.zip", ContentFile(b"C" * 300))
    return folder


def move(*arguments) -> str:
    out = StringIO()
    call_command("move_storage", *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestCopying:
    def test_every_file_of_every_level(self, old, tmp_path):
        new = tmp_path / "new"
        output = move("--to-files", new)
        assert contents(new) == contents(old)
        assert set(contents(new)) == {
            "protected/original/ab/a.png",
            "protected/rendition/ab/b.png",
            "private/upload/ab/c.zip",
        }
        assert f"From the folder {old} to the folder {new}." in output
        assert "3 files copied (600\xa0bytes), 0 were there already." in output
        assert f"set MEDIA_ROOT={new} and remove S3_URL" in output

    def test_again_copies_only_what_is_new_or_other(self, old, tmp_path):
        new = tmp_path / "new"
        move("--to-files", new)
        unchanged = (new / "protected/original/ab/a.png").stat().st_mtime_ns
        (new / "protected/rendition/ab/b.png").write_bytes(b"b" * 200)  # the same size
        (new / "private/upload/ab/c.zip").write_bytes(b"C" * 299)  # cut short
        storages["private"].save("upload/ab/d.zip", ContentFile(b"D"))
        assert "3 files copied (501\xa0bytes), 1 were there already." in move("--to-files", new)
        assert contents(new) == contents(old)
        assert (new / "protected/original/ab/a.png").stat().st_mtime_ns == unchanged

    def test_nothing_is_deleted_unless_asked(self, old, tmp_path):
        before = contents(old)
        move("--to-files", tmp_path / "new")
        assert contents(old) == before
        output = move("--to-files", tmp_path / "new", "--delete-source")
        assert "3 files deleted from the present storage." in output
        assert contents(old) == {}
        assert contents(tmp_path / "new") == before

    def test_what_is_only_in_the_new_one_stays_and_is_told(self, old, tmp_path):
        new = tmp_path / "new"
        LocalStorage(new / "private").save("upload/ab/other.zip", ContentFile(b"x"))
        assert "1 files are in the new storage only" in move("--to-files", new, "--delete-source")
        assert (new / "private/upload/ab/other.zip").exists()

    def test_what_is_being_written_is_left_for_the_next_run(self, old, tmp_path):
        half = old / "private/upload/ab/.e.zip.x1.part"
        half.write_bytes(b"half")
        move("--to-files", tmp_path / "new")
        assert not list((tmp_path / "new").rglob("*.part"))

    def test_a_file_deleted_meanwhile_is_no_error(self, old, tmp_path, monkeypatch):
        listing = LocalStorage.listing

        def with_a_ghost(storage):
            yield from listing(storage)
            if storage.location == str(old / "private"):
                yield StoredFile("upload/zz/ghost.zip", 5, None)

        monkeypatch.setattr(LocalStorage, "listing", with_a_ghost)
        assert "3 files copied" in move("--to-files", tmp_path / "new")


class TestSafety:
    def test_a_copy_that_is_not_the_same_is_an_error_and_its_source_stays(self, old, tmp_path, monkeypatch, caplog):
        before = contents(old)
        save = LocalStorage._save

        def bad_disk(storage, name, content):
            if name.endswith("a.png") and "new" in storage.location:
                content = ContentFile(b"A" * 99 + b"\x00")
            return save(storage, name, content)

        monkeypatch.setattr(LocalStorage, "_save", bad_disk)
        with caplog.at_level(logging.ERROR), pytest.raises(SystemExit) as error:
            move("--to-files", tmp_path / "new", "--delete-source")
        assert error.value.code == 1
        assert "original/ab/a.png is not the same in both storages" in caplog.text
        assert contents(old) == before

    def test_nothing_is_deleted_that_differs_now(self, old, tmp_path, monkeypatch):
        copy_files = storage_move.copy_files

        def then_the_copy_is_damaged(*arguments):
            counts = copy_files(*arguments)
            (tmp_path / "new/private/upload/ab/c.zip").write_bytes(b"c" * 300)
            return counts

        monkeypatch.setattr("scooter_site.common.management.commands.move_storage.copy_files", then_the_copy_is_damaged)
        with pytest.raises(SystemExit) as error:
            move("--to-files", tmp_path / "new", "--delete-source")
        assert error.value.code == 1
        assert set(contents(old)) == {"private/upload/ab/c.zip"}

    @pytest.mark.parametrize("target", [".", "private/inside", ".."])
    def test_a_folder_in_or_around_the_present_one_is_refused(self, old, target):
        before = contents(old)
        with pytest.raises(CommandError, match="in the present storage, or holds it") as error:
            move("--to-files", old / "protected" / target, "--delete-source")
        assert error.value.returncode == 2
        assert contents(old) == before

    def test_the_present_one_by_another_name_is_refused(self, old, tmp_path):
        before = contents(old)
        os.symlink(old, tmp_path / "link")
        with pytest.raises(CommandError, match="in the present storage"):
            move("--to-files", tmp_path / "link", "--delete-source")
        assert contents(old) == before

    @pytest.mark.parametrize(
        ("address", "words"),
        [
            ("https://key:hush@host/bucket", "region is missing"),
            ("NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is neither an address nor"),
        ],
    )
    def test_an_address_that_is_none(self, old, address, words):
        with pytest.raises(CommandError, match=words) as error:
            move("--to", address)
        assert error.value.returncode == 2
        assert "hush" not in str(error.value)

    def test_a_disk_that_is_full_stops_it(self, old, tmp_path, monkeypatch):
        def full(storage, name, content):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(LocalStorage, "_save", full)
        with pytest.raises(CommandError, match=re.escape("No space left on device\nRun it again to go on.")) as error:
            move("--to-files", tmp_path / "new")
        assert error.value.returncode == 2


class TestLists:
    def test_side_by_side(self):
        def files(names):
            return [StoredFile(name, 1, None) for name in names]

        pairs = side_by_side(files("acd"), files("bcef"))
        assert ["".join(file.name if file else "-" for file in pair) for pair in pairs] == [
            "a-",
            "-b",
            "cc",
            "d-",
            "-e",
            "-f",
        ]
        assert list(side_by_side([], [])) == []
        with pytest.raises(NotInOrder, match="b came before a"):
            list(side_by_side(files("ba"), files("")))

    def test_batches(self):
        assert list(batched(range(5), 2)) == [[0, 1], [2, 3], [4]]
        assert list(batched([], 2)) == []
