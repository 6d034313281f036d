"""A real S3-compatible server for a test, from a wheel: nothing needs to be installed on the machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.storage import storages

from scooter_site.common.s3_url import storage_settings
from scooter_site.common.stored_files import file_columns
from tests.services.site import free_port, wait_until

BUCKET = "scooter-test"
ACCESS_KEY, SECRET_KEY = "test-key", "test/secret+key"


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Start SeaweedFS with an empty bucket and its data in ``folder``; gives its address, ``http://127.0.0.1:PORT``."""
    ports = {name: free_port() for name in ("s3", "master", "volume", "filer", "admin")}
    address = f"http://127.0.0.1:{ports['s3']}"
    command = [
        str(Path(sys.executable).with_name("weed")),
        "mini",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *[f"-{name}.port={port}" for name, port in ports.items()],
        # Unless told otherwise, gRPC takes the ports above plus 10,000, which need not be free.
        *[f"-{name}.port.grpc={free_port()}" for name in ports],
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-webdav=false",
        "-admin.ui=false",
        "-master.telemetry=false",
        f"-bucket={BUCKET}",
    ]
    # Nothing of our environment: it would read variables such as DEBUG as its own options.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    with (folder / "weed.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: _has_bucket(address), "the S3 server has its bucket", 90)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def s3_url(address: str, **options: str) -> str:
    """The S3_URL setting for a server of this module."""
    query = urlencode({"region": "us-east-1", **options})
    login = f"{quote(ACCESS_KEY, safe='')}:{quote(SECRET_KEY, safe='')}"
    return f"http://{login}@{address.removeprefix('http://')}/{BUCKET}?{query}"


def client(address: str, **options: Any) -> Any:
    """A plain client of the server, with none of the project's settings."""
    return boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        **options,
    )


def _has_bucket(address: str) -> bool:
    try:
        client(address).head_bucket(Bucket=BUCKET)
    except (ClientError, BotoCoreError):
        return False
    return True


@contextmanager
def files_in_bucket(address: str, bucket: str, settings: Any) -> Iterator[Any]:
    """Have all models keep their files in a new bucket of the server, within this process; gives a plain client."""
    plain = client(address)
    plain.create_bucket(Bucket=bucket)
    columns = [(column.model._meta.get_field(column.name), column.level) for column in file_columns()]
    before = [field.storage for field, _ in columns]
    url = s3_url(address).replace(f"/{BUCKET}?", f"/{bucket}?")
    settings.STORAGES = {**settings.STORAGES, **storage_settings(url, Path("unused"))}
    try:
        for field, level in columns:
            field.storage = storages[level]
        yield plain
    finally:
        for (field, _), storage in zip(columns, before, strict=True):
            field.storage = storage
