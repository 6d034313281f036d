"""Where files go, and what they are called and said to be."""

import pytest
from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models.fields.files import FieldFile

from imagedb.models import Image
from scooter_site.common.s3_url import parse_s3_url
from scooter_site.common.storage import content_type, delete_files_after_commit, opaque_name


class TestNames:
    @pytest.mark.parametrize(
        ("uploaded", "ending"),
        [("a.PNG", ".png"), ("../../etc/passwd", ".bin"), ("a.html", ".bin"), ("a.svg", ".bin"), ("a.jpg.php", ".bin")],
    )
    def test_nothing_is_left_of_an_uploaded_name_but_a_safe_ending(self, uploaded, ending):
        name = opaque_name("original")(None, uploaded)
        folder, first_two, token = name.removesuffix(ending).split("/")
        assert (folder, first_two) == ("original", token[:2])
        assert len(token) == 32
        assert set(token) <= set("0123456789abcdef")

    def test_names_differ(self):
        assert len({opaque_name("x")(None, "a.png") for _ in range(100)}) == 100

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("x/a.png", "image/png"),
            ("x/a.jpg", "image/jpeg"),
            ("x/a.webp", "image/webp"),
            ("x/a.html", "application/octet-stream"),
            ("x/a", "application/octet-stream"),
        ],
    )
    def test_content_type(self, name, expected):
        assert content_type(name) == expected


@pytest.mark.django_db
class TestDeletion:
    @pytest.fixture
    def files(self) -> list[FieldFile]:
        image = Image()
        image.original.save("a.png", ContentFile(b"A"), save=False)
        image.thumbnail.save("b.jpg", ContentFile(b"B"), save=False)
        return [image.original, image.thumbnail]

    def test_after_the_commit_only(self, files, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            delete_files_after_commit(iter(files))
            assert all(file.storage.exists(file.name) for file in files)
        assert not any(file.storage.exists(file.name) for file in files)

    def test_not_after_a_roll_back(self, files, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            delete_files_after_commit(files)
            transaction.set_rollback(True)
        assert all(file.storage.exists(file.name) for file in files)


class TestS3Address:
    def test_all_parts(self):
        location = parse_s3_url("https://key:a%2Fb%2Bc@files.example.org:9000/images?region=eu-west-1")
        assert location.storage_options() == {
            "bucket_name": "images",
            "region_name": "eu-west-1",
            "access_key": "key",
            "secret_key": "a/b+c",
            "endpoint_url": "https://files.example.org:9000",
            "public_endpoint": None,
            "addressing_style": "path",
        }

    def test_amazon(self):
        location = parse_s3_url("s3://key:secret@/images?region=eu-west-1")
        assert (location.endpoint, location.addressing_style) == (None, "virtual")

    @pytest.mark.parametrize(
        ("address", "words"),
        [
            ("https://key:hush@host/bucket", "region is missing"),
            ("https://host/bucket?region=x", "access key and secret are missing"),
            ("https://key:hush@host/?region=x", "the bucket's name"),
            ("https://key:hush@host/a/b?region=x", "the bucket's name"),
            ("ftp://key:hush@host/bucket?region=x", "must begin with"),
            ("https://key:hush@host/bucket?region=x&regoin=y", "unknown options: regoin"),
        ],
    )
    def test_what_is_wrong_is_named_without_the_secret(self, address, words):
        with pytest.raises(ValueError, match=words) as caught:
            parse_s3_url(address)
        assert "hush" not in str(caught.value)
