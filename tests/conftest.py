"""Fixtures of all tests."""

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real images and ratings, kept beside the project because they may not be part of it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder shared/data with real images and ratings is not beside the project")
    return SHARED_DATA
