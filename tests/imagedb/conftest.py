"""Fixtures of the catalogue's tests."""

from pathlib import Path

import pytest

from tests.imagedb.manifests import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder to put a manifest and images into."""
    return Folder(tmp_path)
