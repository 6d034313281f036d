"""Uploads in parts to disk: every part there or not, in any order, and nothing of what was given up."""

import errno
import hashlib
import io
import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from imagedb import tasks, upload_parts
from imagedb.models.uploads import Upload, UploadStatus
from imagedb.selectors.uploads import arrived_parts, open_uploads
from imagedb.services import uploads
from imagedb.upload_parts import (
    LARGEST_PART_COUNT,
    MEBIBYTE,
    StorageFull,
    UploadConflict,
    UploadRefused,
    part_size_for,
    size_of_part,
)
from tests.concurrency.threads import at_once
from tests.imagedb.sendings import PART_SIZE, begun, part, random_bytes, researcher, send, stored_bytes

CONTENT = random_bytes(2500)
GIBIBYTE = 1024 * MEBIBYTE


@pytest.fixture
def user(db):
    return researcher()


@pytest.fixture
def upload(user):
    return begun(user, CONTENT)


def path_of(upload) -> Path:
    return Path(upload.file.storage.path(upload.file.name))


def age(upload, hours, **fields):
    """Let the upload have begun, and its file last been written, that long ago."""
    then = timezone.now() - timedelta(hours=hours)
    Upload.objects.filter(pk=upload.pk).update(**dict.fromkeys(fields or ["created_at"], then))
    os.utime(path_of(upload), (then.timestamp(), then.timestamp()))


