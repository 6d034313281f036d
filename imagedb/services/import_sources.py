"""Where the files of an import are: opened alike for planning and for the work, however often."""

import functools
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from imagedb.image_files import ArchiveFiles, FileFinder, FileProblem, FolderFiles, ImageFiles, find_manifest
from imagedb.manifest import normalise_path
from imagedb.models import ImportBatch
from imagedb.models.imports import ImportSource
from imagedb.prefix_files import PrefixFiles, incoming_prefix
from imagedb.services.import_state import ImportFailed
from scooter_site.common.storage import LocalStorage, private_storage

# Catalogue images have about 100 kB: one request for most of them, and one for an archive's directory of thousands.
READ_AHEAD_BYTES = 256 * 1024


class ObjectReader(io.RawIOBase):
    """A stored object, read in ranges: an archive of gigabytes takes neither memory nor disk."""

    def __init__(self, storage: Any, name: str) -> None:
        """``storage`` is an ObjectStorage. Raises FileNotFoundError."""
        super().__init__()
        self._storage, self._name = storage, name
        self._size = storage.describe(name).size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("a position before the beginning of the object")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        stream, _ = self._storage.stream(self._name, self._position, end)
        content = stream.read()
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)


@contextmanager
def opened(batch: ImportBatch) -> Iterator[ImageFiles]:
    """The files of an import, to be read one at a time. Raises ImportFailed if they cannot be."""
    try:
        if batch.source == ImportSource.FOLDER:
            yield FolderFiles(Path(batch.location))
        elif batch.source == ImportSource.PREFIX:
            yield _prefix_files(batch.location, batch.pk, batch.handout)
        elif batch.location:
            yield ArchiveFiles(Path(batch.location), Path(batch.location).name)
        else:
            with _stored_archive(batch) as file:
                yield ArchiveFiles(file, batch.source_name or "upload")
    except FileProblem as problem:
        raise ImportFailed(str(problem)) from problem


@contextmanager
def _stored_archive(batch: ImportBatch) -> Iterator[Any]:
    storage, name = batch.archive.storage, str(batch.archive.name)
    try:
        if isinstance(storage, LocalStorage):
            file: Any = storage.open(name, "rb")
        else:
            file = io.BufferedReader(ObjectReader(storage, name), READ_AHEAD_BYTES)
    except FileNotFoundError as error:
        raise ImportFailed("The archive is no longer in the storage. Upload it again.") from error
    with file:
        yield file


@contextmanager
def opened_manifest(batch: ImportBatch, files: ImageFiles) -> Iterator[tuple[IO[bytes], str]]:
    """The manifest of an import that workers do, as a stream, and the folder it lies in among the files.

    It is taken out of ``files``. Raises ImportFailed.
    """
    if batch.manifest:
        with batch.manifest.open("rb") as file:
            yield file, ""
        return
    try:
        is_named = batch.source == ImportSource.PREFIX and batch.source_name
        name = _named_manifest(batch.source_name, files) if is_named else find_manifest(files.names)
        stream = files.open_manifest(name)
    except FileProblem as problem:
        raise ImportFailed(str(problem)) from problem
    files.names.remove(name)
    with stream:
        yield stream, str(PurePosixPath(name).parent)


def _named_manifest(given: str, files: ImageFiles) -> str:
    try:
        return FileFinder(files.names).find(normalise_path(given))
    except ValueError as problem:
        raise FileProblem(f"The manifest {given} in {files.label}: {problem}") from problem


def has_bucket() -> bool:
    """Whether files are kept in a bucket, from which imports can be made too."""
    return not isinstance(private_storage(), LocalStorage)


def checked_prefix(prefix: str) -> str:
    """The prefix in its one form. Raises ImportFailed if there is no bucket, or imports must not read there."""
    if not has_bucket():
        raise ImportFailed("Files are kept on disk here, not in a bucket: there is no prefix to import from.")
    try:
        return incoming_prefix(prefix)
    except FileProblem as problem:
        raise ImportFailed(str(problem)) from problem


@functools.lru_cache(maxsize=1)
def _prefix_files(prefix: str, batch_id: int, handout: int) -> PrefixFiles:
    """Kept between a worker's turns at one import: listing a hundred thousand objects takes half a minute."""
    storage: Any = private_storage()
    return PrefixFiles(storage.client, storage.bucket_name, prefix)


def forget() -> None:
    """Free what is kept between turns."""
    _prefix_files.cache_clear()
