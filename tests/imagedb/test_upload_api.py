"""Uploads over the API: whole way, refusals that say what to do, nobody else's files, and the schema kept."""

import base64
import hashlib
import io
import socket
import time

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.http.request import UnreadablePostError
from django.test import Client, RequestFactory
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from rest_framework.authentication import BaseAuthentication
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance
from schemathesis.specs.openapi.checks import ignored_auth

from imagedb import upload_api
from imagedb.models.uploads import Upload, UploadStatus
from imagedb.services import uploads
from scooter_site.wsgi import application
from tests.imagedb.sendings import PART_SIZE, begun, part, random_bytes, researcher, send, stored_bytes

pytestmark = pytest.mark.django_db

UPLOADS = "/api/v1/uploads/"
CONTENT = random_bytes(2500)


@pytest.fixture
def user(client):
    user = researcher()
    client.force_login(user)
    return user


@pytest.fixture
def upload(user):
    return begun(user, CONTENT)


def address(upload, rest=""):
    return f"{UPLOADS}{upload.public_id}/{rest}"


def put(client, upload, number, content, **headers):
    return client.put(
        address(upload, f"parts/{number}/"), content, content_type="application/octet-stream", headers=headers
    )


def content_digest(content):
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


class TestWholeWay:
    def test_from_the_announcement_to_the_whole_file(self, client, user):
        begin = client.post(UPLOADS, {"filename": "roofs.zip", "size": 2500}, "application/json")
        assert begin.status_code == 201
        said = begin.json()
        assert said == {
            "id": str(Upload.objects.get().public_id),
            "filename": "roofs.zip",
            "size": 2500,
            "part_size": 8 * 1024 * 1024,
            "part_count": 1,
            "status": "receiving",
            "is_direct": False,
            "created_at": said["created_at"],
            "completed_at": None,
            "parts": [],
        }
        Upload.objects.update(part_size=PART_SIZE)
        upload = Upload.objects.get()
        links = client.post(address(upload, "parts/"), {"numbers": [1, 2, 3]}, "application/json").json()["links"]
        assert [(link["number"], link["size"], link["expires_at"]) for link in links] == [
            (1, 1000, None),
            (2, 1000, None),
            (3, 500, None),
        ]
        for link in links:
            content = part(CONTENT, link["number"])
            sent = client.put(
                link["url"],
                content,
                content_type="application/octet-stream",
                headers={"Content-Digest": content_digest(content)},
            )
            assert sent.json() == {
                "number": link["number"],
                "size": link["size"],
                "etag": hashlib.sha256(content).hexdigest(),
            }
        assert [one["number"] for one in client.get(address(upload)).json()["parts"]] == [1, 2, 3]
        for _ in range(2):
            whole = client.post(address(upload, "complete/"))
            assert (whole.status_code, whole.json()["status"]) == (200, "complete")
        assert len(whole.json()["parts"]) == 3
        assert stored_bytes(upload) == CONTENT

    def test_the_list_has_open_uploads_of_ones_own(self, client, user, upload):
        begun(researcher("other"), b"x")
        abandoned = begun(user, b"x")
        for _ in range(2):
            assert client.delete(address(abandoned)).status_code == 204
        results = client.get(UPLOADS).json()["results"]
        assert [one["id"] for one in results] == [str(upload.public_id)]
        assert client.get(address(abandoned)).json()["status"] == "abandoned"


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "field", "words"),
        [
            ({"filename": "roofs.exe", "size": 1}, "filename", "end in .zip, .csv, .jsonl"),
            ({"filename": "roofs.zip", "size": 0}, "size", "greater than or equal to 1"),
            ({"filename": "roofs.zip", "size": 10**12}, "size", "split the images over several archives"),
            ({"filename": "roofs.zip"}, "size", "required"),
            ({"filename": "roofs.zip", "size": 1, "sise": 2}, "sise", "Unknown field; known are: filename, size."),
        ],
    )
    def test_a_bad_announcement_names_the_field(self, client, user, body, field, words):
        answer = client.post(UPLOADS, body, "application/json")
        assert answer.status_code == 400
        assert words in answer.json()[field][0]

    @pytest.mark.parametrize("numbers", [[], [0], [4], ["x"], list(range(1, 102))])
    def test_bad_part_numbers(self, client, upload, numbers):
        assert client.post(address(upload, "parts/"), {"numbers": numbers}, "application/json").status_code == 400

    @pytest.mark.parametrize(
        ("content", "digest", "name", "words"),
        [
            (CONTENT[:999], None, "body", "must have 1,000 bytes, but only 999 came"),
            (CONTENT[:1001], None, "body", "but more came"),
            (b"", None, "body", "only 0 came"),
            (CONTENT[:1000], content_digest(b"other"), "Content-Digest", "not that of the bytes"),
            (CONTENT[:1000], "sha-256=:abc:", "Content-Digest", "32 bytes of a SHA-256"),
            (CONTENT[:1000], "sha-256=:####:", "Content-Digest", "32 bytes of a SHA-256"),
        ],
    )
    def test_a_bad_part_names_what_is_wrong(self, client, upload, content, digest, name, words):
        answer = put(client, upload, 1, content, **({"Content-Digest": digest} if digest else {}))
        assert answer.status_code == 400
        assert words in answer.json()[name][0]
        assert client.get(address(upload)).json()["parts"] == []

    def test_digests_of_other_kinds_are_not_looked_at(self, client, upload):
        header = f"sha-512=:AAAA:, {content_digest(CONTENT[:1000])}"
        assert put(client, upload, 1, CONTENT[:1000], **{"Content-Digest": "sha-512=:AAAA:"}).status_code == 200
        assert put(client, upload, 1, CONTENT[:1000], **{"Content-Digest": header}).status_code == 200

    @pytest.mark.parametrize("number", [0, 4, 10**30])
    def test_a_part_that_there_is_not(self, client, upload, number):
        answer = put(client, upload, number, CONTENT[:1000])
        assert answer.status_code == 400
        assert "the parts of this upload are 1 to 3" in answer.json()["number"][0]

    def test_completing_too_early_names_the_missing_parts(self, client, upload):
        send(upload, CONTENT, 2)
        answer = client.post(address(upload, "complete/"))
        assert answer.status_code == 409
        assert answer.json()["detail"].startswith("Parts 1, 3 are not there yet.")

    def test_what_an_import_has_is_kept(self, client, user, upload):
        send(upload, CONTENT)
        uploads.complete_upload(upload)
        uploads.take_upload(user, upload.public_id)
        assert client.delete(address(upload)).status_code == 409
        assert put(client, upload, 1, CONTENT[:1000]).status_code == 409
        assert stored_bytes(upload) == CONTENT

    def test_a_full_disk_and_a_storage_that_is_away(self, client, upload, monkeypatch):
        class Away(Exception):
            pass

        storage = Upload().file.storage
        monkeypatch.setattr(storage, "TRANSIENT_ERRORS", (Away,), raising=False)
        for error, status in ((upload_api.StorageFull("The disk is full."), 507), (Away(), 503)):

            def fail(*arguments, error=error):
                raise error

            monkeypatch.setattr(uploads, "store_part", fail)
            answer = put(client, upload, 1, CONTENT[:1000])
            assert answer.status_code == status
            assert answer.json()["detail"]


