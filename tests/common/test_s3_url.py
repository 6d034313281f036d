"""The address of a bucket: what it says, and what is refused."""

from pathlib import Path

import pytest

from scooter_site.common.s3_url import S3Location, parse_s3_url, storage_settings


def test_all_parts():
    assert parse_s3_url("https://k%2Fey:a%2Fb%2Bc%40@files.example.org:9000/images?region=eu-west-1") == S3Location(
        bucket_name="images",
        region_name="eu-west-1",
        access_key="k/ey",
        secret_key="a/b+c@",
        endpoint_url="https://files.example.org:9000",
        public_endpoint=None,
        addressing_style="path",
        signature_version="s3v4",
        checksum_mode="when_required",
    )


def test_all_options():
    location = parse_s3_url(
        "http://key:secret@[::1]:9000/images?region=local&public_endpoint=https://files.example.org/"
        "&addressing_style=virtual&signature_version=s3&checksum_mode=when_supported"
    )
    assert location.endpoint_url == "http://[::1]:9000"
    assert location.public_endpoint == "https://files.example.org"
    assert location.addressing_style == "virtual"
    assert location.signature_version == "s3"
    assert location.checksum_mode == "when_supported"


def test_amazon():
    location = parse_s3_url("s3://key:secret@/images?region=eu-west-1")
    assert (location.endpoint_url, location.addressing_style) == (None, "virtual")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("https://key:hush@host/bucket", "region is missing"),
        ("https://key:hush@host/bucket?region=", "region is missing"),
        ("https://host/bucket?region=x", "access key and secret are missing"),
        ("https://key:hush@/bucket?region=x", "the server's name is missing"),
        ("https://key:hush@host/?region=x", "the bucket's name"),
        ("https://key:hush@host/a/b?region=x", "the bucket's name"),
        ("ftp://key:hush@host/bucket?region=x", "must begin with https://"),
        ("https://key:hush@host/bucket?region=x&regoin=y", "unknown options: regoin"),
        ("https://key:hush@host/bucket?region=x&addressing_style=dns", "addressing_style must be path or virtual"),
        ("https://key:hush@host/bucket?region=x&signature_version=v4", "signature_version must be s3v4 or s3"),
        ("https://key:hush@host/bucket?region=x&checksum_mode=off", "checksum_mode must be when_required or"),
        ("https://key:hush@host/bucket?region=x&public_endpoint=host", "public_endpoint must be an address"),
        ("https://key:hush@host/bucket?region=x&public_endpoint=https://host/b", "public_endpoint must be an address"),
    ],
)
def test_what_is_wrong_is_named_without_the_secret(address, words):
    with pytest.raises(ValueError, match=words) as caught:
        parse_s3_url(address)
    assert "hush" not in str(caught.value)


def test_the_secret_is_in_no_text_for_people():
    assert "hush" not in repr(parse_s3_url("https://key:hush@host/bucket?region=x"))


def test_the_levels_have_places_of_their_own():
    local = storage_settings("", Path("/media"))
    assert {level: settings["OPTIONS"] for level, settings in local.items()} == {
        level: {"location": Path("/media") / level} for level in ("public", "protected", "private")
    }
    bucket = storage_settings("https://key:secret@host/bucket?region=x", Path("/media"))
    assert [settings["OPTIONS"]["level"] for settings in bucket.values()] == ["public", "protected", "private"]
    assert {settings["OPTIONS"]["bucket_name"] for settings in bucket.values()} == {"bucket"}
