"""``manage.py verify_storage`` on local files: finds every fault, mends what can be mended, says so by its status."""

import hashlib
import json
import os
import shutil
import time
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from imagedb.models import Image, Upload, UploadStatus
from imagedb.services import storage_check
from scooter_site.common.storage import LocalStorage
from tests import factories
from tests.imagedb.stored_images import image

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_storage():
    """The storages are shared by all tests of a run; here they hold nothing else."""
    for level in ("public", "protected", "private"):
        shutil.rmtree(storages[level].location, ignore_errors=True)
        Path(storages[level].location).mkdir(parents=True)


def extra(name: str = "original/ab/extra.png", level: str = "protected", hours: float = 2) -> Path:
    """A file that no row has, written some hours ago."""
    path = Path(storages[level].path(storages[level].save(name, ContentFile(b"left behind"))))
    os.utime(path, (time.time() - 3600 * hours,) * 2)
    return path


def verify(*arguments: str) -> tuple[int, list[dict], dict]:
    """Exit status, findings and totals of the command."""
    out, status = StringIO(), 0
    try:
        call_command("verify_storage", "--json", *arguments, stdout=out)
    except SystemExit as error:
        status = error.code
    *findings, totals = map(json.loads, out.getvalue().splitlines())
    return status, findings, totals


def problems(findings: list[dict]) -> list[tuple[str, str]]:
    return [(finding["problem"], finding["name"]) for finding in findings]


def content(file) -> bytes:
    with file.storage.open(file.name) as opened:
        return opened.read()


def damage(file, new: bytes) -> None:
    Path(file.path).write_bytes(new)


class TestFinding:
    def test_nothing_wrong(self):
        image(1), image(2)
        for arguments in ((), ("--digests",), ("--repair", "--digests")):
            status, findings, totals = verify(*arguments)
            assert (status, findings) == (0, [])
            assert (totals["known"], totals["stored"], totals["found"], totals["left"]) == (6, 6, {}, {})

    def test_an_empty_site(self):
        assert verify()[:2] == (0, [])

    def test_missing(self):
        made, _ = image(1), image(2)
        made.rendition.storage.delete(made.rendition.name)
        status, (finding,), totals = verify()
        assert status == 1
        assert finding == {
            "problem": "missing",
            "level": "protected",
            "name": made.rendition.name,
            "rows": [f"image.rendition {made.pk}"],
            "detail": "",
            "is_repaired": False,
            "outcome": "",
        }
        assert totals == {
            "known": 6,
            "stored": 5,
            "too_new_to_judge": 0,
            "found": {"missing": 1},
            "left": {"missing": 1},
        }

    def test_extra_in_every_level(self):
        for level in ("public", "protected", "private"):
            extra(level=level)
        status, findings, _ = verify()
        assert status == 1
        assert [(found["problem"], found["level"]) for found in findings] == [
            ("extra", "public"),
            ("extra", "protected"),
            ("extra", "private"),
        ]

    def test_what_an_import_has_just_written_is_not_extra(self):
        extra(hours=0.9)
        assert verify("--repair")[:2] == (0, [])
        assert verify()[2]["too_new_to_judge"] == 1
        extra("original/ab/older.png", hours=1.1)
        assert verify()[0] == 1

    def test_wrong_size(self):
        made = image()
        damage(made.original, content(made.original)[:-1])
        damage(made.thumbnail, b"")
        status, findings, _ = verify()
        assert status == 1
        assert problems(findings) == [("wrong size", made.original.name), ("wrong size", made.thumbnail.name)]
        assert findings[0]["detail"] == f"{made.original_bytes - 1:,} bytes instead of {made.original_bytes:,}"
        assert findings[1]["detail"] == "it is empty"

    def test_wrong_digest_only_when_asked(self):
        made = image()
        flipped = content(made.original)[:-1] + b"\x00"
        damage(made.original, flipped)
        assert verify()[0] == 0
        status, (finding,), _ = verify("--digests")
        assert (status, finding["problem"], finding["name"]) == (1, "wrong digest", made.original.name)
        assert hashlib.sha256(flipped).hexdigest() in finding["detail"]

    def test_a_picture_without_a_digest_is_decoded(self):
        made = image()
        damage(made.thumbnail, content(made.thumbnail)[:500])
        assert verify()[0] == 0
        status, (finding,), _ = verify("--digests")
        assert (status, finding["problem"], finding["name"]) == (1, "unreadable", made.thumbnail.name)

    def test_files_of_other_apps_too(self):
        study = factories.ready_study()
        plate = study.stimuli.first().file
        plate.storage.delete(plate.name)
        assert problems(verify()[1]) == [("missing", plate.name)]

    def test_an_upload_need_not_be_there_before_it_is_complete(self):
        user = get_user_model().objects.create(username="sender")
        values = {"filename": "a.zip", "size": 7, "part_size": 7, "created_by": user}
        Upload.objects.create(status=UploadStatus.RECEIVING, file="upload/ab/1.zip", **values)
        assert verify()[0] == 0
        complete = Upload.objects.create(status=UploadStatus.COMPLETE, file="upload/ab/2.zip", **values)
        assert problems(verify()[1]) == [("missing", complete.file.name)]
        # What has arrived of it so far is no extra file, however old.
        extra("upload/ab/1.zip", "private")
        extra("upload/ab/2.zip", "private")
        assert problems(verify()[1]) == [("wrong size", complete.file.name)]

    def test_a_row_deleted_meanwhile_has_nothing_missing(self, monkeypatch):
        made = image()
        listing = LocalStorage.listing

        def listing_while_somebody_deletes(storage):
            Image.objects.all().delete()
            for file in (made.original, made.rendition, made.thumbnail):
                file.storage.delete(file.name)
            return listing(storage)

        monkeypatch.setattr(LocalStorage, "listing", listing_while_somebody_deletes)
        assert verify()[:2] == (0, [])

    def test_many_files_in_batches(self, monkeypatch):
        monkeypatch.setattr(storage_check, "BATCH", 4)
        images = [image(seed) for seed in range(5)]
        for made in images:
            made.thumbnail.storage.delete(made.thumbnail.name)
        for number in range(9):
            extra(f"original/ab/{number}.png")
        status, findings, totals = verify()
        assert status == 1
        assert totals["found"] == {"missing": 5, "extra": 9}
        assert [name for problem, name in problems(findings) if problem == "missing"] == sorted(
            made.thumbnail.name for made in images
        )
        status, findings, totals = verify("--repair")
        assert (status, totals["left"], len(findings)) == (0, {}, 14)


