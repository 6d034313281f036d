"""ZIP archives for tests, made byte by byte where no library would write them."""

import io
import struct
import zipfile
import zlib

from imagedb.image_files import ArchiveFiles

LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> ArchiveFiles:
    return opened(zipped(members, compression))


def opened(content: bytes) -> ArchiveFiles:
    return ArchiveFiles(io.BytesIO(content), "test.zip")


def local_header(name: bytes, content: bytes, packed: bytes, *, flags: int = 0, extra: bytes = b"") -> bytes:
    """The header before a member's bytes (APPNOTE 4.3.7), for content that is deflated to ``packed``."""
    sizes = struct.pack("<3L", zlib.crc32(content), len(packed), len(content))
    lengths = struct.pack("<2H", len(name), len(extra))
    return LOCAL + struct.pack("<5H", 20, flags, 8, 0, 0) + sizes + lengths + name + extra


def entry(
    name: bytes, content: bytes, packed: bytes, offset: int, *, flags: int = 0, extra: bytes = b"", mode: int = 0
) -> bytes:
    """A member's entry in the directory (APPNOTE 4.3.12)."""
    sizes = struct.pack("<3L", zlib.crc32(content), len(packed), len(content))
    lengths = struct.pack("<5H2L", len(name), len(extra), 0, 0, 0, mode << 16, offset)
    return CENTRAL + struct.pack("<6H", 20, 20, flags, 8, 0, 0) + sizes + lengths + name + extra


def with_directory(body: bytes, *entries: bytes) -> bytes:
    """An archive of a body and the directory over it."""
    directory = b"".join(entries)
    counts = struct.pack("<4H", 0, 0, len(entries), len(entries))
    return body + directory + END + counts + struct.pack("<2LH", len(directory), len(body), 0)


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def named(name: bytes, content: bytes = b"content", *, flags: int = 0, extra: bytes = b"", mode: int = 0) -> bytes:
    """An archive of one file whose name is any bytes at all."""
    packed = deflated(content)
    body = local_header(name, content, packed, flags=flags) + packed
    return with_directory(body, entry(name, content, packed, 0, flags=flags, extra=extra, mode=mode))


def quoted_overlap(kernel: bytes, count: int) -> bytes:
    """Files that share one kernel: each quotes the headers of those after it (D. Fifield, "A better zip bomb", 2019).

    A stored block of deflate, not the last one, takes the next file's local header as data; then that file's own
    bytes follow, quoting the next in turn, up to the kernel.
    """
    content, packed, body = kernel, deflated(kernel), b""
    headers: list[tuple[bytes, bytes, bytes]] = []
    for number in reversed(range(count)):
        name = b"%04d.bmp" % number
        header = local_header(name, content, packed)
        headers.insert(0, (name, content, packed))
        body = header + packed
        quote = b"\x00" + struct.pack("<2H", len(header), len(header) ^ 0xFFFF) + header
        content, packed = header + content, quote + packed
    offset, entries = 0, []
    for name, member, bytes_of_it in headers:
        entries.append(entry(name, member, bytes_of_it, offset))
        offset += len(local_header(name, member, bytes_of_it)) + 5  # and the quoting block's own five bytes
    return with_directory(body, *entries)
