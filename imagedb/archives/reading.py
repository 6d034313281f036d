"""From the pieces of a layout to blocks of bytes, large enough that sending them costs little.

A stored file that is missing, or has another size than the database says, ends it all with ``ContentLost``: a reader
must never get a wrong archive that looks like a right one. Content is not hashed on the way; who unpacks the archive
can (SHA256SUMS), and ``manage.py verify_storage`` does.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from imagedb.archives.layout import BLOCK_BYTES, StoredPart

Read = Callable[[StoredPart], bytes]

# Objects of a bucket are fetched this far ahead: enough to hide a round trip, and a bound on memory.
PREFETCH_THREADS = 8
PREFETCH_BYTES = 32 * BLOCK_BYTES
PREFETCH_PART_BYTES = 4 * BLOCK_BYTES


class ContentLost(Exception):
    """A stored file is not there, or is not the one that the database knows."""


class LocalFiles:
    """Reads files below a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = f"{os.fspath(root)}/"

    def __call__(self, part: StoredPart) -> bytes:
        """The bytes of a part. Raises ContentLost."""
        name = part.name
        if name.startswith("/") or ".." in name:
            raise ContentLost(f"{name} leads out of the storage")
        try:
            descriptor = os.open(self._root + name, os.O_RDONLY)
            try:
                size = os.fstat(descriptor).st_size
                content = os.pread(descriptor, part.length, part.offset)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ContentLost(f"{name} cannot be read: {error}") from error
        if size != part.size or len(content) != part.length:
            raise ContentLost(f"{name} has {size} bytes, the database says {part.size}")
        return content


def blocks(pieces: Iterable[bytes | StoredPart], read: Read) -> Iterator[bytes]:
    """The bytes of an archive, in blocks of about a mebibyte; files are read one after the other."""
    pieces = _split(pieces, BLOCK_BYTES)
    return _coalesced(piece if isinstance(piece, bytes) else read(piece) for piece in pieces)


def prefetched_blocks(pieces: Iterable[bytes | StoredPart], read: Read) -> Iterator[bytes]:
    """As ``blocks``, with several reads ahead of what is being sent: for storages that take time to answer."""
    return _coalesced(_prefetched(_split(pieces, PREFETCH_PART_BYTES), read))


def _split(pieces: Iterable[bytes | StoredPart], limit: int) -> Iterator[bytes | StoredPart]:
    """Large parts of files in several, of at most ``limit`` bytes."""
    for piece in pieces:
        if isinstance(piece, bytes) or piece.length <= limit:
            yield piece
        else:
            end = piece.offset + piece.length
            for offset in range(piece.offset, end, limit):
                yield piece._replace(offset=offset, length=min(limit, end - offset))


def _coalesced(contents: Iterable[bytes]) -> Iterator[bytes]:
    waiting, size = [], 0
    for content in contents:
        waiting.append(content)
        size += len(content)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)


def _prefetched(pieces: Iterable[bytes | StoredPart], read: Read) -> Iterator[bytes]:
    waiting: deque[tuple[bytes | Future[bytes], int]] = deque()
    ahead = 0
    pool = ThreadPoolExecutor(PREFETCH_THREADS, thread_name_prefix="archive")
    try:
        for piece in pieces:
            if isinstance(piece, bytes):
                waiting.append((piece, len(piece)))
            else:
                waiting.append((pool.submit(read, piece), piece.length))
            ahead += waiting[-1][1]
            # Small files are bounded by their number, large ones by their bytes.
            while len(waiting) > 4 * PREFETCH_THREADS or ahead > PREFETCH_BYTES:
                content, length = waiting.popleft()
                ahead -= length
                yield content if isinstance(content, bytes) else content.result()
        for content, _ in waiting:
            yield content if isinstance(content, bytes) else content.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