class TestWhoMay:
    def test_nobody_without_an_account(self, upload):
        anonymous = Client()
        assert anonymous.get(UPLOADS).status_code == 401
        assert put(anonymous, upload, 1, CONTENT[:1000]).status_code == 401

    def test_no_account_that_may_not_import(self, client, upload):
        client.force_login(User.objects.create_user("reader", is_staff=True))
        answer = client.post(UPLOADS, {"filename": "a.zip", "size": 1}, "application/json")
        assert answer.status_code == 403
        assert "may not import images" in answer.json()["detail"]
        assert client.get(address(upload)).status_code == 403

    @pytest.mark.parametrize("is_superuser", [False, True])
    def test_another_accounts_upload_is_not_there(self, client, upload, is_superuser):
        other = researcher("other")
        other.is_superuser = is_superuser
        other.save()
        client.force_login(other)
        assert [
            client.get(address(upload)).status_code,
            client.delete(address(upload)).status_code,
            client.post(address(upload, "parts/"), {"numbers": [1]}, "application/json").status_code,
            put(client, upload, 1, CONTENT[:1000]).status_code,
            client.post(address(upload, "complete/")).status_code,
        ] == [404] * 5
        upload.refresh_from_db()
        assert (upload.status, upload.parts.count()) == (UploadStatus.RECEIVING, 0)

    def test_a_page_of_another_site_cannot_send(self, user, upload):
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(user)
        assert put(strict, upload, 1, CONTENT[:1000]).status_code == 403
        assert strict.post(UPLOADS, {"filename": "a.zip", "size": 1}, "application/json").status_code == 403


