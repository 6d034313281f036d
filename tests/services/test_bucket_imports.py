"""Imports from and into a real S3-compatible bucket: archives read in pieces, prefixes, and no objects left over."""

import io
import uuid
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command

from imagedb.models import Image, ImportBatch, UploadStatus
from imagedb.models.imports import ImportStatus
from imagedb.services import import_sources, importing, uploads
from imagedb.services.import_sources import READ_AHEAD_BYTES, ObjectReader
from imagedb.services.importing import ImportRefused
from scooter_site.common.storage import private_storage
from tests.factories import png_bytes
from tests.imagedb.api_clients import user
from tests.imagedb.manifests import assert_sound, clean, manifest_text, modified, planned, stored, work_on
from tests.imagedb.sendings import random_bytes
from tests.imagedb.test_import_chunks import begun
from tests.services.s3 import files_in_bucket

pytestmark = [pytest.mark.services, pytest.mark.django_db]

ROWS = [clean(), modified()]
SET = {"clean.png": png_bytes(1), "modified.png": png_bytes(2), "manifest.csv": manifest_text(ROWS).encode()}


@pytest.fixture
def bucket(s3_address, settings):
    name = f"import-{uuid.uuid4().hex[:12]}"
    import_sources.forget()
    with files_in_bucket(s3_address, name, settings) as client:

        def put(**objects: bytes) -> None:
            for key, content in objects.items():
                client.put_object(Bucket=name, Key=key, Body=content)

        yield put
    import_sources.forget()


@pytest.fixture
def account():
    return user("root", is_superuser=True)


@pytest.fixture
def asked_for():
    """The requests to the bucket, as pairs of operation and range."""
    seen = []

    def note(model, params, **_):
        seen.append((model.name, params["headers"].get("Range")))

    storage = private_storage()
    storage.client.meta.events.register("before-call.s3", note)
    yield seen
    storage.client.meta.events.unregister("before-call.s3", note)


def done(batch: ImportBatch) -> tuple[str, int, int]:
    batch.refresh_from_db()
    return batch.status, batch.imported_count, batch.failed_count


def test_an_archive_is_read_piece_by_piece(bucket, asked_for):
    """Never whole: most of this one is a file that no row names."""
    batch = planned(ROWS, contents={"spare.bin": random_bytes(5_000_000)})
    work_on(batch)
    assert done(batch) == (ImportStatus.DONE, 2, 0)
    ranges = [wanted.removeprefix("bytes=").split("-") for operation, wanted in asked_for if operation == "GetObject"]
    assert ranges
    assert sum(int(end) - int(start) + 1 for start, end in ranges) < 2_000_000
    assert_sound()


def test_a_reader_reads_like_a_file(bucket):
    content = random_bytes(1_000_003)
    name = private_storage().save("import/aa/a.zip", ContentFile(content))
    with io.BufferedReader(ObjectReader(private_storage(), name), READ_AHEAD_BYTES) as file:
        assert file.read(10) == content[:10]
        assert file.seek(-20, io.SEEK_END) == len(content) - 20
        assert file.read() == content[-20:]
        assert file.read(1) == b""
        assert file.seek(500_000) == 500_000
        assert file.read(400_000) == content[500_000:900_000]
        file.seek(5, io.SEEK_CUR)
        assert file.read(3) == content[900_005:900_008]
        with pytest.raises(ValueError, match="before the beginning"):
            file.seek(-1)


def test_a_chunk_that_is_done_again_writes_over_its_objects(bucket):
    batch = planned(ROWS)
    begun(batch)
    work_on(batch)
    assert done(batch) == (ImportStatus.DONE, 2, 0)
    assert_sound()


def test_an_archive_that_is_gone(bucket):
    batch = planned(ROWS)
    batch.archive.storage.delete(batch.archive.name)
    work_on(batch)
    assert done(batch)[0] == ImportStatus.FAILED
    assert "no longer in the storage" in batch.error


@pytest.mark.parametrize("named", ["", "lists/manifest.csv", "manifest.csv"])
def test_a_prefix(bucket, account, named, django_capture_on_commit_callbacks):
    place = "lists/" if named else ""
    objects = {f"incoming/set/{name}": content for name, content in SET.items() if name != "manifest.csv"}
    bucket(**objects, **{f"incoming/set/{place}manifest.csv": SET["manifest.csv"]})
    with django_capture_on_commit_callbacks(execute=True):
        batch = importing.request_new_import(account, ImportBatch(), prefix="incoming/set", manifest=named)
    assert done(batch) == (ImportStatus.DONE, 2, 0)
    assert batch.location == "incoming/set/"
    assert stored(Image.objects.get(kind="clean").original) == SET["clean.png"]
    assert "in no row" not in batch.notes
    assert_sound()


def test_a_prefix_with_a_manifest_that_was_uploaded(bucket, account, django_capture_on_commit_callbacks):
    bucket(**{f"incoming/set/{name}": content for name, content in SET.items() if name != "manifest.csv"})
    upload = uploads.begin_upload(account, "list.csv", len(SET["manifest.csv"]))
    upload.file.storage.save(upload.file.name, ContentFile(SET["manifest.csv"]))
    type(upload).objects.update(status=UploadStatus.COMPLETE)
    with django_capture_on_commit_callbacks(execute=True):
        batch = importing.request_new_import(account, ImportBatch(), prefix="incoming/set/", upload=upload.public_id)
    assert done(batch) == (ImportStatus.DONE, 2, 0)
    assert batch.source_name == "list.csv"


@pytest.mark.parametrize("manifest", ["absent.csv", "../other/manifest.csv"])
def test_a_manifest_that_is_not_there(bucket, account, manifest, django_capture_on_commit_callbacks):
    bucket(**{f"incoming/set/{name}": content for name, content in SET.items()})
    with django_capture_on_commit_callbacks(execute=True):
        batch = importing.request_new_import(account, ImportBatch(), prefix="incoming/set/", manifest=manifest)
    assert done(batch)[0] == ImportStatus.FAILED
    assert manifest in batch.error


@pytest.mark.parametrize("prefix", ["protected/", "incoming/", "private/import/", "incoming/../private/"])
def test_prefixes_that_imports_must_not_read(bucket, account, prefix):
    with pytest.raises(ImportRefused) as refused:
        importing.request_new_import(account, ImportBatch(), prefix=prefix)
    assert refused.value.field == "prefix"
    assert not ImportBatch.objects.exists()
    with pytest.raises(CommandError, match="prefix below incoming/"):
        call_command("import_images", __file__, prefix=prefix)


def test_the_listing_is_kept_between_the_turns_of_a_worker(
    bucket, account, asked_for, django_capture_on_commit_callbacks
):
    bucket(**{f"incoming/set/{name}": content for name, content in SET.items()})
    batch = importing.request_new_import(account, ImportBatch(), prefix="incoming/set/")
    assert importing.import_plan.plan_import(batch.pk)
    work_on(batch)
    assert done(batch) == (ImportStatus.DONE, 2, 0)
    assert [operation for operation, _ in asked_for].count("ListObjectsV2") == 1


def test_from_the_command_line(bucket, tmp_path: Path, capsys):
    bucket(**{f"incoming/set/{name}": content for name, content in SET.items() if name != "manifest.csv"})
    (tmp_path / "list.csv").write_bytes(SET["manifest.csv"])
    for imported in (2, 0):
        call_command("import_images", str(tmp_path / "list.csv"), prefix="incoming/set/")
        assert f"2 rows: {imported} imported, {2 - imported} already there" in capsys.readouterr().out
    assert_sound()