class TestRepairing:
    def test_rendition_and_thumbnail_from_the_original(self):
        made = image()
        before = content(made.rendition), content(made.thumbnail)
        made.rendition.storage.delete(made.rendition.name)
        damage(made.thumbnail, b"")
        status, findings, totals = verify("--repair")
        assert (status, totals["left"]) == (0, {})
        assert [finding["outcome"] for finding in findings] == ["made again from the original"] * 2
        assert (content(made.rendition), content(made.thumbnail)) == before
        assert verify("--digests")[:2] == (0, [])

    def test_a_damaged_rendition(self):
        made = image()
        before = content(made.rendition)
        damage(made.rendition, before[:-1] + b"\x00")
        assert verify("--repair", "--digests")[0] == 0
        assert content(made.rendition) == before

    def test_never_a_rendition_with_another_digest(self):
        made = image()
        Image.objects.filter(pk=made.pk).update(rendition_sha256="0" * 64)
        made.rendition.storage.delete(made.rendition.name)
        status, (finding,), _ = verify("--repair")
        assert (status, finding["is_repaired"]) == (1, False)
        assert "has another digest" in finding["outcome"]
        assert not made.rendition.storage.exists(made.rendition.name)

    def test_nothing_is_made_from_a_damaged_original(self):
        made = image()
        damage(made.original, factories.png_bytes(99))
        made.thumbnail.storage.delete(made.thumbnail.name)
        status, findings, _ = verify("--repair")
        assert status == 1
        assert [(finding["problem"], finding["is_repaired"]) for finding in findings] == [
            ("wrong size", False),
            ("missing", False),
        ]
        assert made.original_sha256 in findings[0]["outcome"]
        assert "put its original back" in findings[1]["outcome"]

    def test_an_original_from_another_groups_copy(self):
        made, twin = image(1), image(2)
        before = content(made.original)
        twin.original.save("twin.png", ContentFile(before), save=False)
        Image.objects.filter(pk=twin.pk).update(
            original=twin.original.name,
            original_sha256=made.original_sha256,
            original_bytes=made.original_bytes,
            kind="modified",
            source=made,
            attack=factories.attack(),
        )
        made.original.storage.delete(made.original.name)
        made.thumbnail.storage.delete(made.thumbnail.name)
        _, findings, _ = verify("--repair")
        outcomes = {finding["name"]: finding["outcome"] for finding in findings if finding["problem"] == "missing"}
        assert outcomes == {
            made.original.name: "made again from an identical image",
            made.thumbnail.name: "made again from the original",
        }
        assert content(made.original) == before

    def test_extras_are_deleted(self):
        paths = [extra(), extra("import/ab/old.zip", "private"), extra("original/ab/.x.png.abc.part")]
        status, findings, _ = verify("--repair")
        assert (status, {finding["outcome"] for finding in findings}) == (0, {"deleted"})
        assert not any(path.exists() for path in paths)

    def test_not_when_they_are_suspiciously_many(self, monkeypatch):
        monkeypatch.setattr(storage_check, "MANY_EXTRA", 3)
        paths = [extra(f"original/ab/{number}.png") for number in range(4)]
        status, findings, totals = verify("--repair")
        assert (status, totals["left"]) == (1, {"extra": 4})
        assert {finding["outcome"] for finding in findings} == {"not deleted: too many files are extra"}
        assert all(path.exists() for path in paths)
        assert verify("--repair", "--delete-many")[0] == 0
        assert not any(path.exists() for path in paths)

    def test_not_what_was_written_again_since(self, monkeypatch):
        path = extra()
        confirmed = storage_check._confirmed

        def confirmed_then_written_again(*arguments):
            yield from confirmed(*arguments)
            os.utime(path)

        monkeypatch.setattr(storage_check, "_confirmed", confirmed_then_written_again)
        verify("--repair")
        assert path.exists()


