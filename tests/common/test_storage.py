"""Where files go, and what they are called and said to be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from scooter_site.common.storage import LocalStorage, content_type, opaque_name

PROJECT = Path(__file__).resolve().parent.parent.parent


class TestNames:
    @pytest.mark.parametrize(
        ("uploaded", "ending"),
        [("a.PNG", ".png"), ("../../etc/passwd", ".bin"), ("a.html", ".bin"), ("a.svg", ".bin"), ("a.jpg.php", ".bin")],
    )
    def test_nothing_is_left_of_an_uploaded_name_but_a_safe_ending(self, uploaded, ending):
        name = opaque_name("original")(None, uploaded)
        folder, first_two, token = name.removesuffix(ending).split("/")
        assert (folder, first_two) == ("original", token[:2])
        assert len(token) == 32
        assert set(token) <= set("0123456789abcdef")

    def test_names_differ(self):
        assert len({opaque_name("x")(None, "a.png") for _ in range(100)}) == 100

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("x/a.png", "image/png"),
            ("x/a.jpg", "image/jpeg"),
            ("x/a.webp", "image/webp"),
            ("x/a.html", "application/octet-stream"),
            ("x/a", "application/octet-stream"),
        ],
    )
    def test_content_type(self, name, expected):
        assert content_type(name) == expected


class TestLocalFiles:
    """The files of one level in a folder of its own."""

    @pytest.fixture
    def storage(self, tmp_path) -> LocalStorage:
        return LocalStorage(tmp_path / "protected")

    def test_writing_again_writes_over(self, storage):
        for content in (b"first and longer", b"second"):
            assert storage.save("original/ab/a.png", ContentFile(content)) == "original/ab/a.png"
        with storage.open("original/ab/a.png") as file:
            assert file.read() == b"second"
        assert [file.name for file in storage.listing()] == ["original/ab/a.png"]

    def test_a_reader_of_the_old_content_is_not_disturbed(self, storage):
        storage.save("a.png", ContentFile(b"old"))
        with storage.open("a.png") as reader:
            storage.save("a.png", ContentFile(b"new"))
            assert reader.read() == b"old"

    def test_writing_that_fails_leaves_what_was_there_and_nothing_else(self, storage):
        storage.save("a.png", ContentFile(b"old"))

        class Torn(ContentFile):
            def chunks(self, chunk_size=None):
                yield b"half"
                raise OSError("the sender is gone")

        for name in ("a.png", "new.png"):
            with pytest.raises(OSError, match="the sender is gone"):
                storage.save(name, Torn(b""))
        assert [(file.name, file.size) for file in storage.listing()] == [("a.png", 3)]

    def test_readable_for_the_group_only(self, storage):
        storage.save("a.png", ContentFile(b"x"))
        assert os.stat(storage.path("a.png")).st_mode & 0o777 == 0o640

    def test_bytes_are_on_the_disk_before_the_name_is(self, storage, monkeypatch):
        order = []
        fsync, replace = os.fsync, os.replace
        monkeypatch.setattr(
            os, "fsync", lambda handle: (order.append(f"fsync {os.fstat(handle).st_size}"), fsync(handle))
        )
        monkeypatch.setattr(os, "replace", lambda old, new: (order.append("rename"), replace(old, new)))
        storage.save("a.png", ContentFile(b"12345"))
        assert order == ["fsync 5", "rename"]

    def test_listed_in_the_order_of_bytes_as_s3_lists(self, storage):
        names = ["a.png", "a/b.png", "a/b/c.png", "a0", "B", "a/é.png", "a/z.png"]
        for name in names:
            storage.save(name, ContentFile(b"x" * len(name)))
        listed = list(storage.listing())
        assert [file.name for file in listed] == sorted(names, key=str.encode)
        assert all(file.size == len(file.name) for file in listed)
        assert all(abs((timezone.now() - file.modified_at).total_seconds()) < 60 for file in listed)

    def test_nothing_stored_yet(self, storage):
        assert list(storage.listing()) == []
        with pytest.raises(FileNotFoundError):
            storage.describe("a.png")


def test_boto3_is_not_imported_without_a_bucket():
    """It takes about a tenth of a second, at every start of a process and of every command."""
    code = "import sys, django; django.setup(); import scooter_site.urls; print('boto3' in sys.modules)"
    results = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=PROJECT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "scooter_site.settings", "S3_URL": s3_url},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for s3_url in ("", "https://key:secret@files.example.org/bucket?region=x")
    ]
    assert results == ["False", "True"]


def test_what_a_bucket_cannot_do_now_is_tried_again():
    code = "import django; django.setup(); from scooter_site.common.tasks import RETRYABLE; print(RETRYABLE)"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "scooter_site.settings",
        "S3_URL": "https://key:secret@files.example.org/bucket?region=x",
    }
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "botocore.exceptions.ConnectionError" in output
    assert "botocore.exceptions.HTTPClientError" in output
