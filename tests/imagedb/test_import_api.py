"""Imports over the API: asked for, followed, cancelled; and what of them others see: nothing."""

import csv
import io
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from imagedb.models import Image, ImportBatch, ImportRow, Upload, UploadStatus
from imagedb.models.imports import ImportStatus
from imagedb.services import uploads
from tests.factories import png_bytes
from tests.imagedb.api_clients import body, user, with_token
from tests.imagedb.manifests import clean, manifest_text, modified, planned, zip_of
from tests.imagedb.sendings import begun, send

pytestmark = pytest.mark.django_db

IMPORTS = "/api/v1/imports/"
ROWS = [clean("=cmd.png"), modified(source_filename="=cmd.png", attack="cAdv"), clean("absent.png")]
GOOD = {"manifest.csv": manifest_text(ROWS), "=cmd.png": png_bytes(1), "modified.png": png_bytes(2)}


def importer(name: str = "importer", *groups: str) -> User:
    account = user(name)
    account.user_permissions.add(Permission.objects.get(codename="add_importbatch"))
    account.groups.set(Group.objects.get_or_create(name=group)[0] for group in groups)
    return account


@pytest.fixture
def account() -> User:
    return importer("importer", "Lab A")


@pytest.fixture
def client(account) -> APIClient:
    return with_token(account)


def complete_upload(account: User, content: bytes | None = None, filename: str = "roofs.zip") -> Upload:
    content = zip_of(GOOD) if content is None else content
    upload = begun(account, content, filename, part_size=len(content))
    send(upload, content)
    return uploads.complete_upload(upload)


def ask(client: APIClient, **fields: object) -> Any:
    return client.post(IMPORTS, fields, format="json")


def address(batch: ImportBatch, end: str = "") -> str:
    return f"{IMPORTS}{batch.public_id}/{end}"


