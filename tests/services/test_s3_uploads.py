"""Uploads straight to a real S3-compatible server: the same bytes, nothing left of what is given up."""

import hashlib
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from imagedb.bucket_parts import BucketParts, abort_forgotten, latest_parts
from imagedb.models.uploads import Upload, UploadStatus
from imagedb.selectors.uploads import arrived_parts
from imagedb.services import uploads
from imagedb.upload_parts import UploadConflict, UploadRefused
from scooter_site.common.object_storage import ObjectStorage
from scooter_site.common.s3_url import parse_s3_url
from scooter_site.common.storage import LINK_SECONDS
from tests.concurrency.threads import at_once
from tests.imagedb.sendings import begun, part, random_bytes, researcher, stored_bytes
from tests.services.s3 import BUCKET, client, s3_url

pytestmark = [pytest.mark.services, pytest.mark.django_db]

PART_SIZE = 5 * 1024 * 1024  # S3 takes no smaller ones
CONTENT = random_bytes(2 * PART_SIZE + 1000)


def private_storage(address: str, **options: str) -> ObjectStorage:
    return ObjectStorage(level="private", **asdict(parse_s3_url(s3_url(address, **options))))


@pytest.fixture
def bucket(s3_address, monkeypatch):
    storage = private_storage(s3_address)
    monkeypatch.setattr(Upload._meta.get_field("file"), "storage", storage)
    return storage


@pytest.fixture
def upload(bucket):
    return begun(researcher(), CONTENT, part_size=PART_SIZE)


def put(upload, *numbers, content=CONTENT):
    for number in numbers:
        answer = httpx.put(uploads.part_url(upload, number), content=part(content, number, PART_SIZE))
        assert answer.status_code == 200, answer.text


def going_on(s3_address) -> list[str]:
    found = client(s3_address).list_multipart_uploads(Bucket=BUCKET, Prefix="private/upload/")
    return [one["UploadId"] for one in found.get("Uploads", [])]


def stored_keys(upload, s3_address) -> list[str]:
    found = client(s3_address).list_objects_v2(Bucket=BUCKET, Prefix=f"private/{upload.file.name}")
    return [one["Key"] for one in found.get("Contents", [])]


class TestWholeWay:
    def test_three_parts_one_of_them_twice_make_the_same_bytes(self, upload, s3_address):
        assert upload.part_count == 3
        put(upload, 3, 1)
        put(upload, 2, content=random_bytes(len(CONTENT), seed=1))
        time.sleep(1.1)  # this server's times are in whole seconds
        put(upload, 2)
        assert [(one.number, one.size) for one in arrived_parts(upload)] == [(1, PART_SIZE), (2, PART_SIZE), (3, 1000)]
        whole = uploads.complete_upload(upload)
        assert whole.status == UploadStatus.COMPLETE
        assert hashlib.sha256(stored_bytes(whole)).digest() == hashlib.sha256(CONTENT).digest()
        assert [one.number for one in arrived_parts(whole)] == [1, 2, 3]
        assert all(one.etag for one in arrived_parts(whole))
        head = client(s3_address).head_object(Bucket=BUCKET, Key=f"private/{upload.file.name}")
        assert (head["ContentType"], head["ContentLength"]) == ("application/zip", len(CONTENT))
        assert uploads.complete_upload(upload).completed_at == whole.completed_at
        assert upload.s3_upload_id not in going_on(s3_address)

    @pytest.mark.parametrize("mode", ["when_required", "when_supported"])
    def test_with_either_mode_of_checksums(self, s3_address, monkeypatch, mode):
        monkeypatch.setattr(Upload._meta.get_field("file"), "storage", private_storage(s3_address, checksum_mode=mode))
        upload = begun(researcher(), b"column\n1\n", "manifest.csv")
        put(upload, 1, content=b"column\n1\n")
        assert stored_bytes(uploads.complete_upload(upload)) == b"column\n1\n"

    def test_a_usual_part_is_large_enough_for_s3(self, bucket):
        assert uploads.begin_upload(researcher(), "a.zip", 10**10).part_size == 16 * 1024 * 1024