class TestRunning:
    def test_people_get_lines_and_what_to_do(self):
        made = image()
        made.original.storage.delete(made.original.name)
        extra()
        out = StringIO()
        with pytest.raises(SystemExit) as exit_:
            call_command("verify_storage", stdout=out)
        assert exit_.value.code == 1
        text = out.getvalue()
        assert f"missing              protected/{made.original.name}  image.original {made.pk}" in text
        assert "3 files known to the database, 3 in the folder" in text
        assert "missing: 1. --repair makes renditions and thumbnails again. Put the others back from a backup." in text
        assert "extra: 1. No row has these files; --repair deletes them." in text

    def test_a_long_list_is_cut(self):
        for number in range(55):
            extra(f"original/ab/{number:02}.png")
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("verify_storage", stdout=out)
        lines = [line for line in out.getvalue().splitlines() if line.startswith("extra ")]
        assert len(lines) == 51
        assert lines[-1].endswith("... and more; --json lists all")

    def test_a_disk_that_is_not_mounted_is_no_finding(self):
        image()
        shutil.rmtree(storages["protected"].location)
        with pytest.raises(CommandError, match="Is the disk mounted") as error:
            call_command("verify_storage")
        assert error.value.returncode == 2

    @pytest.mark.parametrize("failure", [OSError("no answer"), DatabaseError("no answer")])
    def test_what_does_not_answer_is_no_finding(self, monkeypatch, failure):
        def listing(storage):
            raise failure
            yield

        monkeypatch.setattr(LocalStorage, "listing", listing)
        with pytest.raises(CommandError, match="Could not compare: no answer") as error:
            call_command("verify_storage")
        assert error.value.returncode == 2

    def test_names_in_another_order_are_refused(self, monkeypatch):
        listing = LocalStorage.listing
        monkeypatch.setattr(LocalStorage, "listing", lambda storage: reversed(list(listing(storage))))
        image()
        with pytest.raises(CommandError, match="not listed in the order of their bytes"):
            call_command("verify_storage")

    def test_memory_does_not_grow_with_the_number_of_files(self, monkeypatch):
        """What is kept of a million files is what is kept of a batch."""
        monkeypatch.setattr(storage_check, "BATCH", 10)
        alive: list[int] = []

        class Known:
            count = 0

            def __init__(self, number):
                self.name, self.owners = f"{number:08}", ()
                Known.count += 1
                alive.append(Known.count)

            def __del__(self):
                Known.count -= 1

        monkeypatch.setattr(storage_check, "known_files", lambda level: map(Known, range(1000)))
        assert verify()[2]["known"] == 3000
        assert len(alive) == 3000
        assert max(alive) < 50
