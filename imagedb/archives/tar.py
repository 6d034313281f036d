"""The tar format: POSIX ustar headers, and a pax header before a file whose name or size ustar has no room for.

Deterministic: the same files give the same bytes, always of the same moment and owner.
"""

from imagedb.archives.layout import Layout, StoredFile, WrittenFile

BLOCK = 512
NAME_BYTES = 100
LARGEST_USTAR_SIZE = 8**11 - 1
FIRST_OF_JANUARY_1980 = 315532800  # the earliest moment that every archive format and file system knows


class TarWriter:
    """Adds files one after the other to a layout; ``finish`` adds the end."""

    def __init__(self) -> None:
        self.layout = Layout()
        # What is to come before the next file: the padding of the one before it, and small files.
        self._pending = b""

    def add_stored(self, name: str, stored: StoredFile) -> None:
        """Add a file whose content is read when the archive is sent."""
        self.layout.append(self._pending + _headers(name, stored.size), stored)
        self._pending = _padding(stored.size)

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a small file."""
        self._pending += _headers(name, len(content)) + content + _padding(len(content))

    def add_written(self, name: str, written: WrittenFile) -> None:
        """Add a file that was written for this archive."""
        self.layout.append(self._pending + _headers(name, written.size))
        self.layout.append_written(written)
        self._pending = _padding(written.size)

    def finish(self) -> Layout:
        """Add the two empty blocks that mark the end, and give the whole."""
        self.layout.append(self._pending + bytes(2 * BLOCK))
        return self.layout

    def close(self) -> None:
        """Give the temporary file back, where the archive is given up."""
        self.layout.close()


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


def _headers(name: str, size: int) -> bytes:
    encoded = name.encode()
    extended = b""
    if len(encoded) > NAME_BYTES or not name.isascii():
        extended += _pax_record("path", encoded)
    if size > LARGEST_USTAR_SIZE:
        extended += _pax_record("size", str(size).encode())
    if not extended:
        return _ustar(encoded, size, b"0")
    # Readers that know no pax see the file's own header with what fits of the name, and size 0 for one too large.
    shown_size = size if size <= LARGEST_USTAR_SIZE else 0
    shown_name = name.encode("ascii", "replace")[:NAME_BYTES]
    return (
        _ustar(b"pax_header", len(extended), b"x")
        + extended
        + _padding(len(extended))
        + _ustar(shown_name, shown_size, b"0")
    )


# The parts of a header block that are the same for every file: mode, owner and group; time; and after the kind the
# name of a link (none), the magic word and the version.
_OWNER = b"0000644\0" + 2 * b"0000000\0"
_TIME = b"\0%011o\0" % FIRST_OF_JANUARY_1980
_MAGIC = bytes(100) + b"ustar\0" + b"00"
# The sum over all bytes counts its own field as eight spaces.
_SUM_OF_THE_SAME = sum(_OWNER + _TIME + _MAGIC) + 8 * ord(" ")


def _ustar(name: bytes, size: int, kind: bytes) -> bytes:
    """A header block: name, mode, owner, group, size, time, sum, kind, link, magic word, version, and nothing more."""
    octal_size = b"%011o" % size
    checksum = _SUM_OF_THE_SAME + sum(name) + sum(octal_size) + kind[0]
    fields = (name.ljust(NAME_BYTES, b"\0"), _OWNER, octal_size, _TIME, b"%06o\0 " % checksum, kind, _MAGIC)
    return b"".join(fields).ljust(BLOCK, b"\0")


def _pax_record(keyword: str, value: bytes) -> bytes:
    """``LENGTH keyword=value``, where the length counts its own digits."""
    rest = b" " + keyword.encode() + b"=" + value + b"\n"
    length = len(rest)
    while len(rest) + len(str(length)) != length:
        length = len(rest) + len(str(length))
    return str(length).encode() + rest
