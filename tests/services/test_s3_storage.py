"""Files on a real S3-compatible server: the same bytes, our content types, links that expire, and a whole import."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from botocore.exceptions import EndpointConnectionError
from django.core.files.base import ContentFile
from django.db import models
from django.db.models.fields.files import FieldFile
from django.http import Http404
from django.test import RequestFactory

from imagedb import files
from imagedb.models import Image
from scooter_site.common.s3_url import parse_s3_url
from scooter_site.common.storage import LINK_SECONDS, ObjectStorage, opaque_name
from scooter_site.common.tasks import RETRYABLE
from tests.factories import png_bytes
from tests.imagedb.manifests import Folder, clean, manifest_text, modified
from tests.services.s3 import BUCKET, client, s3_url

pytestmark = pytest.mark.services
PROJECT = Path(__file__).resolve().parent.parent.parent


def storage(address: str, level: str = "protected", **options: str) -> ObjectStorage:
    return ObjectStorage(level=level, **parse_s3_url(s3_url(address, **options)).storage_options())


def random_bytes(count: int) -> bytes:
    return np.random.default_rng(count).bytes(count)


def raw_object(address: str, name: str) -> dict:
    return client(address).get_object(Bucket=BUCKET, Key=f"protected/{name}")


class TestBytes:
    # Above 8 MB boto3 sends a file in parts.
    @pytest.mark.parametrize("size", [0, 1, 100_000, 9_000_000])
    def test_the_same_bytes_come_back(self, s3_address, size):
        content = random_bytes(size)
        name = storage(s3_address).save(f"original/{size}.png", ContentFile(content))
        assert raw_object(s3_address, name)["Body"].read() == content
        with storage(s3_address).open(name) as file:
            assert file.read() == content

    def test_no_checksum_trailer_is_sent(self, s3_address):
        """boto3 sends one by default since 1.36, and some servers store it as part of the file."""
        sent = []

        def note(request, **_):
            sent.append({name.lower() for name in request.headers})

        ours = storage(s3_address)
        ours.connection.meta.client.meta.events.register("before-send.s3.PutObject", note)
        ours.save("original/checksum.png", ContentFile(b"content"))
        default = client(s3_address)
        default.meta.events.register("before-send.s3.PutObject", note)
        default.put_object(Bucket=BUCKET, Key="checksum", Body=b"content")
        with_ours, with_defaults = sent
        trailers = {"x-amz-trailer", "x-amz-sdk-checksum-algorithm", "x-amz-checksum-crc32"}
        assert not trailers & with_ours
        assert trailers & with_defaults  # or this test could not fail

    def test_content_type_is_ours(self, s3_address):
        upload = ContentFile(b"<script>alert(1)</script>")
        upload.content_type = "text/html"
        for uploaded_name, expected in (("a.png", "image/png"), ("a.webp", "image/webp"), ("a.html", None)):
            name = storage(s3_address).save(opaque_name("original")(None, uploaded_name), upload)
            assert raw_object(s3_address, name)["ContentType"] == (expected or "application/octet-stream")

    def test_levels_are_apart(self, s3_address):
        name = storage(s3_address, "private").save("import/a.zip", ContentFile(b"x"))
        assert storage(s3_address, "private").exists(name)
        assert not storage(s3_address, "protected").exists(name)

    def test_deleted_is_gone(self, s3_address):
        ours = storage(s3_address)
        name = ours.save("original/gone.png", ContentFile(b"x"))
        ours.delete(name)
        assert not ours.exists(name)


class TestLinks:
    def test_a_link_gives_the_file_and_nothing_else_does(self, s3_address):
        ours = storage(s3_address)
        name = ours.save("original/link.png", ContentFile(b"content"))
        link = ours.signed_link(name, 'attachment; filename="image.png"')
        assert f"X-Amz-Expires={LINK_SECONDS}" in link
        response = httpx.get(link)
        assert response.content == b"content"
        assert response.headers["Content-Type"] == "image/png"
        assert response.headers["Content-Disposition"] == 'attachment; filename="image.png"'
        assert httpx.get(link.split("?")[0]).status_code == 403
        assert httpx.get(link.replace("link.png", "other.png")).status_code == 403

    def test_a_link_names_the_host_that_browsers_reach(self, s3_address):
        public = s3_address.replace("127.0.0.1", "localhost")
        ours = storage(s3_address, public_endpoint=public)
        name = ours.save("original/public.png", ContentFile(b"content"))
        link = ours.signed_link(name, "inline")
        assert link.startswith(f"{public}/{BUCKET}/protected/")
        assert httpx.get(link).content == b"content"


class TestServe:
    @pytest.fixture
    def field_file(self, s3_address):
        ours = storage(s3_address)
        name = ours.save("rendition/served.png", ContentFile(b"content"))
        return FieldFile(Image(), models.FileField(storage=ours), name)

    def test_through_the_app(self, field_file):
        response = files.serve(field_file, cache_seconds=60, filename="image.png", etag="abc")
        assert response.status_code == 200
        assert b"".join(response.streaming_content) == b"content"
        response.file_to_stream.close()
        assert response.headers["Content-Type"] == "image/png"
        assert response.headers["Content-Length"] == "7"
        assert response.headers["Cache-Control"] == "private, max-age=60"

    def test_by_link(self, field_file):
        response = files.serve(field_file, cache_seconds=60, filename="image.png", by_link=True)
        assert response.status_code == 302
        assert response.headers["Cache-Control"] == "no-store"
        assert httpx.get(response.url).content == b"content"

    def test_who_has_it_already_needs_no_link(self, field_file):
        request = RequestFactory().get("/", headers={"If-None-Match": '"abc"'})
        response = files.serve(field_file, cache_seconds=60, request=request, etag="abc", by_link=True)
        assert response.status_code == 304

    def test_lost_file(self, field_file):
        field_file.storage.delete(field_file.name)
        with pytest.raises(Http404):
            files.serve(field_file, cache_seconds=60)


def test_a_server_that_is_away_is_worth_another_try():
    ours = storage("http://127.0.0.1:9")
    with pytest.raises(EndpointConnectionError) as caught:
        ours.exists("x")
    assert isinstance(caught.value, RETRYABLE)


CHECK = """
import hashlib, json
from django.test import Client
from imagedb.models import Image
digests = []
for image in Image.objects.order_by("id"):
    with image.original.storage.open(image.original.name) as file:
        digests.append([image.original_filename, hashlib.sha256(file.read()).hexdigest(), image.original_sha256])
    shown = Client().get(f"/catalogue/images/{image.public_id}/file/")
    shown_digest = hashlib.sha256(b"".join(shown.streaming_content)).hexdigest()
    assert (shown.status_code, shown_digest) == (200, image.rendition_sha256)
