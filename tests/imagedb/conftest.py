"""Fixtures of the catalogue's tests."""

from pathlib import Path

import pytest

from scooter_site.common.storage import protected_storage
from tests.imagedb.manifests import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder to put a manifest and images into."""
    return Folder(tmp_path)


@pytest.fixture
def empty_storage() -> None:
    """No files of earlier tests, whose rows have been rolled back, among those of this one."""
    storage = protected_storage()
    for file in list(storage.listing()):
        storage.delete(file.name)
