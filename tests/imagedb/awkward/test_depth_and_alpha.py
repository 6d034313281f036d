"""16 bits per channel, palettes and transparency."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from imagedb.pixels import decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import array, refusal
from tests.imagedb.pictures import encoded, noise


class TestSixteenBits:
    @pytest.mark.parametrize("image_format", ["PNG", "TIFF"])
    def test_grey_is_scaled_not_clipped(self, image_format):
        values = np.array([[0, 128, 256, 257, 32768, 65535]], np.uint16)
        decoded = decode(encoded(Image.fromarray(values), image_format))
        assert array(decoded.image)[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]
        assert decoded.mode == "I;16"
        assert decoded.notes == ("16 bits per channel were reduced to 8",)

    def test_big_endian_tiff(self):
        values = np.array([[0, 65535, 32768]], ">u2")
        image = Image.frombytes("I;16B", (3, 1), values.tobytes())
        assert array(decode(encoded(image, "TIFF")).image)[0, :, 1].tolist() == [0, 255, 128]

    VALUES = np.array([[[0, 65535, 32768], [65535, 0, 257], [256, 128, 65280]]], np.uint16)
    EIGHT_BITS = [[0, 255, 128], [255, 0, 1], [1, 0, 255]]

    def test_colour_in_png(self):
        row = b"\0" + self.VALUES.astype(">u2").tobytes()
        decoded = decode(pictures.png(3, 1, 16, 2, row))
        assert array(decoded.image)[0].tolist() == self.EIGHT_BITS
        assert decoded.notes == ("16 bits per channel were reduced to 8",)

    def test_colour_in_tiff(self):
        decoded = decode(pictures.tiff(self.VALUES))
        assert (decoded.format, decoded.width, decoded.height) == ("TIFF", 3, 1)
        assert array(decoded.image)[0].tolist() == self.EIGHT_BITS
        assert decoded.notes == ("16 bits per channel were reduced to 8",)

    def test_colour_with_alpha(self):
        row = b"\0" + struct.pack(">8H", 65535, 0, 257, 65535, 0, 0, 0, 0)
        decoded = decode(pictures.png(2, 1, 16, 6, row))
        assert array(decoded.image)[0].tolist() == [[255, 0, 1], [255, 255, 255]]

    def test_colour_profile_of_deep_colours(self):
        profile = pictures.rgb_profile("Linear", pictures.SRGB, 1.0)
        decoded = decode(
            encoded(Image.fromarray(np.full((2, 2), 128 * 257, np.uint16)), icc_profile=pictures.grey_profile("L", 1.0))
        )
        assert np.abs(array(decoded.image) - 188).max() <= 1
        row = b"\0" + struct.pack(">3H", *[128 * 257] * 3)
        chunk = pictures.png_chunk(b"iCCP", b"Linear\0\0" + zlib.compress(profile))
        assert np.abs(array(decode(pictures.png(1, 1, 16, 2, row, chunk)).image) - 188).max() <= 1

    def test_eight_bits_are_not_said_to_be_reduced(self):
        assert decode(encoded(noise())).notes == ()

    def test_greys_that_count_from_white_are_refused_rather_than_inverted(self):
        image = Image.fromarray(np.zeros((2, 2), np.uint16))
        content = encoded(image, "TIFF", tiffinfo={262: 0})
        if Image.open(io.BytesIO(content)).tag_v2[262] != 0:  # the writer has its own mind; change the tag by hand
            entry = struct.pack("<HHI", 262, 3, 1)
            position = content.index(entry) + len(entry)
            content = content[:position] + bytes(4) + content[position + 4 :]
        assert "count from white" in refusal(content)

    @pytest.mark.parametrize("mode", ["I", "F"])
    def test_numbers_that_are_no_colours_are_refused(self, mode):
        assert "colour mode" in refusal(encoded(Image.new(mode, (4, 4)), "TIFF"))


class TestPalettes:
    @pytest.mark.parametrize("image_format", ["PNG", "GIF", "BMP", "TIFF"])
    @pytest.mark.parametrize("colours", [2, 16, 256])
    def test_colours_of_the_palette(self, image_format, colours):
        palette = noise().quantize(colours)
        decoded = decode(encoded(palette, image_format))
        assert decoded.mode in {"P", "L", "1"}  # as the format keeps it
        assert np.array_equal(array(decoded.image), array(palette.convert("RGB")))
        assert decoded.notes == ()

    def test_a_palette_has_a_profile_too(self):
        palette = Image.new("P", (2, 1))
        palette.putpalette([128, 128, 128, 0, 0, 0])
        content = encoded(palette, icc_profile=pictures.rgb_profile("Linear", pictures.SRGB, 1.0))
        assert np.abs(array(decode(content).image) - 188).max() <= 1

    def test_an_index_beyond_the_palette(self):
        # Black, as libpng has it (PNG, section 11.2.2, calls it an error).
        content = pictures.png(2, 1, 8, 3, b"\0\0\xff", extra=pictures.png_chunk(b"PLTE", bytes([1, 2, 3])))
        assert array(decode(content).image)[0].tolist() == [[1, 2, 3], [0, 0, 0]]


class TestTransparency:
    @pytest.mark.parametrize("image_format", ["PNG", "TIFF", "WEBP"])
    def test_alpha_is_flattened_on_white_and_said(self, image_format):
        image = noise().convert("RGBA")
        image.putalpha(0)
        options = {"lossless": True} if image_format == "WEBP" else {}
        decoded = decode(encoded(image, image_format, **options))
        assert (array(decoded.image) == 255).all()
        assert decoded.notes == ("transparency was flattened on white",)

    def test_half_transparent_black_is_grey(self):
        decoded = decode(encoded(Image.new("RGBA", (2, 2), (0, 0, 0, 128))))
        assert np.abs(array(decoded.image) - 127).max() <= 1

    def test_colours_under_transparency_do_not_show(self):
        image = noise().convert("RGBA")
        image.putalpha(Image.new("L", image.size, 51))
        expected = 255 + (array(noise()) - 255) * 0.2
        assert np.abs(array(decode(encoded(image)).image) - expected).max() <= 1

    def test_opaque_alpha_changes_nothing(self):
        decoded = decode(encoded(noise().convert("RGBA")))
        assert np.array_equal(array(decoded.image), array(noise()))
        assert decoded.notes == ()

    def test_grey_with_alpha(self):
        image = Image.merge("LA", (Image.new("L", (2, 2), 10), Image.new("L", (2, 2), 0)))
        assert (array(decode(encoded(image)).image) == 255).all()

    def test_transparent_palette_entry(self):
        image = Image.new("P", (2, 1))
        image.putpalette([200, 0, 0, 0, 0, 200])
        image.putdata([0, 1])
        for image_format in ("PNG", "GIF"):
            decoded = decode(encoded(image, image_format, transparency=1))
            assert array(decoded.image)[0].tolist() == [[200, 0, 0], [255, 255, 255]]

    def test_palette_with_an_alpha_for_each_entry(self):
        image = Image.new("P", (3, 1))
        image.putpalette([200, 0, 0, 0, 0, 0, 0, 0, 200])
        image.putdata([0, 1, 2])
        decoded = decode(encoded(image, transparency=bytes([255, 51, 0])))
        assert array(decoded.image)[0].tolist() == [[200, 0, 0], [204, 204, 204], [255, 255, 255]]
        assert (decoded.mode, decoded.notes) == ("P", ("transparency was flattened on white",))

    def test_transparent_colour_key(self):
        image = Image.new("RGB", (2, 1), (1, 2, 3))
        image.putpixel((1, 0), (9, 9, 9))
        decoded = decode(encoded(image, transparency=(9, 9, 9)))
        assert array(decoded.image)[0].tolist() == [[1, 2, 3], [255, 255, 255]]
