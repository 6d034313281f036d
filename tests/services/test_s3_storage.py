"""Files on a real S3-compatible server: the same bytes, our content types, links that expire, and a whole import."""

import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import httpx
import numpy as np
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from django.core.files.base import ContentFile
from django.db import models
from django.db.models.fields.files import FieldFile
from django.http import Http404
from django.test import RequestFactory
from django.utils import timezone

from imagedb import files
from imagedb.models import Image
from scooter_site.common import object_storage
from scooter_site.common.object_storage import ObjectStorage
from scooter_site.common.s3_url import parse_s3_url
from scooter_site.common.storage import LINK_SECONDS, opaque_name
from tests.factories import png_bytes
from tests.imagedb.manifests import Folder, clean, manifest_text, modified
from tests.services.s3 import BUCKET, client, s3_url

pytestmark = pytest.mark.services
PROJECT = Path(__file__).resolve().parent.parent.parent


def storage(address: str, level: str = "protected", **options: str) -> ObjectStorage:
    return ObjectStorage(level=level, **asdict(parse_s3_url(s3_url(address, **options))))


def random_bytes(count: int) -> bytes:
    return np.random.default_rng(count).bytes(count)


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


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

    @pytest.mark.parametrize("checksum_mode", ["when_required", "when_supported"])
    @pytest.mark.parametrize("signature_version", ["s3v4", "s3"])
    @pytest.mark.parametrize("region", ["us-east-1", "elsewhere"])
    def test_the_same_bytes_in_every_way_of_speaking(self, s3_address, checksum_mode, signature_version, region):
        options = {"checksum_mode": checksum_mode, "signature_version": signature_version, "region": region}
        ours = storage(s3_address, **options)
        content = random_bytes(9_000_001)
        for size in (5, len(content)):
            name = ours.save(f"original/{'-'.join(options.values())}-{size}.png", ContentFile(content[:size]))
            assert raw_object(s3_address, name)["Body"].read() == content[:size]
            assert ours.describe(name).size == size

    def test_checksums_are_sent_when_the_setting_says_so(self, s3_address):
        sent = []
        ours = storage(s3_address, checksum_mode="when_supported")
        ours.client.meta.events.register("before-send.s3.PutObject", lambda request, **_: sent.append(request.headers))
        ours.save("original/checksum.png", ContentFile(b"content"))
        assert any(name.lower().startswith("x-amz-checksum-") or name.lower() == "x-amz-trailer" for name in sent[0])

    def test_path_style_or_virtual_hosts(self, s3_address):
        port = s3_address.rpartition(":")[2]
        path, virtual = (
            storage(f"http://localhost:{port}", addressing_style=style).signed_link("a.png", "inline")
            for style in ("path", "virtual")
        )
        assert path.startswith(f"http://localhost:{port}/{BUCKET}/protected/a.png?")
        assert virtual.startswith(f"http://{BUCKET}.localhost:{port}/protected/a.png?")
        amazon = ObjectStorage(level="private", **asdict(parse_s3_url("s3://key:secret@/images?region=eu-west-1")))
        assert amazon.signed_link("a.png", "inline").startswith(
            "https://images.s3.eu-west-1.amazonaws.com/private/a.png?"
        ) or amazon.signed_link("a.png", "inline").startswith("https://images.s3.amazonaws.com/private/a.png?")

    def test_a_wrong_secret_is_refused(self, s3_address):
        ours = storage(s3_address)
        ours.secret_key = "wrong"
        with pytest.raises(ClientError, match=r"SignatureDoesNotMatch|403"):
            ours.save("original/refused.png", ContentFile(b"x"))

    def test_the_users_own_session_does_not_matter(self, s3_address, monkeypatch):
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of another account")
        monkeypatch.setenv("AWS_S3_SESSION_PROFILE", "another")
        ours = storage(s3_address)
        assert ours.exists(ours.save("original/session.png", ContentFile(b"x")))

    def test_written_over(self, s3_address):
        ours = storage(s3_address)
        for content in (b"first and longer", b"second"):
            assert ours.save("original/again.png", ContentFile(content)) == "original/again.png"
        assert raw_object(s3_address, "original/again.png")["Body"].read() == b"second"

    def test_a_large_file_is_opened_on_the_disk(self, s3_address):
        ours = storage(s3_address)
        name = ours.save("import/large.zip", ContentFile(random_bytes(9_000_000)))
        with ours.open(name) as file:
            file.read(1)
            assert file.file._rolled

    def test_a_part_of_a_file(self, s3_address):
        ours = storage(s3_address)
        name = ours.save("original/part.png", ContentFile(bytes(range(200))))
        for wanted, expected in (((), range(200)), ((10, 20), range(10, 20)), ((199, 200), range(199, 200))):
            stream, length = ours.stream(name, *wanted)
            assert (stream.read(), length) == (bytes(expected), len(expected))
        for ask in (ours.stream, ours.describe):
            with pytest.raises(FileNotFoundError):
                ask("original/nobody.png")


