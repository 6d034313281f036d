"""How a stored file is sent: whole, in part, not at all because the client has it, or by nginx."""

import logging

import pytest
from django.core.files.base import ContentFile
from django.db import models
from django.db.models.fields.files import FieldFile
from django.http import Http404
from django.test import RequestFactory
from django.urls import reverse

from imagedb import files
from imagedb.models import Image
from scooter_site.common.storage import LocalStorage
from tests import factories

CONTENT = bytes(range(256)) * 1000
SIZE = len(CONTENT)


@pytest.fixture
def field_file(settings, tmp_path) -> FieldFile:
    settings.MEDIA_ROOT = tmp_path
    storage = LocalStorage(tmp_path / "protected")
    name = storage.save("original/ab/a b.png", ContentFile(CONTENT))
    return FieldFile(Image(), models.FileField(storage=storage), name)


def send(field_file, method="get", **headers):
    """Status, headers and body of the answer to a request with these headers."""
    request = getattr(RequestFactory(), method)(
        "/", headers={name.replace("_", "-"): headers[name] for name in headers}
    )
    response = files.serve(field_file, cache_seconds=60, request=request, etag="abc", filename="ünï.png")
    if not response.streaming:
        return response.status_code, response.headers, response.content
    body = b"".join(response.streaming_content)
    response.file_to_stream.close()
    return response.status_code, response.headers, body


class TestWhole:
    def test_content_and_headers(self, field_file):
        status, headers, body = send(field_file)
        assert (status, body) == (200, CONTENT)
        assert dict(headers) == {
            "Content-Type": "image/png",
            "Content-Length": str(SIZE),
            "Content-Disposition": "inline; filename*=utf-8''%C3%BCn%C3%AF.png",
            "Cache-Control": "private, max-age=60",
            "ETag": '"abc"',
            "Accept-Ranges": "bytes",
            "X-Content-Type-Options": "nosniff",
        }

    def test_head_has_the_same_headers_and_no_body(self, field_file):
        _, headers, _ = send(field_file)
        assert send(field_file, "head", Range="bytes=0-4") == (200, headers, b"")

    def test_an_empty_file(self, field_file):
        field_file.storage.save(field_file.name, ContentFile(b""))
        status, headers, body = send(field_file)
        assert (status, headers["Content-Length"], body) == (200, "0", b"")
        assert send(field_file, Range="bytes=0-")[0] == 416

    def test_who_has_it_gets_a_304(self, field_file):
        for given in ('"abc"', 'W/"abc"', '"x", "abc"', "*"):
            status, headers, body = send(field_file, If_None_Match=given, Range="bytes=0-4")
            assert (status, body) == (304, b"")
            assert headers["ETag"] == '"abc"'
            assert headers["Cache-Control"] == "private, max-age=60"
        assert send(field_file, If_None_Match='"abcd"')[0] == 200

    def test_a_lost_file_is_a_404_and_in_the_log(self, field_file, caplog):
        field_file.storage.delete(field_file.name)
        for method in ("get", "head"):
            with caplog.at_level(logging.ERROR), pytest.raises(Http404):
                send(field_file, method)
            assert field_file.name in caplog.text
            caplog.clear()


class TestRanges:
    @pytest.mark.parametrize(
        ("header", "first", "last"),
        [
            ("bytes=0-0", 0, 0),
            ("bytes=10-19", 10, 19),
            ("bytes=100000-", 100_000, SIZE - 1),
            ("bytes=-7", SIZE - 7, SIZE - 1),
            (f"bytes=5-{SIZE * 2}", 5, SIZE - 1),
            (f"bytes=-{SIZE * 2}", 0, SIZE - 1),
        ],
    )
    def test_one_range(self, field_file, header, first, last):
        status, headers, body = send(field_file, Range=header)
        assert (status, body) == (206, CONTENT[first : last + 1])
        assert headers["Content-Range"] == f"bytes {first}-{last}/{SIZE}"
        assert headers["Content-Length"] == str(last + 1 - first)
        assert headers["ETag"] == '"abc"'
        assert headers["Content-Type"] == "image/png"

    @pytest.mark.parametrize("header", [f"bytes={SIZE}-", f"bytes={SIZE}-{SIZE + 5}", "bytes=-0"])
    def test_none_of_the_bytes(self, field_file, header):
        status, headers, body = send(field_file, Range=header)
        assert (status, body, headers["Content-Range"]) == (416, b"", f"bytes */{SIZE}")

    @pytest.mark.parametrize("header", ["bytes=0-4,10-14", "items=0-4", "bytes=9-5", "bytes=", "bytes=a-b", "bytes=-"])
    def test_what_need_not_be_understood_gets_the_whole_file(self, field_file, header):
        status, headers, body = send(field_file, Range=header)
        assert (status, body) == (200, CONTENT)
        assert "Content-Range" not in headers

    @pytest.mark.parametrize(
        ("condition", "status"),
        [('"abc"', 206), ('"other"', 200), ('W/"abc"', 200), ("Mon, 30 Nov 2026 00:00:00 GMT", 200)],
    )
    def test_only_if_the_content_is_still_the_same(self, field_file, condition, status):
        assert send(field_file, Range="bytes=0-4", If_Range=condition)[0] == status

    def test_a_file_put_together_from_parts(self, field_file):
        _, headers, start = send(field_file, Range="bytes=0-99999")
        rest = send(field_file, Range="bytes=100000-", If_Range=headers["ETag"])[2]
        assert start + rest == CONTENT


class TestNginx:
    def test_it_is_told_the_file_and_the_headers_it_keeps(self, field_file, settings):
        settings.X_ACCEL_PREFIX = "/stored-files/"
        for method in ("get", "head"):
            status, headers, body = send(field_file, method, Range="bytes=0-4")
            assert (status, body) == (200, b"")
            assert headers["X-Accel-Redirect"] == "/stored-files/protected/original/ab/a%20b.png"
            assert headers["Content-Type"] == "image/png"
            assert headers["Cache-Control"] == "private, max-age=60"
            assert headers["Content-Disposition"].startswith("inline;")
            assert "Content-Length" not in headers

    def test_a_lost_file_is_a_404_of_ours(self, field_file, settings):
        settings.X_ACCEL_PREFIX = "/stored-files/"
        field_file.storage.delete(field_file.name)
        with pytest.raises(Http404):
            send(field_file)


@pytest.mark.django_db
class TestPages:
    def test_the_address_of_an_image_understands_ranges(self, client):
        image = factories.clean_image()
        address = reverse("imagedb:image-file", args=[image.public_id])
        whole, part = client.get(address), client.get(address, headers={"Range": "bytes=8-15"})
        assert part.status_code == 206
        assert part.getvalue() == whole.getvalue()[8:16]

    def test_no_part_of_what_may_not_be_seen(self, client):
        image = factories.clean_image(visibility="private")
        address = reverse("imagedb:image-file", args=[image.public_id])
        headers = {"Range": "bytes=0-4", "If-None-Match": f'"{image.rendition_sha256}"'}
        assert client.get(address, headers=headers).status_code == 404
