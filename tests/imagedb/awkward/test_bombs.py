"""Small files that would decode to huge pictures: refused from the header, before memory is taken."""

import contextlib
import struct
import subprocess
import sys
import zlib

import pytest
from PIL import Image

from imagedb.pixels import MAX_PIXELS, UnreadableImage, decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import refusal
from tests.imagedb.pictures import encoded, noise

# Decodes each file given and prints by how many kB the peak of memory rose, and the reasons.
MEASURE = """
import resource, sys
from pathlib import Path
from imagedb.pixels import UnreadableImage, decode
decode(Path(sys.argv[1]).read_bytes())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sys.argv[2:]:
    try:
        decode(Path(name).read_bytes())
    except UnreadableImage as error:
        print(error.reason)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def with_size(content: bytes, position: int, form: str, *size: int) -> bytes:
    """The file with another size written into its header."""
    return content[:position] + struct.pack(form, *size) + content[position + struct.calcsize(form) :]


def fifty_thousand_squared() -> bytes:
    """A sound PNG of 50,000 x 50,000 black pixels: 2.5 billion of them in a few hundred kB."""
    packer = zlib.compressobj(1)
    row = bytes(1 + 50_000 // 8)
    packed = b"".join(packer.compress(row * 500) for _ in range(100)) + packer.flush()
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 1, 0, 0, 0, 0)
    chunk = pictures.png_chunk
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def bombs() -> dict[str, bytes]:
    jpeg = encoded(noise(), "JPEG")
    frame = encoded(noise().quantize(16), "GIF")
    tiff = encoded(noise(), "TIFF")
    return {
        "png": fifty_thousand_squared(),
        "jpeg": with_size(jpeg, jpeg.index(b"\xff\xc0") + 5, ">HH", 65_000, 65_000),
        "bmp": with_size(encoded(noise(), "BMP"), 18, "<ii", 60_000, 60_000),
        "gif screen": with_size(frame, 6, "<HH", 65_000, 65_000),
        "gif frame": with_size(frame, frame.index(b",\0\0\0\0") + 5, "<HH", 65_000, 65_000),
        "tiff": with_size(tiff, tiff.index(struct.pack("<HHL", 256, 4, 1)) + 8, "<L", 4_000_000_000),
        "animation": pictures.animation("GIF", 500),
    }


def test_memory_stays_flat(tmp_path):
    (tmp_path / "plain").write_bytes(encoded(noise()))
    files = []
    for name, content in bombs().items():
        assert len(content) < 1_500_000
        files.append(tmp_path / name)
        files[-1].write_bytes(content)
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / "plain", *files], capture_output=True, text=True, check=True
    )
    *reasons, growth = result.stdout.splitlines()
    assert len(reasons) == len(files)
    for name, reason in zip(bombs(), reasons, strict=True):
        assert "pixels" in reason or "several frames" in reason, name
    assert int(growth) < 10_000


@pytest.mark.parametrize("side", [3_551, 10_000, 50_000], ids=["over ours", "Pillow warns", "Pillow refuses"])
def test_too_many_pixels_are_seen_in_the_header(side):
    # There are no pixels behind this header: a decoder that went on would call the file damaged.
    assert side * side > MAX_PIXELS
    assert "pixels" in refusal(pictures.png(side, side, 1, 0))


def test_the_limit_itself_is_allowed():
    content = encoded(Image.new("1", (100, 50)))
    assert decode(content, max_pixels=5_000).width == 100
    with pytest.raises(UnreadableImage, match="100 x 50 pixels; the limit is"):
        decode(content, max_pixels=4_999)


@pytest.mark.parametrize("kind", [b"zTXt", b"iCCP", b"iTXt"])
def test_text_and_profile_bombs(kind):
    start = b"name\0\1\0\0\0" if kind == b"iTXt" else b"name\0\0"
    bomb = pictures.png_chunk(kind, start + zlib.compress(bytes(80_000_000)))
    content = pictures.png(1, 1, 8, 2, b"\0\1\2\3", extra=bomb)
    assert len(content) < 100_000
    with contextlib.suppress(UnreadableImage):  # skipping the chunk is as good as refusing the file
        assert decode(content).width == 1
