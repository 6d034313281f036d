"""Archives made to unpack to too much, and archives that are large with good reason."""

import io
import os
import struct
import tracemalloc
import zipfile
import zlib

import pytest

from imagedb import image_files
from imagedb.image_files import ArchiveFiles, FileProblem
from tests.imagedb.awkward.archives import (
    archive,
    deflated,
    entry,
    local_header,
    opened,
    quoted_overlap,
    with_directory,
    zipped,
)


class TestRatio:
    def test_refused_before_unpacking(self):
        files = archive({"bomb.bmp": bytes(20_000_000), "a.png": b"A"})
        with pytest.raises(FileProblem, match=r"bomb\.bmp is compressed more than 100-fold"):
            files.read("bomb.bmp")
        assert files.read("a.png") == b"A"

    def test_small_files_may_compress_as_they_like(self):
        assert len(archive({"flat.bmp": bytes(500_000)}).read("flat.bmp")) == 500_000

    def test_many_small_files_may_not_add_up(self):
        packed = deflated(bytes(1_000_000))
        body, entries = b"", []
        for number in range(1_100):
            name = b"%d.bmp" % number
            entries.append(entry(name, bytes(1_000_000), packed, len(body)))
            body += local_header(name, bytes(1_000_000), packed) + packed
        assert len(with_directory(body, *entries)) < 2_000_000
        with pytest.raises(FileProblem, match=r"test\.zip would unpack to 1\.1 GB, more than 100 times its own size"):
            opened(with_directory(body, *entries))
        assert len(opened(with_directory(body, *entries[:1_000])).names) == 1_000

    def test_one_damaged_entry_does_not_condemn_the_rest(self):
        content = zipped({"a.png": b"A" * 1_000, "b.png": b"B"})
        content = content.replace(struct.pack("<L", 1_000), struct.pack("<L", 4_000_000_000))
        files = opened(content)
        assert files.read("b.png") == b"B"
        with pytest.raises(FileProblem, match=r"a\.png has 4000 MB; the limit is 67 MB"):
            files.read("a.png")


class TestSize:
    def test_limit(self, monkeypatch):
        monkeypatch.setattr(image_files, "MAX_FILE_BYTES", 100)
        assert archive({"a.png": bytes(range(100))}, zipfile.ZIP_STORED).read("a.png")
        with pytest.raises(FileProblem, match="the limit"):
            archive({"a.png": bytes(range(101))}, zipfile.ZIP_STORED).read("a.png")

    def test_a_manifest_may_be_larger_than_an_image(self, monkeypatch):
        monkeypatch.setattr(image_files, "MAX_FILE_BYTES", 100)
        monkeypatch.setattr(image_files, "MAX_MANIFEST_BYTES", 200)
        files = archive({"manifest.csv": b"m" * 200, "other.csv": b"o" * 201})
        with files.open_manifest("manifest.csv") as stream:
            assert stream.read() == b"m" * 200
        with pytest.raises(FileProblem, match=r"other\.csv has"):
            files.open_manifest("other.csv")


class TestOverlaps:
    def test_quoted_overlap_is_refused(self):
        content = quoted_overlap(bytes(900_000), 200)
        # It is a real bomb: zipfile unpacks every member, with the right checksum, to 200 times the kernel.
        with zipfile.ZipFile(io.BytesIO(content)) as plain:
            assert plain.testzip() is None
            assert sum(member.file_size for member in plain.infolist()) > 180_000_000
        assert len(content) < 50_000
        files = opened(content)
        # The last one is the kernel itself, an ordinary file by its own bytes.
        assert files.names == ["0199.bmp"]
        assert len(files.refused) == 199
        assert files.refused[0] == "'0000.bmp' shares its bytes with another file of the archive; make it again"

    def test_entries_that_point_to_the_same_bytes(self):
        packed = deflated(b"content")
        body = local_header(b"a.png", b"content", packed) + packed
        files = opened(with_directory(body, *[entry(b"a.png", b"content", packed, 0)] * 3))
        assert files.names == ["a.png"]
        assert len(files.refused) == 2

    def test_a_member_within_another(self):
        inner = local_header(b"b.png", b"B", deflated(b"B")) + deflated(b"B")
        body = local_header(b"a.png", inner, inner).replace(b"\x08\x00", b"\x00\x00", 1) + inner
        offset = body.index(b"PK\x03\x04", 4)
        stored = entry(b"a.png", inner, inner, 0).replace(b"\x08\x00", b"\x00\x00", 1)
        files = opened(with_directory(body, stored, entry(b"b.png", b"B", deflated(b"B"), offset)))
        assert files.names == ["b.png"]
        assert "'a.png' shares its bytes" in files.refused[0]


