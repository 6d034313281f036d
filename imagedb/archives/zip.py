"""The ZIP format, as far as stored (not compressed) files need it: PKWARE's APPNOTE 6.3.10, with ZIP64.

Deterministic: the same files give the same bytes, always of the same moment, the earliest that the format knows.
"""

import struct
import zlib

from imagedb.archives.layout import Layout, StoredFile, WrittenFile

# The largest values of the fields of 16 and 32 bits mean "see the ZIP64 field" (4.4.1.4).
MARK_16 = 0xFFFF
MARK_32 = 0xFFFFFFFF
VERSION_STORED, VERSION_ZIP64 = 20, 45
MADE_BY_UNIX = 3 << 8 | VERSION_ZIP64
NAMES_ARE_UTF8 = 1 << 11
FIRST_OF_JANUARY_1980 = 1 << 5 | 1  # day and month in bits 0-8, years since 1980 above; the time is midnight, 0
REGULAR_FILE_0644 = 0o100644 << 16
ZIP64_FIELD = 1

# version needed, flags, method, time, date, CRC-32, compressed size, size, length of name, length of extra fields
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
# version made by and then as above; then lengths of name, extra and comment, disk, attributes, offset of local header
CENTRAL_HEADER = struct.Struct("<4s6H3I5H2I")
# size of the rest, version made by and needed, two disks, entries here and in all, size and offset of the directory
ZIP64_END = struct.Struct("<4sQ2H2I4Q")
ZIP64_LOCATOR = struct.Struct("<4sIQI")
END = struct.Struct("<4s4H2IH")


class ZipWriter:
    """Adds files one after the other to a layout; ``finish`` adds the directory at the end."""

    def __init__(self) -> None:
        self.layout = Layout()
        self._directory = WrittenFile()
        self._count = 0

    def add_stored(self, name: str, stored: StoredFile) -> None:
        """Add a file whose content is read when the archive is sent."""
        self.layout.append(self._header(name, stored.size, stored.crc32), stored)

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a small file."""
        self.layout.append(self._header(name, len(content), zlib.crc32(content)) + content)

    def add_written(self, name: str, written: WrittenFile) -> None:
        """Add a file that was written for this archive."""
        self.layout.append(self._header(name, written.size, written.crc32))
        self.layout.append_written(written)

    def finish(self) -> Layout:
        """Add the directory of all files, and give the whole."""
        directory_offset, directory_size = self.layout.length, self._directory.size
        self.layout.append_written(self._directory)
        self._directory.close()
        end = b""
        if self._count >= MARK_16 or directory_size >= MARK_32 or directory_offset >= MARK_32:
            zip64_end_offset = self.layout.length
            end = ZIP64_END.pack(
                b"PK\6\6",
                ZIP64_END.size - 12,
                MADE_BY_UNIX,
                VERSION_ZIP64,
                0,
                0,
                self._count,
                self._count,
                directory_size,
                directory_offset,
            ) + ZIP64_LOCATOR.pack(b"PK\6\7", 0, zip64_end_offset, 1)
        count = min(self._count, MARK_16)
        end += END.pack(b"PK\5\6", 0, 0, count, count, min(directory_size, MARK_32), min(directory_offset, MARK_32), 0)
        self.layout.append(end)
        return self.layout

    def close(self) -> None:
        """Give the temporary files back, where the archive is given up."""
        self._directory.close()
        self.layout.close()

    def _header(self, name: str, size: int, crc32: int) -> bytes:
        """The header before a file; the one in the directory is noted on the way."""
        encoded = name.encode()
        offset = self.layout.length
        is_large, is_far = size >= MARK_32, offset >= MARK_32
        # The local header has both sizes, the directory only what does not fit (4.5.3).
        local_extra = struct.pack("<2H2Q", ZIP64_FIELD, 16, size, size) if is_large else b""
        beyond = [size] * 2 * is_large + [offset] * is_far
        extra = struct.pack(f"<2H{len(beyond)}Q", ZIP64_FIELD, 8 * len(beyond), *beyond) if beyond else b""
        size_field = MARK_32 if is_large else size
        version = VERSION_ZIP64 if beyond else VERSION_STORED
        common = (NAMES_ARE_UTF8, 0, 0, FIRST_OF_JANUARY_1980, crc32, size_field, size_field, len(encoded))
        self._directory.write(
            CENTRAL_HEADER.pack(
                b"PK\1\2",
                MADE_BY_UNIX,
                version,
                *common,
                len(extra),
                0,
                0,
                0,
                REGULAR_FILE_0644,
                MARK_32 if is_far else offset,
            )
            + encoded
            + extra
        )
        self._count += 1
        local_version = VERSION_ZIP64 if is_large else VERSION_STORED
        return LOCAL_HEADER.pack(b"PK\3\4", local_version, *common, len(local_extra)) + encoded + local_extra
