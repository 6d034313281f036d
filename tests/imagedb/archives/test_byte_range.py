"""What a Range header asks for."""

import pytest

from imagedb.archives import ByteRange, UnsatisfiableRange, requested_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-", (0, 1000)),
        ("bytes=0-0", (0, 1)),
        ("bytes=10-19", (10, 20)),
        ("bytes=999-", (999, 1000)),
        ("bytes=500-5000", (500, 1000)),
        ("bytes=-1", (999, 1000)),
        ("bytes=-5000", (0, 1000)),
        ("Bytes = 10 - 19", (10, 20)),
        # All of it, as the standard allows for what is not understood:
        ("", None),
        ("bytes=-", None),
        ("bytes=20-10", None),
        ("bytes=0-1,5-6", None),
        ("lines=1-2", None),
        ("bytes=a-b", None),
        ("bytes=١-٢", None),
        ("bytes=1.5-2", None),
        ("bytes=--1", None),
        (f"bytes=0-{'9' * 5000}", None),
    ],
)
def test_of_a_thousand_bytes(header, expected):
    assert requested_range(header, 1000) == (expected and ByteRange(*expected))


@pytest.mark.parametrize("header", ["bytes=1000-", "bytes=1000-2000", "bytes=5000-", "bytes=-0"])
def test_after_the_end(header):
    with pytest.raises(UnsatisfiableRange, match="1000 bytes"):
        requested_range(header, 1000)
