"""Files in small parts, for tests of uploads."""

import io

import numpy as np
from django.contrib.auth.models import Group, User

from imagedb.models.uploads import Upload
from imagedb.services import uploads
from scooter_site.common.groups import RESEARCHERS

PART_SIZE = 1000


def researcher(name: str = "researcher") -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    return user


def random_bytes(count: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(count)


def begun(user: User, content: bytes, filename: str = "roofs.zip", part_size: int = PART_SIZE) -> Upload:
    """An upload of ``content`` whose parts are small."""
    upload = uploads.begin_upload(user, filename, len(content))
    Upload.objects.filter(pk=upload.pk).update(part_size=part_size)
    upload.refresh_from_db()
    return upload


def part(content: bytes, number: int, part_size: int = PART_SIZE) -> bytes:
    return content[(number - 1) * part_size : number * part_size]


def send(upload: Upload, content: bytes, *numbers: int) -> None:
    for number in numbers or range(1, upload.part_count + 1):
        uploads.store_part(upload, number, io.BytesIO(part(content, number, upload.part_size)))


def stored_bytes(upload: Upload) -> bytes:
    with upload.file.storage.open(upload.file.name, "rb") as file:
        return file.read()
