"""move_storage to a real bucket and back, killed on the way."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.services.s3 import BUCKET, client, s3_url

pytestmark = pytest.mark.services
PROJECT = Path(__file__).resolve().parent.parent.parent
FILE_COUNT = 600


@pytest.fixture
def bucket(s3_address):
    """A bucket of its own: its address as a setting, and functions that give its keys and its objects."""
    plain = client(s3_address)
    name = "moving"
    plain.create_bucket(Bucket=name)

    def keys() -> list[str]:
        pages = plain.get_paginator("list_objects_v2").paginate(Bucket=name)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def contents() -> dict[str, bytes]:
        return {key: plain.get_object(Bucket=name, Key=key)["Body"].read() for key in keys()}

    yield s3_url(s3_address).replace(f"/{BUCKET}?", f"/{name}?"), keys, contents
    for key in keys():
        plain.delete_object(Bucket=name, Key=key)
    plain.delete_bucket(Bucket=name)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def begin(media: Path, s3: str, *arguments: str) -> subprocess.Popen:
    environment = {**os.environ, "MEDIA_ROOT": str(media), "S3_URL": s3, "NEW_S3_URL": arguments[-1]}
    named = ["NEW_S3_URL" if "://" in argument else argument for argument in arguments]
    return subprocess.Popen(
        [sys.executable, "manage.py", "move_storage", *named],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen, status: int = 0) -> str:
    output, errors = process.communicate(timeout=300)
    assert process.returncode == status, errors
    return output


def kill_when(process: subprocess.Popen, count) -> None:
    """SIGKILL as soon as a tenth of the files are there, long before all of them are."""
    deadline = time.monotonic() + 120
    while count() < FILE_COUNT // 10:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def numbers(output: str) -> tuple[int, int]:
    copied, there = re.search(r"([\d,]+) files copied .*, ([\d,]+) were there already", output).groups()
    return int(copied.replace(",", "")), int(there.replace(",", ""))


def test_to_a_bucket_and_back_killed_each_time(bucket, tmp_path):
    url, keys, in_bucket = bucket
    media, back = tmp_path / "media", tmp_path / "back"
    random = np.random.default_rng(1)
    for number in range(FILE_COUNT):
        path = media / "protected" / "original" / f"{number % 16:02x}" / f"{number:032x}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.bytes(20_000 + number))
    (media / "private" / "upload" / "ab").mkdir(parents=True)
    # Sent in parts, so that its ETag is no MD5 and it is read back.
    (media / "private" / "upload" / "ab" / "large.zip").write_bytes(random.bytes(9_000_000))
    original = contents(media)

    process = begin(media, "", "--to", url)
    kill_when(process, lambda: len(keys()))
    arrived = in_bucket()
    assert 0 < len(arrived) < len(original)
    assert all(original[name] == content for name, content in arrived.items())
    copied, there = numbers(finish(begin(media, "", "--to", url)))
    assert copied + there == len(original)
    assert there >= len(arrived)
    assert in_bucket() == original
    assert numbers(finish(begin(media, "", "--to", url))) == (0, len(original))
    assert contents(media) == original

    process = begin(media, url, "--to-files", str(back))
    kill_when(process, lambda: len(list((back / "protected").rglob("*.png"))))
    whole = {name: content for name, content in contents(back).items() if not name.endswith(".part")}
    assert 0 < len(whole) < len(original)
    assert all(original[name] == content for name, content in whole.items())
    output = finish(begin(media, url, "--to-files", str(back), "--delete-source"))
    assert f"{len(original):,} files deleted from the present storage" in output
    assert {name: content for name, content in contents(back).items() if not name.endswith(".part")} == original
    assert in_bucket() == {}


def test_the_present_bucket_by_another_address_is_refused(bucket, tmp_path):
    url, keys, _ = bucket
    process = begin(tmp_path, url, "--delete-source", "--to", url.replace("127.0.0.1", "localhost"))
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 2, output
    assert "The new storage is the present one" in errors
    assert keys() == []


def test_a_service_that_does_not_answer_stops_it(tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.zip").write_bytes(b"x")
    process = begin(tmp_path, "", "--to", "http://key:hush@127.0.0.1:9/bucket?region=x")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Run it again to go on." in errors
    assert "hush" not in errors