class TestManyFiles:
    def test_limit(self, monkeypatch):
        monkeypatch.setattr(image_files, "MAX_MEMBERS", 10)
        assert len(archive({f"{number}.png": b"A" for number in range(10)}).names) == 10
        with pytest.raises(FileProblem, match=r"test\.zip has more than 10 files; make several archives of it"):
            archive({f"{number}.png": b"A" for number in range(11)})

    def test_a_directory_is_refused_by_its_size_before_it_is_read(self):
        size = 400_000_000
        end = b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 1, 1, size, 0, 0)

        class Sparse(io.BytesIO):
            """Reads as zeros with the end of an archive behind them."""

            def seek(self, offset, whence=0):
                self.at = {0: 0, 1: getattr(self, "at", 0), 2: size + len(end)}[whence] + offset
                return self.at

            def tell(self):
                return self.at

            def read(self, count=-1):
                count = min(count if count >= 0 else size, size + len(end) - self.at)
                content = (bytes(max(0, min(size, self.at + count) - self.at)) + end)[:count]
                content = end[self.at - size :][:count] if self.at >= size else content
                self.at += count
                return content

        tracemalloc.start()
        try:
            with pytest.raises(FileProblem, match="has a directory of 400 MB"):
                ArchiveFiles(Sparse(), "test.zip")
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()


class TestMoreThanTwoGigabytes:
    """zip64, on sparse files: the gaps take no room on the disk and no time to write."""

    GAP = 2_500_000_000

    def _made(self, path, members: list[tuple[bytes, int]], gap: int) -> None:
        """An archive of stored members of zeros behind a gap; sizes and offsets are in zip64 fields."""
        entries, offset = b"", gap
        with open(path, "wb") as file:
            for name, size in members:
                checksum = _crc_of_zeros(size)
                sizes = struct.pack("<HH2Q", 1, 16, size, size)
                fixed = struct.pack("<5H3L", 45, 0, 0, 0, 0, checksum, 0xFFFFFFFF, 0xFFFFFFFF)
                header = b"PK\x03\x04" + fixed + struct.pack("<2H", len(name), len(sizes)) + name + sizes
                file.seek(offset)
                file.write(header)
                extra = struct.pack("<HH3Q", 1, 24, size, size, offset)
                entries += b"PK\x01\x02" + struct.pack("<H", 45) + fixed
                entries += struct.pack("<5H2L", len(name), len(extra), 0, 0, 0, 0, 0xFFFFFFFF) + name + extra
                offset += len(header) + size
            file.seek(offset)
            file.write(entries)
            end = struct.pack("<Q2H2L4Q", 44, 45, 45, 0, 0, len(members), len(members), len(entries), offset)
            file.write(b"PK\x06\x06" + end)
            file.write(b"PK\x06\x07" + struct.pack("<LQL", 0, offset + len(entries), 1))
            file.write(b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))

    def test_archive_of_allowed_files(self, tmp_path):
        path = tmp_path / "large.zip"
        size = 60_000_000
        members = [(b"%d.bmp" % number, size) for number in range(45)]
        self._made(path, members, 0)
        assert path.stat().st_size > 2_600_000_000
        assert path.stat().st_blocks * 512 < 10_000_000  # sparse: the test is not as large as it looks
        files = ArchiveFiles(path, "large.zip")
        assert (len(files.names), files.refused) == (45, [])
        tracemalloc.start()
        try:
            assert files.read("44.bmp") == bytes(size)  # beyond 2 GB
            assert tracemalloc.get_traced_memory()[1] < 4 * size
        finally:
            tracemalloc.stop()

    def test_offset_of_more_than_four_gigabytes(self, tmp_path):
        path = tmp_path / "large.zip"
        self._made(path, [(b"a.png", 1_000)], 2 * self.GAP)
        assert ArchiveFiles(path, "large.zip").read("a.png") == bytes(1_000)

    def test_stored_member_is_refused_by_its_size(self, tmp_path):
        path = tmp_path / "large.zip"
        size = self.GAP
        self._made(path, [(b"a.bmp", 10), (b"huge.bmp", size)], 0)
        assert path.stat().st_blocks * 512 < 10_000_000
        files = ArchiveFiles(path, "large.zip")
        tracemalloc.start()
        try:
            with pytest.raises(FileProblem, match=r"huge\.bmp has 2500 MB; the limit is 67 MB"):
                files.read("huge.bmp")
            assert tracemalloc.get_traced_memory()[1] < 10_000_000  # by what the archive says, not by reading it
        finally:
            tracemalloc.stop()
        assert files.read("a.bmp") == bytes(10)

    def test_from_a_stream_that_is_no_file(self, tmp_path):
        path = tmp_path / "large.zip"
        self._made(path, [(b"a.png", 1_000)], self.GAP)
        with open(path, "rb") as file:
            assert os.fstat(file.fileno()).st_size > self.GAP
            assert ArchiveFiles(file, "large.zip").read("a.png") == bytes(1_000)


def _crc_of_zeros(size: int) -> int:
    if size > 100_000_000:
        return 0  # never read
    return zlib.crc32(bytes(size))
