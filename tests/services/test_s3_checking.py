"""verify_storage, deletion and repair with the files of all models in a real bucket."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.db import transaction

from imagedb.models import Image
from imagedb.services import storage_check
from tests import factories
from tests.imagedb.stored_images import image
from tests.services.s3 import files_in_bucket

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def bucket(s3_address, settings, request):
    """A plain client of a bucket that holds the files of this test only."""
    name = f"checking-{abs(hash(request.node.name))}"
    with files_in_bucket(s3_address, name, settings) as client:
        yield Bucket(client, name)


class Bucket:
    """The bucket as somebody else sees it."""

    def __init__(self, client, name: str) -> None:
        self.client, self.name = client, name

    def keys(self) -> set[str]:
        return {entry["Key"] for entry in self.client.list_objects_v2(Bucket=self.name).get("Contents", ())}

    def get(self, key: str) -> tuple[bytes, str]:
        answer = self.client.get_object(Bucket=self.name, Key=key)
        return answer["Body"].read(), answer["ContentType"]

    def put(self, key: str, content: bytes, content_type: str = "image/png") -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=content, ContentType=content_type)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)


def verify(*arguments: str) -> tuple[int, list[dict], dict]:
    out, status = StringIO(), 0
    try:
        call_command("verify_storage", "--json", *arguments, stdout=out)
    except SystemExit as error:
        status = error.code
    *findings, totals = map(json.loads, out.getvalue().splitlines())
    return status, findings, totals


def key(file) -> str:
    return f"protected/{file.name}"


def test_every_fault_is_found_and_what_can_be_is_repaired(bucket, monkeypatch):
    # Objects cannot be made older than they are.
    monkeypatch.setattr(storage_check, "EXTRA_AFTER", timedelta(0))
    images = [image(seed) for seed in range(4)]
    untouched = bucket.keys()
    assert len(untouched) == 12
    assert verify("--digests")[:2] == (0, [])
    before = {name: bucket.get(name) for name in untouched}

    bucket.delete(key(images[0].rendition))
    bucket.put(key(images[0].thumbnail), before[key(images[0].thumbnail)][0], "text/html")
    bucket.put(key(images[1].rendition), before[key(images[1].rendition)][0][:-100])
    flipped = before[key(images[2].rendition)][0][:-1] + b"\x00"
    bucket.put(key(images[2].rendition), flipped)
    bucket.put(key(images[3].original), b"not the image")
    bucket.put("protected/original/ab/nobody.png", b"x")
    bucket.put("private/upload/ab/nobody.zip", b"x", "application/zip")
    planted = {
        (key(images[0].rendition), "missing"),
        (key(images[0].thumbnail), "wrong content type"),
        (key(images[1].rendition), "wrong size"),
        (key(images[2].rendition), "wrong digest"),
        (key(images[3].original), "wrong size"),
        ("protected/original/ab/nobody.png", "extra"),
        ("private/upload/ab/nobody.zip", "extra"),
    }

    def found(findings):
        return {(f"{finding['level']}/{finding['name']}", finding["problem"]) for finding in findings}

    status, findings, totals = verify("--digests")
    assert (status, found(findings)) == (1, planted)
    assert (totals["known"], totals["stored"]) == (12, 13)
    # Without reading, a digest is not known to be wrong.
    assert found(verify()[1]) == planted - {(key(images[2].rendition), "wrong digest")}

    status, findings, totals = verify("--digests", "--repair")
    assert (status, totals["left"]) == (1, {"wrong size": 1})
    (left,) = [finding for finding in findings if not finding["is_repaired"]]
    assert left["name"] == images[3].original.name
    assert images[3].original_sha256 in left["outcome"]
    assert bucket.keys() == untouched
    mended = untouched - {key(images[3].original)}
    assert {name: bucket.get(name) for name in mended} == {name: before[name] for name in mended}

    bucket.put(key(images[3].original), before[key(images[3].original)][0])
    assert verify("--digests")[:2] == (0, [])


def test_new_objects_without_a_row_are_left_alone(bucket):
    bucket.put("protected/original/ab/new.png", b"x")
    status, findings, totals = verify("--repair")
    assert (status, findings, totals["too_new_to_judge"]) == (0, [], 1)
    assert bucket.keys() == {"protected/original/ab/new.png"}


def test_what_others_keep_in_the_bucket_is_not_ours(bucket, monkeypatch):
    monkeypatch.setattr(storage_check, "EXTRA_AFTER", timedelta(0))
    for name in ("incoming/a.png", "protectedly/a.png", "top.txt"):
        bucket.put(name, b"x")
    assert verify("--repair")[:2] == (0, [])
    assert bucket.keys() == {"incoming/a.png", "protectedly/a.png", "top.txt"}


def test_a_service_that_is_away_is_no_finding(bucket, monkeypatch):
    factories.clean_image()
    protected = storages["protected"]
    monkeypatch.setattr(protected, "endpoint_url", "http://127.0.0.1:9")
    protected._connections.connection = None
    with pytest.raises(CommandError, match="Could not compare: Could not connect") as error:
        call_command("verify_storage")
    assert error.value.returncode == 2


def test_deleting_rows_deletes_objects_after_the_commit(bucket, django_capture_on_commit_callbacks):
    gone, kept = factories.clean_image(), factories.clean_image()
    everything = bucket.keys()
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        gone.delete()
        transaction.set_rollback(True)
    assert bucket.keys() == everything
    with django_capture_on_commit_callbacks(execute=True):
        Image.objects.exclude(pk=kept.pk).delete()
        assert bucket.keys() == everything
    assert bucket.keys() == {key(file) for file in (kept.original, kept.rendition, kept.thumbnail)}


def test_a_large_file_is_copied_within_the_bucket_to_set_its_type(bucket):
    storage = storages["private"]
    content = bytes(9_000_000)
    name = storage.save("upload/ab/large.zip", ContentFile(content))
    bucket.put(f"private/{name}", content, "text/html")
    storage.set_content_type(name)
    assert bucket.get(f"private/{name}") == (content, "application/zip")