class TestPartSize:
    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            (1, 8 * MEBIBYTE),
            (50 * GIBIBYTE, 8 * MEBIBYTE),
            (LARGEST_PART_COUNT * 8 * MEBIBYTE, 8 * MEBIBYTE),
            (LARGEST_PART_COUNT * 8 * MEBIBYTE + 1, 9 * MEBIBYTE),
            (5 * 1024 * GIBIBYTE, 525 * MEBIBYTE),
        ],
    )
    def test_at_most_ten_thousand_parts_of_whole_mebibytes(self, size, expected):
        part_size = part_size_for(size, 8 * MEBIBYTE)
        assert part_size == expected
        assert -(-size // part_size) <= LARGEST_PART_COUNT

    @pytest.mark.parametrize(
        ("size", "sizes"),
        [(2500, [1000, 1000, 500]), (2000, [1000, 1000]), (1, [1]), (1000, [1000]), (1001, [1000, 1])],
    )
    def test_the_last_part_has_the_rest(self, size, sizes):
        upload = Upload(size=size, part_size=1000)
        assert [size_of_part(upload, number + 1) for number in range(len(sizes))] == sizes
        for number in (0, len(sizes) + 1):
            with pytest.raises(UploadRefused, match=f"the parts of this upload are 1 to {len(sizes)}"):
                size_of_part(upload, number)


class TestBegin:
    def test_the_stored_name_tells_nothing(self, user):
        upload = uploads.begin_upload(user, "C:\\secret\\Roofs of 2024.ZIP", 9 * MEBIBYTE)
        assert upload.filename == "Roofs of 2024.ZIP"
        assert upload.file.name.startswith("upload/")
        assert upload.file.name.endswith(".zip")
        assert "oofs" not in upload.file.name
        assert (upload.status, upload.part_size, upload.part_count) == (UploadStatus.RECEIVING, 8 * MEBIBYTE, 2)
        assert path_of(upload).stat().st_size == 0
        assert path_of(upload).stat().st_mode & 0o777 == 0o640

    @pytest.mark.parametrize(
        ("filename", "size", "field", "words"),
        [
            ("roofs.exe", 1, "filename", r"\.zip, \.csv, \.jsonl"),
            ("zip", 1, "filename", r"\.zip"),
            ("a\x00.zip", 1, "filename", r"\.zip"),
            ("a" * 252 + ".zip", 1, "filename", "longer than 255 characters"),
            ("roofs.zip", 0, "size", "empty"),
            ("roofs.zip", -1, "size", "empty"),
            ("roofs.zip", 50 * GIBIBYTE + 1, "size", "At most 50.0.GB"),
        ],
    )
    def test_what_is_refused(self, user, filename, size, field, words):
        with pytest.raises(UploadRefused, match=words) as caught:
            uploads.begin_upload(user, filename, size)
        assert caught.value.field == field
        assert not Upload.objects.exists()

    def test_the_limit_is_a_setting(self, user, settings):
        settings.MAX_UPLOAD_BYTES = 10
        uploads.begin_upload(user, "a.csv", 10)
        with pytest.raises(UploadRefused, match=r"10.bytes"):
            uploads.begin_upload(user, "a.csv", 11)

    def test_a_disk_without_room_says_so_at_once(self, user, monkeypatch):
        usage = shutil.disk_usage("/")._replace(free=999)
        monkeypatch.setattr(upload_parts.shutil, "disk_usage", lambda path: usage)
        before = set(Path(Upload().file.storage.location).rglob("*.zip"))
        with pytest.raises(UploadRefused, match="room for 999 bytes"):
            uploads.begin_upload(user, "a.zip", 1000)
        assert set(Path(Upload().file.storage.location).rglob("*.zip")) == before


class TestParts:
    def test_in_any_order_they_make_the_file(self, upload):
        send(upload, CONTENT, 3, 1, 2)
        assert [(one.number, one.size) for one in arrived_parts(upload)] == [(1, 1000), (2, 1000), (3, 500)]
        whole = uploads.complete_upload(upload)
        assert (whole.status, stored_bytes(whole)) == (UploadStatus.COMPLETE, CONTENT)
        assert whole.completed_at is not None

    def test_one_sent_again_replaces_the_one_before(self, upload):
        other = random_bytes(1000, seed=1)
        uploads.store_part(upload, 2, io.BytesIO(other))
        send(upload, CONTENT, 1, 2, 3)
        assert stored_bytes(uploads.complete_upload(upload)) == CONTENT
        assert upload.parts.get(number=2).etag == hashlib.sha256(part(CONTENT, 2)).hexdigest()
        assert upload.parts.count() == 3

    @pytest.mark.parametrize(("count", "words"), [(999, "only 999 came"), (1001, "more came"), (0, "only 0 came")])
    def test_one_of_the_wrong_length_is_refused(self, upload, count, words):
        with pytest.raises(UploadRefused, match=words) as caught:
            uploads.store_part(upload, 1, io.BytesIO(bytes(count)))
        assert caught.value.field == "body"
        assert arrived_parts(upload) == []

    def test_too_long_a_body_is_not_read_to_its_end(self, upload):
        body = io.BytesIO(bytes(10_000_000))
        with pytest.raises(UploadRefused):
            uploads.store_part(upload, 1, body)
        assert body.tell() == PART_SIZE + 1

    def test_a_wrong_digest_is_refused_and_the_part_before_stays(self, upload):
        send(upload, CONTENT, 1)
        with pytest.raises(UploadRefused, match="digest is not that of the bytes"):
            uploads.store_part(upload, 1, io.BytesIO(bytes(1000)), sha256="0" * 64)
        send(upload, CONTENT, 2, 3)
        assert stored_bytes(uploads.complete_upload(upload)) == CONTENT

    def test_a_right_digest_is_accepted(self, upload):
        content = part(CONTENT, 3)
        digest = hashlib.sha256(content).hexdigest()
        assert uploads.store_part(upload, 3, io.BytesIO(content), sha256=digest).etag == digest

    def test_a_sender_who_breaks_off_leaves_nothing(self, upload):
        class BrokenBody(io.BytesIO):
            def read(self, size=-1):
                if self.tell() > 500:
                    raise ConnectionResetError
                return super().read(min(size, 300))

        folder = path_of(upload).parent
        before = sorted(folder.iterdir())
        with pytest.raises(ConnectionResetError):
            uploads.store_part(upload, 1, BrokenBody(bytes(1000)))
        assert sorted(folder.iterdir()) == before
        assert arrived_parts(upload) == []

    def test_a_large_part_is_never_in_memory_as_a_whole(self, user):
        """The largest read is what is in memory at a time."""
        sizes = []

        class Body(io.BytesIO):
            def read(self, size=-1):
                sizes.append(size)
                return super().read(size)

        upload = uploads.begin_upload(user, "a.zip", 9 * MEBIBYTE)
        uploads.store_part(upload, 1, Body(bytes(8 * MEBIBYTE)))
        assert max(sizes) <= MEBIBYTE

    def test_writing_that_is_cut_off_leaves_no_row_that_vouches_for_a_mixture(self, upload, monkeypatch):
        send(upload, CONTENT)

        def cut_off(self, number, content):
            raise SystemExit

        monkeypatch.setattr(upload_parts.DiskParts, "write", cut_off)
        with pytest.raises(SystemExit):
            uploads.store_part(upload, 2, io.BytesIO(random_bytes(1000, seed=1)))
        assert [one.number for one in arrived_parts(upload)] == [1, 3]
        with pytest.raises(UploadConflict, match=r"Part 2 is not there yet\. Send what is missing"):
            uploads.complete_upload(upload)

    def test_a_full_disk_is_told(self, upload, monkeypatch):
        def full(self, number, content):
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(upload_parts.DiskParts, "write", full)
        with pytest.raises(StorageFull, match="disk is full"):
            send(upload, CONTENT, 1)
        assert arrived_parts(upload) == []

    def test_what_is_being_received_has_no_name(self, upload, monkeypatch):
        """So that a killed server leaves nothing to clean up."""
        made = []
        real = tempfile.TemporaryFile
        monkeypatch.setattr(
            upload_parts.tempfile, "TemporaryFile", lambda **options: made.append(options["dir"]) or real(**options)
        )
        send(upload, CONTENT, 1)
        assert made == [str(path_of(upload).parent)]

    def test_there_are_no_links_to_the_disk(self, upload):
        with pytest.raises(UploadConflict, match="come through the site"):
            uploads.part_url(upload, 1)


class TestComplete:
    def test_missing_parts_are_named(self, user):
        upload = begun(user, bytes(100), part_size=1)
        uploads.store_part(upload, 50, io.BytesIO(b"x"))
        with pytest.raises(UploadConflict, match=r"Parts 1, 2, 3.*, 20 and 79 more are not there yet"):
            uploads.complete_upload(upload)
        upload.refresh_from_db()
        assert upload.status == UploadStatus.RECEIVING

    def test_twice_is_harmless(self, upload):
        send(upload, CONTENT)
        first = uploads.complete_upload(upload)
        second = uploads.complete_upload(upload)
        assert second.completed_at == first.completed_at

    def test_afterwards_nothing_can_be_changed(self, upload):
        send(upload, CONTENT)
        whole = uploads.complete_upload(upload)
        # ``upload`` as a slow sender's request has it: from before the completion.
        upload.status = UploadStatus.RECEIVING
        for one in (upload, whole):
            with pytest.raises(UploadConflict, match="complete already"):
                uploads.store_part(one, 1, io.BytesIO(bytes(1000)))
        assert stored_bytes(whole) == CONTENT

    def test_a_file_that_was_lost_is_not_said_to_be_complete(self, upload):
        send(upload, CONTENT)
        path_of(upload).unlink()
        with pytest.raises(UploadConflict, match="has lost part of this upload"):
            uploads.complete_upload(upload)
        with pytest.raises(UploadConflict, match="has lost this upload"):
            uploads.store_part(upload, 1, io.BytesIO(random_bytes(1000, seed=1)))


class TestAbandon:
    def test_the_file_goes_after_the_commit(self, upload, django_capture_on_commit_callbacks):
        send(upload, CONTENT, 1)
        with django_capture_on_commit_callbacks(execute=True):
            uploads.abandon_upload(upload)
            assert path_of(upload).exists()
        assert not path_of(upload).exists()
        abandoned = Upload.objects.get()
        assert (abandoned.status, abandoned.file.name, abandoned.parts.count()) == (UploadStatus.ABANDONED, "", 0)
        uploads.abandon_upload(upload)
        with pytest.raises(UploadConflict, match="is abandoned"):
            send(upload, CONTENT, 1)
        with pytest.raises(UploadConflict, match="is abandoned"):
            uploads.complete_upload(abandoned)

    def test_not_once_an_import_has_it(self, user, upload):
        send(upload, CONTENT)
        uploads.complete_upload(upload)
        taken = uploads.take_upload(user, upload.public_id)
        assert taken.status == UploadStatus.USED
        with pytest.raises(UploadConflict, match="An import has this file"):
            uploads.abandon_upload(upload)
        assert uploads.complete_upload(upload).status == UploadStatus.USED
        assert stored_bytes(upload) == CONTENT


class TestTake:
    def test_only_ones_own_whole_upload_once(self, user, upload):
        with pytest.raises(UploadConflict, match=r"roofs\.zip has not arrived whole"):
            uploads.take_upload(user, upload.public_id)
        send(upload, CONTENT)
        uploads.complete_upload(upload)
        with pytest.raises(Upload.DoesNotExist):
            uploads.take_upload(researcher("other"), upload.public_id)
        uploads.take_upload(user, upload.public_id)
        with pytest.raises(UploadConflict, match="belongs to an import already"):
            uploads.take_upload(user, upload.public_id)

    def test_an_import_that_is_not_made_gives_it_back(self, user, upload):
        send(upload, CONTENT)
        uploads.complete_upload(upload)
        with transaction.atomic():
            uploads.take_upload(user, upload.public_id)
            transaction.set_rollback(True)
        upload.refresh_from_db()
        assert upload.status == UploadStatus.COMPLETE


class TestStale:
    @pytest.mark.parametrize(("hours", "is_abandoned"), [(23, False), (25, True)])
    def test_nothing_has_come_for_a_day(self, upload, hours, is_abandoned, django_capture_on_commit_callbacks):
        age(upload, hours)
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                tasks.abandon_stale_uploads()
        assert path_of(upload).exists() != is_abandoned
        upload.refresh_from_db()
        assert (upload.status == UploadStatus.ABANDONED) == is_abandoned

    def test_a_slow_upload_that_still_goes_on_stays(self, upload):
        age(upload, 100)
        send(upload, CONTENT, 1)
        assert uploads.abandon_stale_uploads() == 0

    @pytest.mark.parametrize(("hours", "count"), [(23, 0), (25, 1)])
    def test_no_import_has_taken_it_for_a_day(self, upload, hours, count):
        send(upload, CONTENT)
        uploads.complete_upload(upload)
        age(upload, hours, completed_at=True)
        assert uploads.abandon_stale_uploads() == count

    def test_what_an_import_has_stays_for_good(self, user, upload):
        send(upload, CONTENT)
        uploads.complete_upload(upload)
        uploads.take_upload(user, upload.public_id)
        age(upload, 100, created_at=True, completed_at=True)
        assert uploads.abandon_stale_uploads() == 0


def test_open_uploads_are_ones_own_that_go_on_or_wait(user, upload):
    waiting, used, abandoned = (begun(user, b"x") for _ in range(3))
    begun(researcher("other"), b"x")
    for one in (waiting, used):
        send(one, b"x")
        uploads.complete_upload(one)
    uploads.take_upload(user, used.public_id)
    uploads.abandon_upload(abandoned)
    assert set(open_uploads(user)) == {upload, waiting}


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.fixture
    def user(self):
        return User.objects.create_user("parallel")

    def test_parts_from_two_tabs_make_one_file(self, user):
        content = random_bytes(20_000)
        upload = begun(user, content)
        results = at_once([lambda n=number: send(upload, content, n) for number in [*range(1, 13), *range(1, 13)]])
        send(upload, content)
        assert [one for one in results if isinstance(one, Exception)] == []
        assert stored_bytes(uploads.complete_upload(upload)) == content
        assert upload.parts.count() == 20

    def test_completing_and_abandoning_at_once_ends_in_one_of_them(self, user):
        upload = begun(user, CONTENT)
        send(upload, CONTENT)
        path = path_of(upload)
        # Each has its own object, as each request has.
        results = at_once(
            [
                lambda: uploads.complete_upload(Upload.objects.get(pk=upload.pk)),
                lambda: uploads.complete_upload(Upload.objects.get(pk=upload.pk)),
                lambda: uploads.abandon_upload(Upload.objects.get(pk=upload.pk)),
            ]
        )
        assert not [one for one in results if isinstance(one, Exception) and not isinstance(one, UploadConflict)]
        upload.refresh_from_db()
        assert upload.status == UploadStatus.ABANDONED
        assert upload.file.name == ""
        assert not path.exists()

    def test_the_file_goes_although_its_name_was_forgotten_before(self, user):
        upload = begun(user, CONTENT)
        path = path_of(upload)
        with transaction.atomic():
            uploads.abandon_upload(upload)
            upload.refresh_from_db()
            assert upload.file.name == ""
        assert not path.exists()
