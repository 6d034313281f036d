"""Awkward image files for tests, made here byte by byte where no library would write them."""

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

# Colorants (XYZ, adapted to D50) and gamma; columns red, green, blue.
SRGB = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.71410]])
ADOBE_RGB = np.array([[0.60974, 0.20528, 0.14919], [0.31111, 0.62567, 0.06322], [0.01947, 0.06087, 0.74457]])
DISPLAY_P3 = np.array([[0.51512, 0.29198, 0.15710], [0.24120, 0.69225, 0.06657], [-0.00105, 0.04189, 0.78407]])
PROPHOTO = np.array([[0.79767, 0.13519, 0.03135], [0.28804, 0.71187, 0.00009], [0.00000, 0.00000, 0.82521]])
D50 = (0.9642, 1.0, 0.8249)


def encoded(image: Image.Image, image_format: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def noise(seed: int = 0, size: tuple[int, int] = (40, 30)) -> Image.Image:
    """Random RGB pixels; every change of colour or place shows."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


def corners() -> Image.Image:
    """Red, green, blue and white quarters, 48 x 32: every turn and flip gives another picture."""
    pixels = np.zeros((32, 48, 3), np.uint8)
    pixels[:16, :24] = (220, 20, 20)
    pixels[:16, 24:] = (20, 200, 20)
    pixels[16:, :24] = (20, 20, 220)
    pixels[16:, 24:] = (240, 240, 240)
    return Image.fromarray(pixels)


# How a camera stored the upright picture, by EXIF orientation (EXIF 2.32, tag 274): the inverse of what to undo.
STORED_AS = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def oriented(orientation: int, image_format: str, **options: Any) -> bytes:
    """``corners()`` as a camera held in that way would have stored it."""
    stored = STORED_AS[orientation]
    image = corners() if stored is None else corners().transpose(stored)
    exif = Image.Exif()
    exif[274] = orientation
    exif[271] = "A camera"
    return encoded(image, image_format, exif=exif, **options)


def scan_lines(image: Image.Image) -> bytes:
    """The pixels of an image as a PNG has them before compression, without any filter."""
    return b"".join(b"\0" + row.tobytes() for row in np.asarray(image))


def png(
    width: int,
    height: int,
    bit_depth: int,
    colour_type: int,
    raw: bytes = b"",
    extra: bytes = b"",
    *,
    is_interlaced: bool = False,
) -> bytes:
    """A PNG from raw scan lines (each with its leading filter byte)."""
    header = struct.pack(">IIBBBBB", width, height, bit_depth, colour_type, 0, 0, is_interlaced)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + extra
        + png_chunk(b"IDAT", zlib.compress(raw))
        + png_chunk(b"IEND", b"")
    )


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_chunks(content: bytes) -> list[str]:
    """The names of the chunks of a PNG, in order."""
    names, position = [], 8
    while position < len(content):
        (length,) = struct.unpack_from(">I", content, position)
        names.append(content[position + 4 : position + 8].decode())
        position += 12 + length
    return names


def tiff(values: np.ndarray, sample_format: int = 1) -> bytes:
    """An uncompressed TIFF (little-endian) of an array (height, width, 3) of any depth: Pillow writes only 8 bits."""
    height, width, channels = values.shape
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    bits = values.dtype.itemsize * 8
    entries = [(256, 4, width), (257, 4, height), (258, 3, None), (259, 3, 1), (262, 3, 2), (273, 4, None)]
    entries += [(277, 3, channels), (278, 4, height), (279, 4, len(data)), (284, 3, 1), (339, 3, None)]
    extra_at = 8 + 2 + 12 * len(entries) + 4
    extra = struct.pack("<3H", *[bits] * 3) + struct.pack("<3H", *[sample_format] * 3)
    directory = struct.pack("<H", len(entries))
    for tag, kind, value in entries:
        if tag in {258, 339}:
            directory += struct.pack("<HHLL", tag, 3, 3, extra_at + (6 if tag == 339 else 0))
        else:
            directory += struct.pack("<HHLL", tag, kind, 1, extra_at + len(extra) if value is None else value)
    return b"II*\0" + struct.pack("<L", 8) + directory + bytes(4) + extra + data


def animation(image_format: str, frames: int = 3) -> bytes:
    images = [noise(seed, (8, 8)) for seed in range(frames)]
    return encoded(images[0], image_format, save_all=True, append_images=images[1:])


# --- Colour profiles (ICC.1:2001-04) ------------------------------------------------------------------------------


def rgb_profile(name: str, colorants: np.ndarray, gamma: float | None) -> bytes:
    """A display profile of three colorants and one gamma; None is the curve of sRGB, which Display P3 has too."""
    if gamma is None:
        table = np.rint(_light(np.linspace(0, 1, 1024), None) * 65535).astype(">u2")
        curve = b"curv" + bytes(4) + struct.pack(">I", len(table)) + table.tobytes()
    else:
        curve = b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)
    tags = {b"wtpt": _xyz(D50)}
    for channel, column in zip(b"rgb", colorants.T, strict=True):
        tags[bytes([channel]) + b"XYZ"] = _xyz(column)
        tags[bytes([channel]) + b"TRC"] = curve
    return _profile(b"mntr", b"RGB ", b"XYZ ", name, tags)


def grey_profile(name: str, gamma: float) -> bytes:
    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)
    return _profile(b"mntr", b"GRAY", b"XYZ ", name, {b"wtpt": _xyz(D50), b"kTRC": curve})


def cmyk_profile(name: str, cyan_lab: tuple[int, int, int]) -> bytes:
    """A printer profile whose table has two nodes per ink: paper is white, cyan is given, all else is black."""
    nodes = np.zeros((2, 2, 2, 2, 3))
    nodes[0, 0, 0, 0] = (100, 0, 0)
    nodes[1, 0, 0, 0] = cyan_lab
    table = np.stack([nodes[..., 0] * 255 / 100, nodes[..., 1] + 128, nodes[..., 2] + 128], axis=-1)
    identity = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    ramp = bytes(range(256))
    lut = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + identity + ramp * 4
    lut += table.round().astype(np.uint8).tobytes() + ramp * 3
    return _profile(b"prtr", b"CMYK", b"Lab ", name, {b"wtpt": _xyz(D50), b"A2B0": lut})


def to_srgb(values: np.ndarray, colorants: np.ndarray, gamma: float | None) -> np.ndarray:
    """What pixels (..., 3) of such a profile are in sRGB, by the textbook: IEC 61966-2-1."""
    xyz = _light(values / 255.0, gamma) @ colorants.T
    linear = np.clip(xyz @ np.linalg.inv(SRGB).T, 0, 1)
    return 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _light(values: np.ndarray, gamma: float | None) -> np.ndarray:
    if gamma is None:
        return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return values**gamma


def _xyz(values: Any) -> bytes:
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(float(value) * 65536) for value in values))


def _profile(kind: bytes, space: bytes, connection: bytes, name: str, tags: dict[bytes, bytes]) -> bytes:
    text = name.encode("ascii") + b"\0"
    description = b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(4 + 4 + 2 + 1 + 67)
    tags = {b"desc": description, b"cprt": b"text" + bytes(4) + b"none\0", **tags}
    position = 128 + 4 + 12 * len(tags)
    table, data = struct.pack(">I", len(tags)), b""
    for signature, content in tags.items():
        table += signature + struct.pack(">II", position + len(data), len(content))
        data += content + bytes(-len(content) % 4)
    header = struct.pack(">I4sI4s4s4s", position + len(data), bytes(4), 0x02400000, kind, space, connection)
    header += struct.pack(">6H", 2020, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + _xyz(D50)[8:]
    return header.ljust(128, b"\0") + table + data
