"""Any part of an archive can be made by itself, and is the same as when the whole is made."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imagedb.archives import Layout, StoredFile, StoredPart, blocks, prefetched_blocks
from imagedb.archives.layout import RECORDS_PER_INDEX_ENTRY
from tests.imagedb.archives.made import Contents, whole

pieces = st.lists(st.tuples(st.binary(max_size=40), st.none() | st.binary(max_size=60)), max_size=12)


def laid_out(parts) -> tuple[Layout, Contents, bytes]:
    """A layout of (literal, stored file or None), what is stored, and the bytes it must give."""
    contents = Contents({str(number): stored for number, (_, stored) in enumerate(parts) if stored is not None})
    layout = Layout()
    for number, (literal, stored) in enumerate(parts):
        layout.append(literal, None if stored is None else contents.stored(str(number)))
    return layout, contents, b"".join(literal + (stored or b"") for literal, stored in parts)


@given(pieces, st.lists(st.integers(0, 1300), max_size=6))
@settings(max_examples=100, deadline=None)
def test_however_it_is_cut_the_parts_make_the_whole(parts, cuts):
    layout, contents, expected = laid_out(parts)
    assert layout.length == len(expected)
    assert whole(layout, contents) == expected
    bounds = sorted({0, len(expected), *(cut for cut in cuts if cut < len(expected))})
    for start, stop in itertools.pairwise(bounds):
        for read in (blocks, prefetched_blocks):
            assert b"".join(read(layout.pieces(start, stop), contents)) == expected[start:stop]
    layout.close()


def test_what_lies_before_a_part_is_not_read():
    count = 3 * RECORDS_PER_INDEX_ENTRY + 7
    layout, contents, expected = laid_out([(b"header", b"content")] * count)
    for start in (0, 1, 13 * RECORDS_PER_INDEX_ENTRY, 13 * RECORDS_PER_INDEX_ENTRY - 1, 13 * count - 3):
        contents.reads = 0
        assert b"".join(blocks(layout.pieces(start, start + 20), contents)) == expected[start : start + 20]
        assert contents.reads <= 3
    assert list(layout.pieces(len(expected))) == []
    layout.close()


def test_a_part_says_where_in_which_file_it_lies():
    layout = Layout()
    layout.append(b"head", StoredFile("a.png", 100, 0, ""))
    layout.append(b"foot")
    assert list(layout.pieces(14, 106)) == [StoredPart("a.png", 100, 10, 90), b"fo"]
    assert list(layout.pieces(14, 20)) == [StoredPart("a.png", 100, 10, 6)]
    assert list(layout.pieces(2, 5)) == [b"ad", StoredPart("a.png", 100, 0, 1)]
    layout.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda layout: layout.append(b"heads", StoredFile("a.png", 100, 0, "ab")),
        lambda layout: layout.append(b"head", StoredFile("a.png", 101, 0, "ab")),
        lambda layout: layout.append(b"head", StoredFile("a.png", 100, 0, "cd")),
        lambda layout: layout.append(b"head"),
    ],
)
def test_the_tag_tells_archives_apart(change):
    def tag(append) -> str:
        layout = Layout()
        append(layout)
        layout.append(b"foot")
        layout.close()
        return layout.tag

    same = tag(lambda layout: layout.append(b"head", StoredFile("a.png", 100, 0, "ab")))
    assert same == tag(lambda layout: layout.append(b"head", StoredFile("elsewhere.png", 100, 0, "ab")))
    assert tag(change) != same
