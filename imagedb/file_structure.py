"""Whether an image file is whole, and what files are that are none. Pure.

Decoders are made to show something: where data ends early, or a header promises more than there is, Pillow fills up
with grey or black and says nothing. A data set must not take such a picture for the real one.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg

PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
# Where each of the seven passes of an interlaced PNG begins, and its steps: x, y, step of x, step of y.
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
PACKED_PART, INFLATED_PART = 64 * 1024, 1024 * 1024

# What libjpeg says (jerror.h) where pixels are missing or wrong. Its other warnings are of bytes that no pixel needs.
WRONG_PIXELS = re.compile("premature end|bad huffman code|bad arithmetic code|instead of RST", re.IGNORECASE)
BYTES_LEFT_OVER = re.compile("([0-9]+) extraneous bytes before marker 0xd9")
# Cameras and programs leave some bytes between the last pixel and the end; this share of the file is rows of pixels.
MOST_LEFT_OVER = 0.01

# What arrives under the name of an image: the first bytes, and what to call it.
OTHER_KINDS = (
    (rb"PK\x03\x04", "a ZIP archive (or an office document)"),
    (rb"\x1f\x8b", "a gzip archive"),
    (rb"Rar!|7z\xbc\xaf\x27\x1c", "an archive"),
    (rb"%PDF-", "a PDF document"),
    (rb"%!PS|\xc5\xd0\xd3\xc6", "PostScript"),
    (rb"....ftyp(avif|avis)", "an AVIF image"),
    (rb"....ftyp(heic|heix|mif1|msf1)", "an HEIC image"),
    (rb"....ftyp", "a video"),
    (rb"\xff\x0a|\0\0\0\x0cJXL ", "a JPEG XL image"),
    (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype svg[^>]*>\s*)?<svg[\s>]", "an SVG drawing"),
    (rb"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body|script)[\s>]", "an HTML page"),
)


class UnreadableImage(ValueError):
    """The bytes are no image the catalogue can take; ``reason`` says why, for the person who sent it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def kind_of_other_content(content: bytes) -> str:
    """What content is that is not an image we know, such as "an SVG drawing"; empty if it cannot be told."""
    start = content[:4096].removeprefix(b"\xef\xbb\xbf")
    for pattern, kind in OTHER_KINDS:
        if re.match(pattern, start, re.IGNORECASE | re.DOTALL):
            return kind
    return ""


def jpeg_pixels(content: bytes, mode: str, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Decode a JPEG of mode L or RGB, as Pillow would, into (height, width) or (height, width, 3).

    ``size`` is (width, height), as has been judged before. Raises UnreadableImage if data are missing.
    """
    height, width, _, _ = simplejpeg.decode_jpeg_header(content, strict=False)
    if (width, height) != size:
        raise UnreadableImage("its headers contradict each other about its size")
    options: dict[str, Any] = {"colorspace": "GRAY" if mode == "L" else "RGB"}
    try:
        pixels = simplejpeg.decode_jpeg(content, **options)
    except ValueError as warning:
        if WRONG_PIXELS.search(str(warning)):
            raise UnreadableImage(f"the file is damaged or cut short ({warning})") from warning
        left_over = BYTES_LEFT_OVER.search(str(warning))
        if left_over and int(left_over[1]) > MOST_LEFT_OVER * len(content):
            raise UnreadableImage("the file is damaged: it has more pixels than its header says") from warning
        pixels = simplejpeg.decode_jpeg(content, **options, strict=False)
    return pixels[..., 0] if mode == "L" else pixels


def refuse_broken_png(content: bytes) -> None:
    """Raise UnreadableImage unless a PNG is there to its end, with as many bytes of pixels as its header says."""
    packed: list[memoryview] = []
    header = b""
    for kind, data in _png_chunks(content):
        if kind == b"IHDR":
            header = bytes(data)
        elif kind == b"IDAT":
            packed.append(data)
    expected, found = _png_bytes(header), 0
    inflater = zlib.decompressobj()
    for data in (part[at : at + PACKED_PART] for part in packed for at in range(0, len(part), PACKED_PART)):
        rest: bytes | memoryview = data
        while rest and found <= expected:
            found += len(inflater.decompress(rest, INFLATED_PART))
            rest = inflater.unconsumed_tail
    if found != expected:
        relation = "fewer" if found < expected else "more"
        raise UnreadableImage(f"the file is damaged: it has {relation} pixels than its header says")


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """The chunks up to IEND. Raises UnreadableImage if there is none."""
    view, position = memoryview(content), 8
    while position + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        end = position + 12 + length
        if end > len(content):
            break
        yield kind, view[position + 8 : end - 4]
        if kind == b"IEND":
            return
        position = end
    raise UnreadableImage("the file is cut short: a PNG ends with IEND, and this one does not")


def _png_bytes(header: bytes) -> int:
    """How many bytes of filtered scan lines an IHDR stands for."""
    width, height, bit_depth, colour_type, _, _, is_interlaced = struct.unpack_from(">IIBBBBB", header)
    bits = bit_depth * PNG_CHANNELS[colour_type]
    passes = ADAM7 if is_interlaced else ((0, 0, 1, 1),)
    total = 0
    for left, top, step_x, step_y in passes:
        columns, rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if columns > 0 and rows > 0:
            total += rows * (1 + -(-columns * bits // 8))
    return total
