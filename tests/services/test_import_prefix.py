"""Reading images for an import from a prefix of a real S3-compatible bucket."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from imagedb import prefix_files
from imagedb.image_files import FileProblem, RowFiles, find_manifest
from imagedb.manifest import ManifestReader
from imagedb.prefix_files import PrefixFiles
from tests.services.s3 import BUCKET, client

pytestmark = pytest.mark.services


class Bucket:
    """The bucket, filled for a test; remembers which objects were fetched."""

    def __init__(self, address: str) -> None:
        self.client = client(address)
        self.fetched: list[str] = []
        self.client.meta.events.register("before-call.s3.GetObject", self._note)

    def _note(self, params: dict[str, Any], **_: Any) -> None:
        self.fetched.append(params["url_path"].rsplit("/", 1)[-1])

    def put(self, **objects: bytes) -> None:
        for key, content in objects.items():
            self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def files(self, prefix: str = "incoming/set") -> PrefixFiles:
        return PrefixFiles(self.client, BUCKET, prefix)


@pytest.fixture
def bucket(s3_address: str) -> Iterator[Bucket]:
    bucket = Bucket(s3_address)
    yield bucket
    for page in bucket.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="incoming"):
        for entry in page.get("Contents", ()):
            bucket.client.delete_object(Bucket=BUCKET, Key=entry["Key"])


def test_names_junk_and_content(bucket):
    bucket.put(
        **{
            "incoming/set/a.png": b"A",
            "incoming/set/x/y/b c+d%.png": b"B",
            "incoming/set/caf\u0065\u0301.png": b"decomposed",
            "incoming/set/.DS_Store": b"junk",
            "incoming/set/__MACOSX/._a.png": b"junk",
            "incoming/set/more.zip": b"PK",
            "incoming/set/empty.png": b"",
            "incoming/set-of-another/c.png": b"C",
        }
    )
    files = bucket.files()
    assert files.names == ["a.png", "caf\u00e9.png", "empty.png", "x/y/b c+d%.png"]
    assert files.junk_count == 2
    assert files.refused == ["more.zip is an archive within the prefix; unpack it and put its files there"]
    assert files.read("x/y/b c+d%.png") == b"B"
    assert files.read("caf\u00e9.png") == b"decomposed"
    assert files.read("empty.png") == b""
    rows = RowFiles(files, ["b c+d%.png", "c.png"])
    assert rows.read("b c+d%.png") == b"B"
    with pytest.raises(FileProblem, match="in the prefix incoming/set/ of the bucket: no such file"):
        rows.read("c.png")


def test_more_than_one_page_of_the_listing(bucket, monkeypatch):
    bucket.put(**{f"incoming/set/{number}.png": b"A" for number in range(7)})
    bucket.client.meta.events.register(
        "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=3)
    )
    assert len(bucket.files().names) == 7


def test_size_is_judged_before_the_download(bucket, monkeypatch):
    bucket.put(**{"incoming/set/a.png": b"four", "incoming/set/b.png": b"ok"})
    monkeypatch.setattr(prefix_files, "MAX_FILE_BYTES", 3)
    files = bucket.files()
    with pytest.raises(FileProblem, match=r"a\.png has .* the limit"):
        files.read("a.png")
    assert bucket.fetched == []
    assert files.read("b.png") == b"ok"
    assert bucket.fetched == ["b.png"]


def test_an_object_that_has_grown_since(bucket, monkeypatch):
    bucket.put(**{"incoming/set/a.png": b"ok"})
    monkeypatch.setattr(prefix_files, "MAX_FILE_BYTES", 3)
    files = bucket.files()
    bucket.put(**{"incoming/set/a.png": b"no more"})
    with pytest.raises(FileProblem, match="the limit"):
        files.read("a.png")


def test_an_object_that_is_gone(bucket):
    bucket.put(**{"incoming/set/a.png": b"A"})
    files = bucket.files()
    bucket.client.delete_object(Bucket=BUCKET, Key="incoming/set/a.png")
    with pytest.raises(FileProblem, match=r"a\.png is not in the bucket any more"):
        files.read("a.png")


def test_other_errors_are_not_taken_for_a_problem_of_the_file(bucket):
    bucket.put(**{"incoming/set/a.png": b"A"})
    files = bucket.files()
    files._bucket = "no-such-bucket"
    with pytest.raises(ClientError):
        files.read("a.png")


def test_manifest_is_read_as_a_stream(bucket, monkeypatch):
    lines = b"".join(b'{"filename": "%d.png", "kind": "clean", "class_index": 1}\n' % number for number in range(2_000))
    bucket.put(**{"incoming/set/manifest.jsonl": lines, "incoming/set/1.png": b"A"})
    monkeypatch.setattr(prefix_files, "MAX_FILE_BYTES", 3)
    files = bucket.files()
    with files.open_manifest(find_manifest(files.names, "prefix")) as stream:
        assert sum(1 for _ in ManifestReader(stream)) == 2_000
    monkeypatch.setattr(prefix_files, "MAX_MANIFEST_BYTES", 3)
    with pytest.raises(FileProblem, match="the limit"):
        files.open_manifest("manifest.jsonl")


def test_the_sites_own_files_cannot_be_read(bucket):
    bucket.put(**{"private/import/secret.zip": b"secret"})
    for prefix in ("private/import", "incoming/../private/import", ""):
        with pytest.raises(FileProblem, match="below incoming/"):
            bucket.files(prefix)


def test_an_empty_prefix(bucket):
    assert bucket.files().names == []
