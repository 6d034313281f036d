"""Where the parts of an upload go: at their places in one file on disk, or straight to the bucket (bucket_parts.py).

Both kinds have the same methods, so that the services need not know which one they speak to.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast

from django.core.files.base import ContentFile

from imagedb.models.uploads import Upload
from scooter_site.common.storage import LocalStorage

if TYPE_CHECKING:
    from imagedb.bucket_parts import BucketParts
    from scooter_site.common.object_storage import ObjectStorage

MEBIBYTE = 1024 * 1024
# S3 takes no more parts than this, and wants at least 5 MiB in all but the last.
LARGEST_PART_COUNT = 10_000
NUMBERS_NAMED = 20


class UploadRefused(ValueError):
    """What was sent cannot be taken: ``field`` names what is wrong, the message says what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class UploadConflict(RuntimeError):
    """The upload is not in a state for this; the message says what to do."""


class StorageFull(RuntimeError):
    """There is no room for what was sent."""


class Source(Protocol):
    """Anything to read bytes from: a file, or the body of a request."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class ArrivedPart:
    """A part that is there: ``number`` from 1, ``size`` in bytes, ``etag`` as S3 gave it, on disk its SHA-256."""

    number: int
    size: int
    etag: str


def part_size_for(size: int, usual: int) -> int:
    """Bytes per part: the usual size, or the next whole MiB that keeps ``size`` bytes within 10,000 parts."""
    smallest = -(-size // LARGEST_PART_COUNT)
    return max(usual, -(-smallest // MEBIBYTE) * MEBIBYTE)


def size_of_part(upload: Upload, number: int) -> int:
    """How many bytes part ``number`` must have. Raises UploadRefused if there is no such part."""
    if not 1 <= number <= upload.part_count:
        raise UploadRefused(
            "number", f"There is no part {number}: the parts of this upload are 1 to {upload.part_count}."
        )
    return upload.part_size if number < upload.part_count else upload.size - (upload.part_count - 1) * upload.part_size


def check_all_arrived(upload: Upload, arrived: Iterable[ArrivedPart]) -> None:
    """Raise UploadConflict, naming the parts, unless every part is there and as long as it must be."""
    sizes = {part.number: part.size for part in arrived}
    missing = [number for number in range(1, upload.part_count + 1) if number not in sizes]
    wrong = [number for number, size in sorted(sizes.items()) if size != _size_or_none(upload, number)]
    if missing or wrong:
        problems = [
            f"{'Part' if len(numbers) == 1 else 'Parts'} {_listed(numbers)} {state}."
            for numbers, state in ((missing, "not there yet"), (wrong, "not as long as announced"))
            if numbers
        ]
        raise UploadConflict(" ".join([*problems, "Send what is missing again, then complete the upload."]))


def _size_or_none(upload: Upload, number: int) -> int | None:
    with suppress(UploadRefused):
        return size_of_part(upload, number)
    return None


def _listed(numbers: list[int]) -> str:
    named = ", ".join(map(str, numbers[:NUMBERS_NAMED]))
    left_out = len(numbers) - NUMBERS_NAMED
    return f"{named} and {left_out} more are" if left_out > 0 else f"{named} {'is' if len(numbers) == 1 else 'are'}"


@contextmanager
def received(content: Source, size: int, folder: str) -> Iterator[tuple[IO[bytes], str]]:
    """Read exactly ``size`` bytes into a nameless file in ``folder``; gives the file and its SHA-256.

    Whatever happens, nothing stays behind. Raises UploadRefused if there are fewer bytes or more, and StorageFull,
    also when what is done with the file finds no room.
    """
    digest, count = hashlib.sha256(), 0
    with tempfile.TemporaryFile(dir=folder) as file, _no_room_told():
        # One byte more than announced is enough to know that there are too many.
        while count <= size and (chunk := content.read(min(MEBIBYTE, size + 1 - count))):
            count += len(chunk)
            digest.update(chunk)
            file.write(chunk)
        if count != size:
            found = "more" if count > size else f"only {count:,}"
            raise UploadRefused("body", f"This part must have {size:,} bytes, but {found} came. Send it again.")
        file.seek(0)
        yield file, digest.hexdigest()


@contextmanager
def _no_room_told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(
                "The server's disk is full. Tell its administrator, then send this part again."
            ) from error
        raise


class DiskParts:
    """Each part is written at its place in one file, which has its final name from the beginning."""

    is_direct = False
    # Small, because a slow sender keeps one of the web server's few threads for as long as a part takes.
    usual_part_size = 8 * MEBIBYTE

    def __init__(self, upload: Upload, storage: LocalStorage) -> None:
        self.upload = upload
        self.storage = storage
        # Kept, because an abandoned upload loses the name of its file before the file is deleted.
        self._name = str(upload.file.name)

    @property
    def _path(self) -> Path:
        return Path(self.storage.path(self._name))

    @property
    def folder(self) -> str:
        """The folder that the file is in, so that what is written beside it is on the same disk."""
        return str(self._path.parent)

    def begin(self) -> None:
        """Make the empty file. Raises UploadRefused if the disk has no room for it."""
        self.storage.save(self._name, ContentFile(b""))
        free = shutil.disk_usage(self.folder).free
        if free < self.upload.size:
            self.discard()
            raise UploadRefused(
                "size", f"The server has room for {free:,} bytes only. Send less, or ask its administrator for room."
            )

    def write(self, number: int, content: IO[bytes]) -> None:
        """Put a part in its place."""
        try:
            with self._path.open("r+b") as file:
                file.seek((number - 1) * self.upload.part_size)
                shutil.copyfileobj(content, file, MEBIBYTE)
        except FileNotFoundError:
            raise UploadConflict("The server has lost this upload. Begin a new one.") from None

    def arrived(self) -> list[ArrivedPart]:
        """The parts that are there, by number."""
        return recorded(self.upload)

    def finish(self) -> list[ArrivedPart]:
        """Make sure that the whole file is on the disk. Raises UploadConflict if it is not whole."""
        arrived = self.arrived()
        check_all_arrived(self.upload, arrived)
        try:
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            size = None
        if size != self.upload.size:
            raise UploadConflict("The server has lost part of this upload. Begin a new one.")
        return arrived

    def discard(self) -> None:
        """Delete the file. Harmless when there is none."""
        self.storage.delete(self._name)

    def last_arrival(self) -> datetime | None:
        """When the last part came; None if there is no file."""
        with suppress(FileNotFoundError):
            return datetime.fromtimestamp(self._path.stat().st_mtime, UTC)
        return None


def recorded(upload: Upload) -> list[ArrivedPart]:
    """The parts of which the database knows."""
    return [ArrivedPart(*values) for values in upload.parts.order_by("number").values_list("number", "size", "etag")]


def parts_of(upload: Upload) -> "DiskParts | BucketParts":
    """Where the parts of this upload are, by the storage of its file."""
    storage = upload.file.storage
    if isinstance(storage, LocalStorage):
        return DiskParts(upload, storage)
    # Only where a bucket is in use: importing boto3 takes a third of a second.
    from imagedb.bucket_parts import BucketParts

    return BucketParts(upload, cast("ObjectStorage", storage))
