"""Archives of images that are kept in a bucket of a real S3-compatible server."""

import hashlib
import io
import os
import zipfile
import zlib

import pytest
from django.core.files.base import ContentFile
from rest_framework.test import APIClient

from imagedb.archives import ContentLost
from imagedb.models import Image
from tests import factories
from tests.imagedb.api_clients import body
from tests.services.s3 import files_in_bucket

pytestmark = [pytest.mark.services, pytest.mark.django_db]
ARCHIVE = "/api/v1/images/archive/"
LARGE = 9_000_000  # fetched in three parts


@pytest.fixture
def bucket(s3_address, settings, request):
    name = f"archive-{hashlib.sha256(request.node.name.encode()).hexdigest()[:20]}"
    with files_in_bucket(s3_address, name, settings):
        yield


@pytest.fixture
def contents(bucket) -> dict[str, bytes]:
    """Originals by public id: more than are fetched at a time, and a large one among them."""
    made = {}
    for number in range(40):
        image = factories.clean_image()
        content = os.urandom(LARGE if number == 20 else 1000 + number)
        image.original.save("image.png", ContentFile(content), save=False)
        image.original_bytes, image.original_crc32 = len(content), zlib.crc32(content)
        image.original_sha256 = hashlib.sha256(content).hexdigest()
        image.save()
        made[str(image.public_id)] = content
    return made


def test_every_image_is_there_and_the_rest_can_be_asked_for(contents):
    client = APIClient()
    response = client.get(ARCHIVE)
    whole = body(response)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.testzip() is None
        names = {name.rpartition("/")[2].removesuffix(".png"): name for name in archive.namelist() if "/" in name}
        assert {public_id: archive.read(name) for public_id, name in names.items()} == contents
    for start in (100, 30_000, 5_000_000, len(whole) - 5):
        rest = client.get(ARCHIVE, headers={"Range": f"bytes={start}-", "If-Range": response.headers["ETag"]})
        assert (rest.status_code, body(rest)) == (206, whole[start:])


@pytest.mark.parametrize("size", [1010, LARGE])
def test_a_lost_object_breaks_the_download_off(contents, size, caplog):
    image = Image.objects.get(original_bytes=size)
    image.original.storage.delete(image.original.name)
    response = APIClient().get(ARCHIVE)
    with pytest.raises(ContentLost):
        body(response)
    assert f"was broken off: {image.original.name} cannot be read" in caplog.text


@pytest.mark.parametrize(("size", "other"), [(1010, 1011), (LARGE, LARGE + 1)])
def test_so_does_one_of_another_size(contents, size, other, caplog):
    image = Image.objects.get(original_bytes=size)
    image.original.storage.save(image.original.name, ContentFile(bytes(other)))
    response = APIClient().get(ARCHIVE)
    with pytest.raises(ContentLost):
        body(response)
    assert f"{image.original.name} has {other} bytes, the database says {size}" in caplog.text
