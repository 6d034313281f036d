"""Downloads of single images through the API."""

import uuid

import pytest
from django.core.files.base import ContentFile
from rest_framework.test import APIClient

from imagedb.models import Image
from tests import factories
from tests.imagedb.api_clients import IMAGES, body, file_address, user, with_token
from tests.imagedb.manifests import stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return APIClient()


class TestFiles:
    @pytest.fixture
    def image(self):
        return factories.clean_image()

    def test_original_and_rendition_byte_for_byte(self, client, image):
        for address, field_file, part in (
            (file_address(image), image.original, "original"),
            (file_address(image) + "?rendition=true", image.rendition, "rendition"),
            (file_address(image) + "?rendition=false", image.original, "original"),
        ):
            response = client.get(address)
            assert body(response) == stored(field_file)
            assert response.headers["Content-Type"] == "image/png"
            assert response.headers["Content-Length"] == str(image.original_bytes)
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Content-Disposition"] == f'inline; filename="{image.public_id}-{part}.png"'
            assert response.headers["Cache-Control"] == "public, max-age=3600"

    def test_not_modified(self, client, image):
        first = client.get(file_address(image))
        body(first)
        etag = first.headers["ETag"]
        assert etag == f'"{image.original_sha256}"'
        for given in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = client.get(file_address(image), headers={"If-None-Match": given})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
        changed = client.get(file_address(image), headers={"If-None-Match": '"other"'})
        body(changed)
        assert changed.status_code == 200

    def test_what_is_not_public_is_cached_by_its_reader_only(self):
        image = factories.clean_image(visibility="registered")
        response = with_token(user("member", accepted_terms=True)).get(file_address(image))
        body(response)
        assert response.headers["Cache-Control"] == "private, max-age=3600"

    @pytest.mark.parametrize("accept", ["image/png", "image/*", "application/json", "*/*", "text/html"])
    def test_any_client_gets_it(self, client, image, accept):
        response = client.get(file_address(image), headers={"Accept": accept})
        body(response)
        assert response.status_code == 200
        assert client.get(f"{IMAGES}{uuid.uuid4()}/file/", headers={"Accept": accept}).json()["detail"]

    def test_thumbnail(self, client, image):
        response = client.get(f"{IMAGES}{image.public_id}/thumbnail/")
        assert body(response) == stored(image.thumbnail)

    def test_a_file_the_storage_has_lost(self, client, image, caplog):
        image.original.storage.delete(image.original.name)
        assert client.get(file_address(image)).status_code == 404
        assert image.original.name in caplog.text

    def test_a_stored_page_is_never_sent_as_one(self, client, image):
        """Whatever got into the storage, and under whatever name: a browser runs nothing of it."""
        page = ContentFile(b"<script>alert(1)</script>")
        Image.objects.filter(pk=image.pk).update(original=image.original.storage.save("x/evil.html", page))
        response = client.get(file_address(image))
        body(response)
        assert response.headers["Content-Type"] == "application/octet-stream"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
