"""Fixtures of all tests."""

from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache

from scooter_site.common.groups import RESEARCHERS

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real images and ratings, kept beside the project because they may not be part of it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder shared/data with real images and ratings is not beside the project")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Figures that pages keep for a while are those of rows that are gone: the next test's have the same ids."""
    cache.clear()


@pytest.fixture
def empty_storage() -> None:
    """No files of earlier tests, whose rows have been rolled back, among those of this one."""
    from scooter_site.common.storage import protected_storage  # once the settings are there

    storage = protected_storage()
    for file in list(storage.listing()):
        storage.delete(file.name)


@pytest.fixture
def researcher(client) -> User:
    """A signed-in member of the Researchers group."""
    user = User.objects.create_user("researcher", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    client.force_login(user)
    return user


@pytest.fixture
def viewer(client) -> User:
    """A signed-in member of the staff who may look at images and imports, and do nothing."""
    user = User.objects.create_user("viewer", is_staff=True)
    for codename in ("view_image", "view_importbatch"):
        user.user_permissions.add(Permission.objects.get(codename=codename))
    client.force_login(user)
    return user