class TestListing:
    def test_in_the_order_of_bytes(self, s3_address):
        """SeaweedFS itself lists by folders, so that "a/" comes before "a-b/"."""
        ours = storage(s3_address)
        ours.location = "listing"
        names = ["a-b/1.png", "a/1.png", "a/2.png", "a.png", "B/é.png", "b c/+.png", "top.png"]
        for name in names:
            ours.save(name, ContentFile(name.encode()))
        client(s3_address).put_object(Bucket=BUCKET, Key="listing/marker/", Body=b"")
        listed = list(ours.listing())
        assert [file.name for file in listed] == sorted(names, key=str.encode)
        assert [file.md5 for file in listed] == [
            hashlib.md5(file.name.encode(), usedforsecurity=False).hexdigest() for file in listed
        ]
        assert all(abs((timezone.now() - file.modified_at).total_seconds()) < 300 for file in listed)

    def test_more_than_a_page(self, s3_address):
        ours = storage(s3_address)
        ours.location = "pages"
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda number: ours.save(f"x/{number:04}.png", ContentFile(b"x")), range(1005)):
                pass
        assert [file.name for file in ours.listing()] == [f"x/{number:04}.png" for number in range(1005)]


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

    def test_a_link_gives_parts(self, s3_address):
        ours = storage(s3_address)
        name = ours.save("original/parts.png", ContentFile(bytes(range(100))))
        link = ours.signed_link(name, "inline")
        part = httpx.get(link, headers={"Range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, bytes(range(10, 20)))
        assert part.headers["Content-Range"] == "bytes 10-19/100"
        assert part.headers["Content-Type"] == "image/png"
        rest = httpx.get(link, headers={"Range": "bytes=50-", "If-Range": part.headers["ETag"]})
        assert (rest.status_code, rest.content) == (206, bytes(range(50, 100)))
        assert httpx.get(link, headers={"Range": "bytes=100-"}).status_code == 416

    def test_a_link_expires(self, s3_address, monkeypatch):
        monkeypatch.setattr(object_storage, "LINK_SECONDS", 2)
        ours = storage(s3_address)
        link = ours.signed_link(ours.save("original/expires.png", ContentFile(b"content")), "inline")
        assert httpx.get(link).status_code == 200
        time.sleep(3)
        assert httpx.get(link).status_code == 403

    def test_a_link_says_our_content_type_whatever_was_stored(self, s3_address):
        ours = storage(s3_address)
        client(s3_address).put_object(
            Bucket=BUCKET, Key="protected/original/evil.png", Body=b"<script>", ContentType="text/html"
        )
        assert httpx.get(ours.signed_link("original/evil.png", "inline")).headers["Content-Type"] == "image/png"

    def test_who_gets_links_to_what(self, s3_address):
        for level in ("public", "protected", "private"):
            storage(s3_address, level).save("original/level.png", ContentFile(level.encode()))
        # What docs/storage.md tells to do for the public level.
        statement = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": ["s3:GetObject"],
            "Resource": [f"arn:aws:s3:::{BUCKET}/public/*"],
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        client(s3_address).put_bucket_policy(Bucket=BUCKET, Policy=policy)
        public, protected, private = (
            storage(s3_address, level).download_link("original/level.png", "inline")
            for level in ("public", "protected", "private")
        )
        assert public == f"{s3_address}/{BUCKET}/public/original/level.png"
        assert httpx.get(public).content == b"public"
        assert httpx.get(protected).content == b"protected"
        assert httpx.get(protected.partition("?")[0]).status_code == 403
        assert private is None
        assert httpx.get(f"{s3_address}/{BUCKET}/private/original/level.png").status_code == 403
        with pytest.raises(ValueError, match="no address"):
            storage(s3_address, "private").url("original/level.png")

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

    def test_head_and_parts_through_the_app(self, field_file):
        def ask(method, **headers):
            request = getattr(RequestFactory(), method)("/", headers=headers)
            return files.serve(field_file, cache_seconds=60, request=request, etag="abc")

        head = ask("head")
        assert (head.status_code, head.headers["Content-Length"], head.content) == (200, "7", b"")
        part = ask("get", Range="bytes=2-3")
        assert (part.status_code, part.headers["Content-Range"]) == (206, "bytes 2-3/7")
        assert b"".join(part.streaming_content) == b"nt"
        part.file_to_stream.close()
        assert ask("get", Range="bytes=7-").status_code == 416

    def test_private_files_come_through_the_app(self, s3_address):
        ours = storage(s3_address, "private")
        field_file = FieldFile(Image(), models.FileField(storage=ours), ours.save("a.csv", ContentFile(b"1,2")))
        response = files.serve(field_file, cache_seconds=0, by_link=True)
        assert response.status_code == 200
        assert b"".join(response.streaming_content) == b"1,2"
        response.file_to_stream.close()

    def test_lost_file(self, field_file):
        field_file.storage.delete(field_file.name)
        with pytest.raises(Http404):
            files.serve(field_file, cache_seconds=60)


def test_a_server_that_is_away_is_worth_another_try():
    ours = storage("http://127.0.0.1:9")
    with pytest.raises(EndpointConnectionError) as caught:
        ours.exists("x")
    assert isinstance(caught.value, ObjectStorage.TRANSIENT_ERRORS)


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