def test_a_part_may_be_larger_than_what_a_form_may_be(client, user, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    upload = begun(user, CONTENT)
    assert put(client, upload, 1, CONTENT[:1000]).status_code == 200


class TestSlowSenders:
    """What keeps a thread of the web server busy comes to an end."""

    def body(self, stream, **environment):
        request = RequestFactory().put("/", headers={"Content-Length": "1000"}, **environment)
        request._stream = stream
        return upload_api._Body(request)

    def test_one_who_falls_silent_is_given_up(self, monkeypatch):
        monkeypatch.setattr(upload_api, "SILENCE_SECONDS", 0.1)
        ours, theirs = socket.socketpair()
        with ours, theirs, ours.makefile("rb") as stream:
            body = self.body(stream, **{"gunicorn.socket": ours})
            theirs.send(b"x" * 10)
            assert body.read(10) == b"x" * 10
            with pytest.raises(upload_api.SenderTooSlow):
                body.read(10)
            assert ours.gettimeout() is None  # as the web server left it

    def test_one_who_dribbles_is_given_up(self, monkeypatch):
        body = self.body(io.BytesIO(bytes(1000)))
        assert body.read(10) == bytes(10)
        now = time.monotonic()
        monkeypatch.setattr(upload_api.time, "monotonic", lambda: now + upload_api.SHORTEST_DEADLINE_SECONDS + 1)
        with pytest.raises(upload_api.SenderTooSlow):
            body.read(10)

    def test_the_answer_says_so(self, client, upload, monkeypatch):
        def broken(self, *arguments):
            raise UnreadablePostError

        monkeypatch.setattr("django.core.handlers.wsgi.WSGIRequest.read", broken)
        answer = put(client, upload, 1, CONTENT[:1000])
        assert answer.status_code == 408
        assert "Send it again" in answer.json()["detail"]


# --- The schema -----------------------------------------------------------------------------------------------

SCHEMA = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
SCHEMA.app = application
OPERATIONS = [
    operation for result in SCHEMA.get_all_operations() if (operation := result.ok()).path.startswith(UPLOADS)
]


@pytest.fixture
def signed_in_everywhere(user, monkeypatch):
    class AsTheResearcher(BaseAuthentication):
        def authenticate(self, request):
            return user, None

        def authenticate_header(self, request):
            return "Token"

    monkeypatch.setattr(upload_api.UploadViewSet, "authentication_classes", [AsTheResearcher])
    # As Django's own test client does: the end of a request would close the connection that holds the test's rows.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_every_operation_is_in_the_schema():
    assert {(operation.method, operation.path.removeprefix(UPLOADS)) for operation in OPERATIONS} == {
        ("get", ""),
        ("post", ""),
        ("get", "{public_id}/"),
        ("delete", "{public_id}/"),
        ("post", "{public_id}/parts/"),
        ("put", "{public_id}/parts/{number}/"),
        ("post", "{public_id}/complete/"),
    }


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_answers_what_the_schema_says(operation, mode, upload, signed_in_everywhere):
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def call(case):
        if "public_id" in (case.path_parameters or {}) and mode == GenerationMode.POSITIVE:
            case.path_parameters["public_id"] = str(upload.public_id)
        # An upload must be in the right state and a name end rightly, which the schema cannot say.
        case.call_and_validate(excluded_checks=[positive_data_acceptance, ignored_auth])

    call()