class TestLinks:
    def test_a_link_is_for_its_part_and_length_only(self, upload):
        link = uploads.part_url(upload, 3)
        assert f"X-Amz-Expires={LINK_SECONDS}" in link
        assert httpx.put(link, content=bytes(1001)).status_code == 403
        assert httpx.put(link.replace("partNumber=3", "partNumber=2"), content=bytes(1000)).status_code == 403
        assert httpx.put(link, content=bytes(1000)).status_code == 200

    def test_it_names_the_host_that_browsers_reach(self, s3_address, monkeypatch):
        public = s3_address.replace("127.0.0.1", "localhost")
        storage = private_storage(s3_address, public_endpoint=public)
        monkeypatch.setattr(Upload._meta.get_field("file"), "storage", storage)
        upload = begun(researcher(), b"x")
        assert uploads.part_url(upload, 1).startswith(f"{public}/{BUCKET}/private/upload/")
        assert storage.origin == public
        put(upload, 1, content=b"x")

    def test_there_are_none_for_parts_that_there_are_not(self, upload):
        with pytest.raises(UploadRefused, match="the parts of this upload are 1 to 3"):
            uploads.part_url(upload, 4)

    def test_parts_do_not_come_through_the_site(self, upload):
        with pytest.raises(UploadConflict, match="straight to the bucket"):
            uploads.store_part(upload, 1, None)


class TestListing:
    """SeaweedFS lists what was replaced too."""

    @staticmethod
    def entry(number, etag, second):
        return {
            "PartNumber": number,
            "Size": 1,
            "ETag": etag,
            "LastModified": datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC),
        }

    def test_the_last_one_counts(self):
        listed = [self.entry(2, "new", 5), self.entry(2, "old", 4), self.entry(1, "a", 9), self.entry(2, "older", 3)]
        assert [(one.number, one.etag) for one in latest_parts(listed)] == [(1, "a"), (2, "new")]
        assert latest_parts(reversed(listed)) == latest_parts(listed)

    def test_one_of_which_the_last_is_unknown_is_to_be_sent_again(self):
        listed = [self.entry(1, "a", 5), self.entry(1, "b", 5), self.entry(2, "c", 5), self.entry(2, "c", 5)]
        assert [one.number for one in latest_parts(listed)] == [2]


class TestComplete:
    def test_a_missing_part_is_named_and_the_upload_goes_on(self, upload):
        put(upload, 1, 3)
        with pytest.raises(UploadConflict, match="Part 2 is not there yet"):
            uploads.complete_upload(upload)
        put(upload, 2)
        assert uploads.complete_upload(upload).status == UploadStatus.COMPLETE

    def test_a_part_of_another_length_is_named(self, upload, s3_address):
        put(upload, 1, 2)
        client(s3_address).upload_part(
            Bucket=BUCKET,
            Key=f"private/{upload.file.name}",
            UploadId=upload.s3_upload_id,
            PartNumber=3,
            Body=bytes(999),
        )
        with pytest.raises(UploadConflict, match="Part 3 is not as long as announced"):
            uploads.complete_upload(upload)

    def test_cut_off_after_the_bucket_has_put_it_together(self, upload):
        put(upload, 1, 2, 3)
        BucketParts(upload, upload.file.storage).finish()
        # The database has not heard of it: asking again finds the object whole.
        assert len(arrived_parts(upload)) == 3
        assert uploads.complete_upload(upload).status == UploadStatus.COMPLETE
        assert stored_bytes(upload) == CONTENT

    def test_an_upload_that_the_bucket_has_given_up(self, upload, s3_address):
        put(upload, 1)
        client(s3_address).abort_multipart_upload(
            Bucket=BUCKET, Key=f"private/{upload.file.name}", UploadId=upload.s3_upload_id
        )
        assert arrived_parts(upload) == []
        with pytest.raises(UploadConflict, match="Parts 1, 2, 3 are not there yet"):
            uploads.complete_upload(upload)