link = Client().get(f"/api/v1/images/{image.public_id}/file/")
print("RESULT", json.dumps([type(image.original.storage).__name__, digests, link.status_code, link.url]))
"""


def test_a_whole_import(s3_address, tmp_path):
    """In processes of their own: which storage the models use is settled when they are imported."""
    folder = Folder(tmp_path)
    contents = {"clean.png": png_bytes(1), "modified.png": png_bytes(2)}
    for name, content in contents.items():
        folder.add(name, content=content)
    (tmp_path / "manifest.csv").write_text(manifest_text([clean(), modified()]))
    environment = {
        **os.environ,
        "S3_URL": s3_url(s3_address),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
        "MEDIA_ROOT": str(tmp_path / "media"),
    }

    def manage(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    manage("migrate", "-v0")
    command = ("import_images", str(tmp_path / "manifest.csv"), "--images", str(folder.images))
    assert "2 imported" in manage(*command, "--visibility", "public")
    assert "2 already there" in manage(*command)
    output = manage("shell", "-v0", "-c", CHECK)
    result = next(line for line in output.splitlines() if line.startswith("RESULT "))
    storage_name, digests, status, link = json.loads(result.removeprefix("RESULT "))
    assert storage_name == "ObjectStorage"
    expected = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    assert {name: stored for name, stored, _ in digests} == expected
    assert all(stored == recorded for _, stored, recorded in digests)
    assert status == 302
    assert httpx.get(link).content == contents["modified.png"]
    assert not list((tmp_path / "media").rglob("*.png"))
