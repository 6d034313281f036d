"""What an archive consists of, from its first byte to its last: literal bytes, and stored files between them.

The records of a layout are kept in a temporary file, not in memory: one of a million images takes no more of it than
one of ten.
"""

import hashlib
import struct
import tempfile
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import IO, NamedTuple, Self

BLOCK_BYTES = 1024 * 1024
# Length of the literal bytes, size of the stored file, length of its name; then the name and the literal bytes.
RECORD = struct.Struct("<IQH")
LENGTHS = struct.Struct("<IQ")
# A range is found by going through at most so many records.
RECORDS_PER_INDEX_ENTRY = 512
LINES_AT_A_TIME = 256


class StoredFile(NamedTuple):
    """A file as the database knows it: its name in the storage, and what its content is."""

    name: str
    size: int
    crc32: int
    sha256: str  # hexadecimal


class StoredPart(NamedTuple):
    """``length`` bytes from ``offset`` of the stored file ``name``, which must be ``size`` bytes long as a whole."""

    name: str
    size: int
    offset: int
    length: int


def _temporary_file() -> IO[bytes]:
    """A file without a name, gone when it is closed. What is written are small pieces, hence the large buffer."""
    return tempfile.TemporaryFile(buffering=256 * 1024)


class WrittenFile:
    """A file of the archive that is written beside it, such as its manifest. On disk, with its sums at hand."""

    def __init__(self) -> None:
        self._file = _temporary_file()
        self._sha256 = hashlib.sha256()
        self._crc32 = 0
        self._size = 0
        self._waiting: list[bytes] = []

    def write(self, content: bytes) -> None:
        """Add to the end."""
        self._waiting.append(content)
        if len(self._waiting) == LINES_AT_A_TIME:
            self._write_waiting()

    def _write_waiting(self) -> None:
        content = b"".join(self._waiting)
        self._waiting.clear()
        self._file.write(content)
        self._sha256.update(content)
        self._crc32 = zlib.crc32(content, self._crc32)
        self._size += len(content)

    @property
    def size(self) -> int:
        self._write_waiting()
        return self._size

    @property
    def crc32(self) -> int:
        self._write_waiting()
        return self._crc32

    @property
    def sha256(self) -> str:
        self._write_waiting()
        return self._sha256.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """The content from its beginning."""
        self._write_waiting()
        self._file.seek(0)
        while block := self._file.read(BLOCK_BYTES):
            yield block

    def close(self) -> None:
        """Give the temporary file back."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Layout:
    """The pieces of an archive in order; appended once, then read from any byte on."""

    def __init__(self) -> None:
        self._records = _temporary_file()
        self._digest = hashlib.sha256()
        # Of every so many records: where it begins in the archive, and in the file of records.
        self._archive_offsets = array("Q")
        self._record_offsets = array("Q")
        self._records_length = 0
        self._record_count = 0
        self.length = 0

    def append(self, literal: bytes, stored: StoredFile | None = None) -> None:
        """Add literal bytes (less than 4 GiB), and after them a stored file."""
        name, size = (stored.name.encode(), stored.size) if stored else (b"", 0)
        if self._record_count % RECORDS_PER_INDEX_ENTRY == 0:
            self._archive_offsets.append(self.length)
            self._record_offsets.append(self._records_length)
        record = RECORD.pack(len(literal), size, len(name)) + name + literal
        self._records.write(record)
        # Of a stored file what it contains counts for the tag, not how the storage names it.
        self._digest.update(LENGTHS.pack(len(literal), size) + literal + (stored.sha256.encode() if stored else b""))
        self._records_length += len(record)
        self._record_count += 1
        self.length += len(literal) + size

    def append_written(self, written: WrittenFile) -> None:
        """Add what has been written elsewhere."""
        for block in written.blocks():
            self.append(block)

    @property
    def tag(self) -> str:
        """A digest that two archives share only if they are the same byte for byte."""
        return self._digest.hexdigest()

    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[bytes | StoredPart]:
        """What makes up the bytes from ``start`` to before ``stop``; only one such iteration at a time."""
        stop = self.length if stop is None else min(stop, self.length)
        if start >= stop:
            return
        entry = bisect_right(self._archive_offsets, start) - 1
        position = self._archive_offsets[entry]
        records = self._records
        records.seek(self._record_offsets[entry])
        while position < stop:
            literal_length, size, name_length = RECORD.unpack(records.read(RECORD.size))
            name, literal = records.read(name_length), records.read(literal_length)
            file_start = position + literal_length
            end = file_start + size
            if end > start:
                if literal := literal[max(0, start - position) : max(0, stop - position)]:
                    yield literal
                offset = max(0, start - file_start)
                length = min(end, stop) - file_start - offset
                if name_length and (length > 0 or size == 0):
                    # An empty file has no bytes to give, but whether it is there and empty must still be seen.
                    yield StoredPart(name.decode(), size, offset, length)
            position = end

    def close(self) -> None:
        """Give the temporary file back."""
        self._records.close()