class TestAsking:
    def test_an_upload_is_imported(self, client, account, django_capture_on_commit_callbacks):
        upload = complete_upload(account)
        with django_capture_on_commit_callbacks(execute=True):
            answer = ask(
                client,
                upload=str(upload.public_id),
                visibility="private",
                group="Lab A",
                licence="CC0-1.0",
                attribution="Somebody",
            )
            assert answer.status_code == 201, answer.data
            assert (answer.data["status"], answer.data["source_name"]) == ("waiting", "roofs.zip")
        batch = ImportBatch.objects.get()
        assert (batch.created_by, batch.archive.name) == (account, upload.file.name)
        image = Image.objects.get(kind="modified")
        assert (image.group.name, image.visibility, image.licence, image.attribution, image.uploaded_by) == (
            "Lab A",
            "private",
            "CC0-1.0",
            "Somebody",
            account,
        )
        upload.refresh_from_db()
        assert upload.status == UploadStatus.USED
        detail = client.get(address(batch)).data
        assert detail == {
            **detail,
            "id": str(batch.public_id),
            "status": "done",
            "prefix": "",
            "group": "Lab A",
            "dry_run": False,
            "is_cancel_requested": False,
            "row_count": 3,
            "handled_count": 3,
            "imported_count": 2,
            "already_there_count": 0,
            "failed_count": 1,
            "notes": [
                "Created attack cAdv (cadv).",
                "Created target model ResNet-50 (resnet-50).",
            ],
        }

    def test_a_dry_run(self, client, account, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            ask(client, upload=str(complete_upload(account).public_id), dry_run=True)
        batch = ImportBatch.objects.get()
        assert (batch.status, batch.imported_count) == (ImportStatus.DONE, 2)
        assert not Image.objects.exists()
        assert b"would_be_imported" in body(client.get(address(batch, "rows.csv")))

    @pytest.mark.parametrize(
        ("fields", "named"),
        [
            ({}, "upload"),
            ({"upload": str(uuid.uuid4())}, "upload"),
            ({"upload": "no id"}, "upload"),
            ({"prefix": "incoming/set/"}, "prefix"),  # files are kept on disk here
            ({"upload": None}, "upload"),
            ({"visibility": "secret"}, "visibility"),
            ({"licence": "x" * 101}, "licence"),
            ({"licence": "nul\0"}, "licence"),
            ({"dry_run": "perhaps"}, "dry_run"),
            ({"folder": "/etc"}, "folder"),
            ({"group": "Lab B"}, "group"),
            ({"group": "nul\0"}, "group"),
        ],
    )
    def test_what_is_wrong_is_named(self, client, account, fields, named):
        Group.objects.create(name="Lab B")
        if named not in {"upload", "prefix"}:
            fields = {"upload": str(complete_upload(account).public_id), **fields}
        answer = ask(client, **fields)
        assert (answer.status_code, list(answer.data)) == (400, [named]), answer.data
        assert not ImportBatch.objects.exists()

    @pytest.mark.parametrize("status", [UploadStatus.RECEIVING, UploadStatus.USED, UploadStatus.ABANDONED])
    def test_an_upload_that_is_not_there_to_be_taken(self, client, account, status):
        upload = complete_upload(account)
        Upload.objects.update(status=status)
        answer = ask(client, upload=str(upload.public_id))
        assert (answer.status_code, list(answer.data)) == (400, ["upload"])
        assert not ImportBatch.objects.exists()
        upload.refresh_from_db()
        assert upload.status == status

    def test_an_upload_that_is_no_zip_stays_for_another_use(self, client, account):
        upload = complete_upload(account, b"filename,kind,class_index\na.png,clean,1\n", "list.csv")
        answer = ask(client, upload=str(upload.public_id))
        assert (answer.status_code, list(answer.data)) == (400, ["upload"])
        upload.refresh_from_db()
        assert upload.status == UploadStatus.COMPLETE

    def test_the_upload_of_another(self, client):
        upload = complete_upload(importer("another"))
        answer = ask(client, upload=str(upload.public_id))
        assert (answer.status_code, answer.data) == (400, {"upload": ["There is no such upload of yours."]})

    def test_a_superuser_may_import_for_any_group(self, django_capture_on_commit_callbacks):
        root = user("root", is_superuser=True)
        Group.objects.create(name="Lab B")
        answer = ask(with_token(root), upload=str(complete_upload(root).public_id), group="Lab B")
        assert (answer.status_code, answer.data["group"]) == (201, "Lab B")


class TestWhoMay:
    def test_nobody_without_the_permission(self):
        batch = planned([clean()])
        addresses = [IMPORTS, address(batch), address(batch, "rows.csv")]
        for client, status in ((APIClient(), 401), (with_token(user("visitor")), 403)):
            assert [client.get(place).status_code for place in addresses] == [status] * 3
            assert ask(client).status_code == status
            assert client.post(address(batch, "cancel/")).status_code == status

    def test_own_imports_only(self, client, account):
        own = planned([clean()], created_by=account)
        others = planned([clean()], created_by=importer("another", "Lab A"))
        assert [row["id"] for row in client.get(IMPORTS).data["results"]] == [str(own.public_id)]
        for end in ("", "rows.csv"):
            assert client.get(address(own, end)).status_code == 200
            assert client.get(address(others, end)).status_code == 404
        assert client.post(address(others, "cancel/")).status_code == 404
        root = with_token(user("root", is_superuser=True))
        assert len(root.get(IMPORTS).data["results"]) == 2
        assert root.get(address(others)).status_code == 200

    def test_the_list_takes_a_fixed_number_of_queries(self, client, account):
        def count() -> int:
            with CaptureQueriesContext(connection) as queries:
                assert client.get(IMPORTS).status_code == 200
            return len(queries)

        ImportBatch.objects.create(created_by=account, group=account.groups.get())
        count()  # the first request notes that the token is used
        few = count()
        for _ in range(5):
            ImportBatch.objects.create(created_by=account, group=account.groups.get())
        assert count() == few


class TestFollowing:
    def test_cancel(self, client, account):
        batch = planned([clean()], created_by=account)
        for _ in range(2):
            answer = client.post(address(batch, "cancel/"))
            assert (answer.status_code, answer.data["status"], answer.data["is_cancel_requested"]) == (
                200,
                "cancelled",
                True,
            )

    def test_rows_as_csv(self, client, account, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            ask(client, upload=str(complete_upload(account).public_id))
        answer = client.get(address(ImportBatch.objects.get(), "rows.csv"), HTTP_ACCEPT="image/png")
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        header, *rows = csv.reader(io.StringIO(body(answer).decode()))
        assert header == ["row", "filename", "kind", "result", "message", "image", "sha256"]
        first, second = Image.objects.order_by("kind")
        # Text that would be a formula has an apostrophe in front; the row's number is bare.
        assert rows[0] == ["2", "'=cmd.png", "clean", "imported", "", str(first.public_id), first.original_sha256]
        assert rows[1][:4] == ["3", "modified.png", "modified", "imported"]
        assert rows[1][5] == str(second.public_id)
        assert rows[2][:4] == ["4", "absent.png", "", "failed"]
        assert rows[2][4].startswith("filename: absent.png in the archive")
        assert rows[2][5:] == ["", ""]

    def test_very_many_rows_are_sent_piece_by_piece(self, client, account):
        batch = ImportBatch.objects.create(created_by=account, status=ImportStatus.DONE)
        ImportRow.objects.bulk_create(
            ImportRow(batch=batch, row_number=number, filename=f"{number}.png", result="failed")
            for number in range(1200)
        )
        answer = client.get(address(batch, "rows.csv"))
        pieces = list(answer.streaming_content)
        assert len(pieces) == 3
        assert len(b"".join(pieces).splitlines()) == 1201