@pytest.mark.django_db(transaction=True)
def test_completing_twice_at_the_same_moment(bucket):
    upload = begun(User.objects.create_user("parallel"), CONTENT, part_size=PART_SIZE)
    put(upload, 1, 2, 3)
    results = at_once([lambda: uploads.complete_upload(Upload.objects.get())] * 2)
    assert [one.status for one in results] == [UploadStatus.COMPLETE] * 2
    assert stored_bytes(upload) == CONTENT
    assert upload.parts.count() == 3


class TestAbandon:
    def test_nothing_is_left_of_it(self, upload, s3_address, django_capture_on_commit_callbacks):
        put(upload, 1, 2)
        assert upload.s3_upload_id in going_on(s3_address)
        link = uploads.part_url(upload, 3)
        with django_capture_on_commit_callbacks(execute=True):
            uploads.abandon_upload(upload)
        assert upload.s3_upload_id not in going_on(s3_address)
        assert stored_keys(upload, s3_address) == []
        assert httpx.put(link, content=part(CONTENT, 3, PART_SIZE)).status_code == 404

    def test_a_whole_one_too(self, upload, s3_address, django_capture_on_commit_callbacks):
        put(upload, 1, 2, 3)
        uploads.complete_upload(upload)
        assert stored_keys(upload, s3_address)
        with django_capture_on_commit_callbacks(execute=True):
            uploads.abandon_upload(upload)
        assert stored_keys(upload, s3_address) == []

    def test_what_stands_still_for_a_day(self, upload, s3_address, monkeypatch, django_capture_on_commit_callbacks):
        put(upload, 1)
        Upload.objects.update(created_at=timezone.now() - timedelta(days=3))
        assert uploads.abandon_stale_uploads() == 0  # a part has just come
        now = timezone.now()
        monkeypatch.setattr(uploads.timezone, "now", lambda: now + timedelta(hours=25))
        with django_capture_on_commit_callbacks(execute=True):
            assert uploads.abandon_stale_uploads() == 1
        assert upload.s3_upload_id not in going_on(s3_address)

    def test_multipart_uploads_that_no_row_knows(self, upload, bucket, s3_address):
        s3 = client(s3_address)
        forgotten = s3.create_multipart_upload(Bucket=BUCKET, Key="private/upload/aa/forgotten.zip")["UploadId"]
        others = s3.create_multipart_upload(Bucket=BUCKET, Key="private/original/a.zip")
        now = timezone.now()
        assert abort_forgotten(bucket, "upload", {upload.s3_upload_id}, now - timedelta(hours=1)) == 0
        assert abort_forgotten(bucket, "upload", {upload.s3_upload_id}, now + timedelta(hours=1)) >= 1
        assert forgotten not in going_on(s3_address)
        assert going_on(s3_address) == [upload.s3_upload_id]
        s3.list_parts(Bucket=BUCKET, Key=others["Key"], UploadId=others["UploadId"])  # still there


def test_over_the_api(upload, client, s3_address):
    client.force_login(upload.created_by)
    address = f"/api/v1/uploads/{upload.public_id}/"
    assert client.get(address).json()["is_direct"] is True
    links = client.post(f"{address}parts/", {"numbers": [1, 2, 3]}, "application/json").json()["links"]
    for link in links:
        assert link["expires_at"]
        assert httpx.put(link["url"], content=part(CONTENT, link["number"], PART_SIZE)).status_code == 200
    whole = client.post(f"{address}complete/").json()
    assert (whole["status"], len(whole["parts"])) == ("complete", 3)


def test_a_bucket_that_is_away_is_told(client, monkeypatch):
    monkeypatch.setattr(Upload._meta.get_field("file"), "storage", private_storage("http://127.0.0.1:9"))
    client.force_login(researcher())
    answer = client.post("/api/v1/uploads/", {"filename": "a.zip", "size": 1}, "application/json")
    assert answer.status_code == 503
    assert "Try again in a minute" in answer.json()["detail"]
    assert not Upload.objects.exists()
