"""From pieces to blocks: files that are not as they should be, large files, reading ahead."""

import threading
import time

import pytest

from imagedb.archives import ContentLost, LocalFiles, StoredPart, blocks, prefetched_blocks
from imagedb.archives.layout import BLOCK_BYTES
from imagedb.archives.reading import PREFETCH_BYTES, PREFETCH_PART_BYTES, PREFETCH_THREADS


def part(name: str, size: int, offset: int = 0, length: int | None = None) -> StoredPart:
    return StoredPart(name, size, offset, size - offset if length is None else length)


class TestLocalFiles:
    @pytest.fixture
    def files(self, tmp_path):
        (tmp_path / "original").mkdir()
        (tmp_path / "original" / "a.png").write_bytes(b"0123456789")
        (tmp_path / "original" / "empty.png").write_bytes(b"")
        return LocalFiles(tmp_path)

    def test_a_file_and_a_part_of_it(self, files):
        assert files(part("original/a.png", 10)) == b"0123456789"
        assert files(part("original/a.png", 10, 3, 4)) == b"3456"
        assert files(part("original/empty.png", 0)) == b""

    @pytest.mark.parametrize(
        ("wanted", "reason"),
        [
            (part("original/gone.png", 10), "cannot be read"),
            (part("original", 10), "cannot be read"),
            (part("original/a.png", 9), "has 10 bytes, the database says 9"),
            (part("original/a.png", 11), "has 10 bytes, the database says 11"),
            (part("original/a.png", 11, 0, 5), "has 10 bytes, the database says 11"),
            (part("original/empty.png", 1), "has 0 bytes, the database says 1"),
            (part("original/a.png", 0), "has 10 bytes, the database says 0"),
            (part("../secret", 1), "leads out of the storage"),
            (part("/etc/passwd", 1), "leads out of the storage"),
        ],
    )
    def test_what_is_not_as_the_database_says(self, files, wanted, reason):
        with pytest.raises(ContentLost, match=reason):
            files(wanted)


class TestBlocks:
    def test_small_pieces_are_sent_together(self):
        sizes = [len(block) for block in blocks([bytes(100_000)] * 50, bytes)]
        assert sum(sizes) == 5_000_000
        assert all(BLOCK_BYTES <= size < BLOCK_BYTES + 100_000 for size in sizes[:-1])

    @pytest.mark.parametrize("read_blocks", [blocks, prefetched_blocks])
    def test_a_large_file_is_read_in_parts(self, read_blocks):
        lengths = []

        def read(piece):
            lengths.append(piece.length)
            return bytes(piece.length)

        size = 2 * PREFETCH_PART_BYTES + 17
        assert sum(map(len, read_blocks([part("large", size)], read))) == size
        assert max(lengths) <= PREFETCH_PART_BYTES

    @pytest.mark.parametrize("read_blocks", [blocks, prefetched_blocks])
    def test_what_cannot_be_read_ends_it(self, read_blocks):
        def read(piece):
            if piece.name == "gone":
                raise ContentLost("gone")
            return bytes(piece.length)

        produced: list[bytes] = []
        with pytest.raises(ContentLost):
            produced.extend(read_blocks([part("there", 3_000_000), part("gone", 10), b"directory"], read))
        assert b"directory" not in b"".join(produced)


class TestReadingAhead:
    def test_several_reads_at_a_time_in_the_right_order(self):
        running, most = 0, 0
        lock = threading.Lock()

        def read(piece):
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.005 * (int(piece.name) % 3))
            with lock:
                running -= 1
            return piece.name.encode()

        names = [f"{number:03}" for number in range(60)]
        assert b"".join(prefetched_blocks([part(name, 3) for name in names], read)) == "".join(names).encode()
        assert 1 < most <= PREFETCH_THREADS

    def test_no_more_ahead_than_is_allowed(self):
        started = []

        def read(piece):
            started.append(piece.length)
            return bytes(piece.length)

        produced = prefetched_blocks((part(str(number), BLOCK_BYTES) for number in range(500)), read)
        next(produced)
        time.sleep(0.2)
        assert sum(started) <= PREFETCH_BYTES + 2 * BLOCK_BYTES
        produced.close()

    def test_breaking_off_ends_the_threads(self):
        produced = prefetched_blocks(
            [part(str(number), BLOCK_BYTES) for number in range(20)], lambda p: bytes(p.length)
        )
        next(produced)
        produced.close()
        deadline = time.monotonic() + 5
        while any(thread.name.startswith("archive") for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
