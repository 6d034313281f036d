"""Three places for files, by who may see them; local files and S3 (object_storage.py) behind the same names.

- ``public``: for files that anyone may fetch without a check, by a link that stays the same; nothing yet, since who
  may see an image can change;
- ``protected``: served after a permission check, by the app or a short-lived link, e.g. all images;
- ``private``: there are no links to it, e.g. uploaded archives; only the app reads it.

Object names are opaque (``opaque_name``), and the content type is ours, never the uploader's.
"""

import glob
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.utils.deconstruct import deconstructible

LEVELS = ("public", "protected", "private")
LINK_SECONDS = 300
FILE_MODE = 0o640
UNFINISHED_ENDING = ".part"  # of what is being written under another name

# What files of ours may be, by ending. Nothing here can run as a script in a browser.
CONTENT_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".zip": "application/zip",
    ".csv": "text/csv; charset=utf-8",
    ".gz": "application/gzip",
    ".jsonl": "application/x-ndjson",
}


def content_type(name: str) -> str:
    """The content type of a stored file, from the ending that ``opaque_name`` gave it."""
    return CONTENT_TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")


@dataclass(frozen=True)
class StoredFile:
    """What a storage says of one of its files, without reading it."""

    name: str
    size: int
    modified_at: datetime
    md5: str | None = None  # where the storage knows it; a difference proves nothing (object_storage.py)
    content_type: str | None = None  # where the storage keeps one


class FileSection:
    """Some bytes of a file, for a WSGI server that sends files by itself (sendfile) and for one that does not.

    gunicorn asks for the file's number, sends from its position, and as many bytes as Content-Length says. Other
    servers read; they must not get more than the section.
    """

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        file.seek(start)
        self._file = file
        self._left = stop - start
        self.fileno = file.fileno
        self.seek = file.seek
        self.tell = file.tell
        self.close = file.close

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the section, at most ``size``."""
        content = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(content)
        return content


class LocalStorage(FileSystemStorage):
    """Files below MEDIA_ROOT, with no address of their own: a view serves them after its check."""

    ERRORS: tuple[type[Exception], ...] = (OSError,)
    TRANSIENT_ERRORS: tuple[type[Exception], ...] = ()

    def __init__(self, location: str | Path) -> None:
        # Names are unique by themselves, so that the same name is the same file: work done again writes over it.
        super().__init__(location=location, base_url=None, file_permissions_mode=FILE_MODE, allow_overwrite=True)

    @property
    def level(self) -> str:
        """Which of the three places it is."""
        return Path(self.location).name

    def _save(self, name: str, content: File) -> str:
        """Write a file so that it is there whole or not at all, also when the power fails.

        It is written under another name and then renamed, because a reader, or a worker that takes over from a killed
        one, must never meet half a file. Its bytes are on the disk before that (fsync): the database promises as much
        of the row that comes next, and an original can be got from nowhere else. It costs about a millisecond, next
        to some fifty for making a rendition. The folder is not synchronised: losing a new name along with its row is
        no harm, and verify_storage tells when the row survived alone.
        """
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED_ENDING)
        try:
            with open(handle, "wb") as file:
                for chunk in content.chunks():
                    file.write(chunk.encode() if isinstance(chunk, str) else chunk)
                file.flush()
                os.fchmod(file.fileno(), FILE_MODE)
                os.fsync(file.fileno())
            self._ensure_location_group_id(temporary)  # type: ignore[attr-defined]  # the stubs do not know it
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name

    def delete_unfinished(self, name: str) -> None:
        """Remove what a killed process left of its tries to write a file. ``name`` may lack its ending."""
        path = Path(self.path(name))
        for temporary in path.parent.glob(f".{glob.escape(path.name)}.*{UNFINISHED_ENDING}"):
            temporary.unlink(missing_ok=True)

    def download_link(self, name: str, content_disposition: str) -> str | None:
        """Where a browser may fetch a file itself: nowhere, it is sent through the app."""
        return None

    def stream(self, name: str, start: int = 0, stop: int | None = None) -> tuple[FileSection, int]:
        """The bytes from ``start`` up to ``stop``, to be read and closed, and how many they are.

        Raises FileNotFoundError.
        """
        file = open(self.path(name), "rb")  # noqa: SIM115 - whoever reads it closes it
        end = os.fstat(file.fileno()).st_size if stop is None else stop
        return FileSection(file, start, end), end - start

    def describe(self, name: str) -> StoredFile:
        """Size and time of one file. Raises FileNotFoundError."""
        return _described(name, os.stat(self.path(name)))

    def listing(self) -> Iterator[StoredFile]:
        """Every file, by name in the order of its UTF-8 bytes; one folder at a time is in memory."""
        yield from self._listing("")

    def _listing(self, folder: str) -> Iterator[StoredFile]:
        try:
            entries = list(os.scandir(Path(self.location, folder)))
        except FileNotFoundError:  # nothing was stored yet, or the last file was deleted meanwhile
            return
        # As S3 orders keys: the slash after a folder's name counts.
        names = sorted(f"{folder}{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries)
        for name in names:
            if name.endswith("/"):
                yield from self._listing(name)
            else:
                with suppress(FileNotFoundError):
                    yield self.describe(name)

    def whereabouts(self) -> str:
        """Where the files of all levels are, for people."""
        return f"the folder {Path(self.location).parent}"


def _described(name: str, status: os.stat_result) -> StoredFile:
    return StoredFile(name, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


@deconstructible
class opaque_name:
    """``upload_to`` that keeps nothing of the uploaded name but an ending we know to be safe."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, instance: object, filename: str) -> str:
        ending = PurePosixPath(filename).suffix.lower()
        token = uuid.uuid4().hex
        return f"{self.folder}/{token[:2]}/{token}{ending if ending in CONTENT_TYPES else '.bin'}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, opaque_name) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)


def _named(level: str) -> Callable[[], Storage]:
    def storage() -> Storage:
        return storages[level]

    storage.__name__ = storage.__qualname__ = f"{level}_storage"
    return storage


# Callables, so that migrations do not depend on the settings.
public_storage = _named("public")
protected_storage = _named("protected")
private_storage = _named("private")
