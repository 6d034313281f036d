"""Files that are not whole, and headers that promise more or less than there is."""

import io
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from imagedb.pixels import UnreadableImage, decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import array, refusal
from tests.imagedb.pictures import encoded, noise

FORMATS = ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"]


def test_empty():
    assert refusal(b"") == "the file is empty"


class TestCutShort:
    @pytest.mark.parametrize("image_format", FORMATS)
    @pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.9, 0.99])
    def test_anywhere(self, image_format, share):
        content = encoded(noise(size=(200, 150)), image_format)
        reason = refusal(content[: max(4, int(len(content) * share))])
        assert "damaged" in reason or "cut short" in reason

    @pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "BMP", "TIFF"])
    @pytest.mark.parametrize("missing", [1, 2, 8])
    def test_by_a_few_bytes(self, image_format, missing):
        content = encoded(noise(size=(200, 150)), image_format)
        assert "cut short" in refusal(content[:-missing])

    @pytest.mark.parametrize("options", [{}, {"progressive": True}], ids=["baseline", "progressive"])
    @pytest.mark.parametrize("mode", ["RGB", "L"])
    def test_jpeg_that_was_cut_and_closed(self, mode, options):
        """As a download that broke off and was finished with zeros, or by a program that means well."""
        content = encoded(noise(size=(200, 150)).convert(mode), "JPEG", **options)
        half = len(content) // 2
        assert decode(content).mode == mode
        for rest in (b"\xff\xd9", bytes(half)):
            assert "cut short" in refusal(content[:half] + rest)

    def test_pillow_alone_would_fill_up_with_grey(self):
        content = encoded(noise(size=(200, 150)), "JPEG")
        filled = Image.open(io.BytesIO(content[: len(content) // 2] + b"\xff\xd9")).convert("RGB")
        assert (array(filled)[-8:] == 128).all()


class TestLyingHeaders:
    PIXELS = pictures.scan_lines(noise(size=(12, 10)))

    @pytest.mark.parametrize(
        ("size", "words"),
        [((12, 20), "fewer"), ((12, 9), "more"), ((13, 10), "fewer"), ((11, 10), "more"), ((1_000, 1_000), "fewer")],
    )
    def test_png(self, size, words):
        assert decode(pictures.png(12, 10, 8, 2, self.PIXELS)).width == 12
        assert f"it has {words} pixels than its header says" in refusal(pictures.png(*size, 8, 2, self.PIXELS))

    def test_png_of_another_depth(self):
        assert "fewer pixels" in refusal(pictures.png(12, 10, 16, 2, self.PIXELS))
        assert "more pixels" in refusal(pictures.png(12, 10, 8, 0, self.PIXELS))

    def test_png_without_pixels(self):
        assert "fewer pixels" in refusal(pictures.png(12, 10, 8, 2))

    @pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (4, 4), (5, 3), (13, 17)])
    def test_interlaced_png(self, size):
        """Seven passes, some of them empty for small pictures."""
        width, height = size
        pixels = np.asarray(noise(size=size))
        raw = b""
        for left, top, step_x, step_y in (
            (0, 0, 8, 8),
            (4, 0, 8, 8),
            (0, 4, 4, 8),
            (2, 0, 4, 4),
            (0, 2, 2, 4),
            (1, 0, 2, 2),
            (0, 1, 1, 2),
        ):
            part = pixels[top::step_y, left::step_x]
            raw += pictures.scan_lines(part) if part.size else b""
        decoded = decode(pictures.png(width, height, 8, 2, raw, is_interlaced=True))
        assert np.array_equal(array(decoded.image), pixels)
        assert "fewer pixels" in refusal(pictures.png(width, height, 8, 2, raw[:-1], is_interlaced=True))

    @pytest.mark.parametrize("bits", [1, 2, 4])
    def test_png_of_less_than_a_byte_for_each_pixel(self, bits):
        row = bytes(1 + -(-13 * bits // 8))
        assert decode(pictures.png(13, 3, bits, 0, row * 3)).width == 13
        assert "more pixels" in refusal(pictures.png(13, 3, bits, 0, row * 4))

    @pytest.mark.parametrize(
        ("size", "words"),
        [((480, 64), "cut short"), ((48, 128), "cut short"), ((24, 64), "more pixels"), ((48, 16), "more pixels")],
        ids=["taller", "wider", "shorter", "narrower"],
    )
    def test_jpeg(self, size, words):
        content = encoded(noise(size=(64, 48)), "JPEG", quality=90)
        position = content.index(b"\xff\xc0") + 5
        assert struct.unpack_from(">HH", content, position) == (48, 64)
        lie = content[:position] + struct.pack(">HH", *size) + content[position + 4 :]
        assert words in refusal(lie)

    def test_bmp(self):
        content = encoded(noise(), "BMP")
        assert "cut short" in refusal(content[:22] + struct.pack("<i", 60) + content[26:])

    @pytest.mark.parametrize("position", [8, 16, 24, 29])
    def test_a_header_with_a_wrong_checksum(self, position):
        content = bytearray(encoded(noise()))
        content[position] ^= 0x10
        assert "damaged" in refusal(bytes(content))


class TestHarmlessFlaws:
    """What other decoders read without harm to a pixel is read here too."""

    @pytest.mark.parametrize("mode", ["RGB", "L"])
    def test_bytes_between_the_last_pixel_and_the_end_of_a_jpeg(self, mode):
        content = encoded(noise(size=(200, 150)).convert(mode), "JPEG")
        with_more = content[:-2] + bytes(20) + content[-2:]
        assert np.array_equal(array(decode(with_more).image), array(decode(content).image))

    def test_bytes_after_the_end(self):
        for image_format in FORMATS:
            content = encoded(noise(), image_format)
            assert np.array_equal(array(decode(content + b"more").image), array(decode(content).image)), image_format


class TestAnyDamage:
    @pytest.mark.parametrize("image_format", FORMATS)
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8))
    def test_never_gets_out_as_another_error(self, image_format, edits):
        content = bytearray(encoded(noise(size=(20, 20)), image_format))
        for position, value in edits:
            content[position % len(content)] = value
        try:
            decoded = decode(bytes(content))
        except UnreadableImage:
            return
        assert decoded.image.mode == "RGB"
