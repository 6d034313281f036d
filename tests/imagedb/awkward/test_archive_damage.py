"""Archives that are damaged, encrypted, or whose headers do not tell the truth."""

import io
import struct
import zipfile

import pytest

from imagedb.image_files import ArchiveFiles, FileProblem
from tests.imagedb.awkward.archives import CENTRAL, deflated, entry, local_header, opened, with_directory, zipped


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_not_an_archive(content):
    with pytest.raises(FileProblem, match=r"test\.zip is not a ZIP archive"):
        opened(content)


def test_cut_short():
    content = zipped({"a.png": bytes(range(256)) * 10, "b.png": b"B"})
    for length in range(0, len(content), 7):
        with pytest.raises(FileProblem, match="not a ZIP archive, or is damaged"):
            opened(content[:length])


class TestSizes:
    def test_a_directory_that_understates_the_size(self):
        content = zipped({"a.png": bytes(5_000_000)})
        with pytest.raises(FileProblem, match=r"a\.png cannot be unpacked"):
            opened(content.replace(struct.pack("<L", 5_000_000), struct.pack("<L", 1_000))).read("a.png")

    @pytest.mark.parametrize("claim", [8, 1_000_000])
    def test_a_directory_that_overstates_the_size(self, claim):
        packed = deflated(b"content")
        body = local_header(b"a.png", b"content", packed) + packed
        lie = bytearray(entry(b"a.png", b"content", packed, 0))
        lie[24:28] = struct.pack("<L", claim)
        files = opened(with_directory(body, bytes(lie)))
        # What unpacks is what it is, with the right checksum: a claim of more allocates nothing and adds nothing.
        assert files.read("a.png") == b"content"

    def test_packed_size_beyond_the_file(self):
        packed = deflated(b"content")
        body = local_header(b"a.png", b"content", packed) + packed
        lie = bytearray(entry(b"a.png", b"content", packed, 0))
        lie[20:24] = struct.pack("<L", 4_000_000_000)
        files = opened(with_directory(body, bytes(lie)))
        assert (files.names, len(files.refused)) == ([], 1)

    def test_a_member_that_begins_after_the_end(self):
        packed = deflated(b"content")
        body = local_header(b"a.png", b"content", packed) + packed
        files = opened(with_directory(body, entry(b"a.png", b"content", packed, 1_000_000)))
        assert files.names == []
        assert "'a.png' shares its bytes" in files.refused[0]

    @pytest.mark.parametrize("offset", [2**63, 2**64 - 1])
    def test_offsets_beyond_any_file(self, offset):
        packed = deflated(b"content")
        body = local_header(b"a.png", b"content", packed) + packed
        extra = struct.pack("<HHQ", 1, 8, offset)  # zip64
        files = opened(with_directory(body, entry(b"a.png", b"content", packed, 0xFFFFFFFF, extra=extra)))
        assert files.names == []


def test_a_header_with_another_name_than_the_directory():
    packed = deflated(b"content")
    body = local_header(b"b.png", b"content", packed) + packed
    with pytest.raises(FileProblem, match=r"a\.png cannot be unpacked: File name in directory"):
        opened(with_directory(body, entry(b"a.png", b"content", packed, 0))).read("a.png")


def test_wrong_checksum():
    broken = zipped({"a.png": b"content"}, zipfile.ZIP_STORED).replace(b"content", b"c0ntent", 1)
    with pytest.raises(FileProblem, match=r"a\.png cannot be unpacked: Bad CRC"):
        opened(broken).read("a.png")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_anywhere_is_told_and_spares_the_others(compression):
    """Every byte is broken once; whatever the decompressor says to it, it is a problem of that one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        file.writestr("a.png", b"one" * 30 + bytes(range(64)))
        own_bytes = buffer.tell()
        file.writestr("b.png", b"B")
    problems = []
    for position in range(own_bytes):
        broken = bytearray(buffer.getvalue())
        broken[position] ^= 0xFF
        files = ArchiveFiles(io.BytesIO(broken), "test.zip")
        try:
            files.read("a.png")
        except FileProblem as problem:
            problems.append(str(problem))
        assert files.read("b.png") == b"B"
    assert len(problems) > own_bytes / 2
    assert all(problem.startswith("a.png ") for problem in problems)


def test_unknown_compression():
    content = bytearray(zipped({"a.png": b"content"}))
    content[content.index(CENTRAL) + 10] = 97  # WavPack, by the ZIP specification
    with pytest.raises(FileProblem, match=r"a\.png cannot be unpacked"):
        opened(bytes(content)).read("a.png")


def test_encrypted_member():
    content = bytearray(zipped({"a.png": b"content"}))
    content[6] |= 1  # the flag in the member's own header
    content[content.index(CENTRAL) + 8] |= 1  # and in the directory
    with pytest.raises(FileProblem, match=r"a\.png is encrypted; make the archive without a password"):
        opened(bytes(content)).read("a.png")


def test_something_before_the_archive():
    # A self-extracting archive, or a picture with an archive behind it.
    files = opened(b"\xff\xd8 something else" + zipped({"a.png": b"A"}))
    assert files.read("a.png") == b"A"


def test_a_file_on_disk_is_closed(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"a.png": b"A"}))
    files = ArchiveFiles(tmp_path / "a.zip", "a.zip")
    assert files.read("a.png") == b"A"
    del files  # an open file left behind would be a warning, and warnings are errors here
