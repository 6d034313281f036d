"""Servers that several tests of this folder share."""

from collections.abc import Iterator

import pytest

from tests.services.s3 import s3_server


@pytest.fixture(scope="session")
def s3_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running S3-compatible server with an empty bucket."""
    with s3_server(tmp_path_factory.mktemp("s3")) as address:
        yield address
