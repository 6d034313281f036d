"""Decoding: upright, sRGB, without metadata, or refused with a reason."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from imagedb import pixels
from imagedb.pixels import UnreadableImage, decode
from tests.imagedb import pictures
from tests.imagedb.pictures import encoded, noise


def array(image: Image.Image) -> np.ndarray:
    return np.asarray(image).astype(int)


def refusal(content: bytes) -> str:
    with pytest.raises(UnreadableImage) as caught:
        decode(content)
    return caught.value.reason


class TestPlainFiles:
    @pytest.mark.parametrize("image_format", ["PNG", "BMP", "TIFF", "JPEG", "WEBP"])
    def test_pixels_without_profile_stay_as_a_plain_decode_gives_them(self, image_format):
        content = encoded(noise(), image_format)
        decoded = decode(content)
        assert (decoded.format, decoded.mode, decoded.width, decoded.height) == (image_format, "RGB", 40, 30)
        assert np.array_equal(array(decoded.image), array(Image.open(io.BytesIO(content)).convert("RGB")))
        assert decoded.notes == ()

    def test_gif_palette(self):
        palette = noise().quantize(32)
        decoded = decode(encoded(palette, "GIF"))
        assert decoded.format == "GIF"
        assert np.array_equal(array(decoded.image), array(palette.convert("RGB")))

    def test_grey_becomes_three_equal_channels(self):
        grey = noise().convert("L")
        decoded = decode(encoded(grey))
        assert decoded.mode == "L"
        assert np.array_equal(array(decoded.image), np.repeat(array(grey)[..., None], 3, axis=-1))

    def test_black_and_white(self):
        decoded = decode(encoded(noise().convert("1")))
        assert set(np.unique(array(decoded.image))) == {0, 255}

    def test_format_is_what_the_content_is(self):
        # Whatever the name says: a name does not even reach this function.
        assert decode(encoded(noise(), "PNG")).format == "PNG"
        assert decode(encoded(noise(), "JPEG")).format == "JPEG"

    def test_jpeg_with_embedded_previews_is_its_first_picture(self):
        content = encoded(noise(1), "MPO", save_all=True, append_images=[noise(2)])
        decoded = decode(content)
        assert decoded.format == "JPEG"
        assert np.abs(array(decoded.image) - array(Image.open(io.BytesIO(encoded(noise(1), "JPEG"))))).max() <= 1


class TestSixteenBits:
    def test_grey_is_scaled_not_clipped(self):
        values = np.array([[0, 128, 256, 257, 32768, 65535]], np.uint16)
        decoded = decode(encoded(Image.fromarray(values)))
        assert array(decoded.image)[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]

    def test_big_endian_tiff(self):
        values = np.array([[0, 65535, 32768]], ">u2")
        image = Image.frombytes("I;16B", (3, 1), values.tobytes())
        assert array(decode(encoded(image, "TIFF")).image)[0, :, 1].tolist() == [0, 255, 128]

    def test_colour(self):
        row = b"\0" + struct.pack(">6H", 0, 65535, 32768, 65535, 0, 257)
        decoded = decode(pictures.png(2, 1, 16, 2, row))
        assert array(decoded.image)[0].tolist() == [[0, 255, 128], [255, 0, 1]]

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

    def test_transparent_colour_key(self):
        image = Image.new("RGB", (2, 1), (1, 2, 3))
        image.putpixel((1, 0), (9, 9, 9))
        decoded = decode(encoded(image, transparency=(9, 9, 9)))
        assert array(decoded.image)[0].tolist() == [[1, 2, 3], [255, 255, 255]]


class TestOrientation:
    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("image_format", ["PNG", "TIFF", "WEBP", "JPEG"])
    def test_upright(self, orientation, image_format):
        options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(image_format, {})
        decoded = decode(pictures.oriented(orientation, image_format, **options))
        assert (decoded.width, decoded.height) == (48, 32)
        assert np.abs(array(decoded.image) - array(pictures.corners())).max() <= (3 if image_format == "JPEG" else 0)
        rendition = Image.open(io.BytesIO(pixels.rendition_png(decoded.image)))
        assert rendition.size == (48, 32)
        assert not rendition.getexif()

    def test_damaged_exif_is_no_reason_to_refuse_good_pixels(self):
        exif = png_exif = b"Exif\0\0II*\0\xff\xff\xff\xff"
        content = encoded(noise(), "JPEG", exif=exif)
        assert decode(content).width == 40
        with_exif = pictures.png(1, 1, 8, 2, b"\0\1\2\3", extra=pictures.png_chunk(b"eXIf", png_exif[6:]))
        assert array(decode(with_exif).image).tolist() == [[[1, 2, 3]]]


class TestColourProfiles:
    @pytest.mark.parametrize(
        ("name", "colorants", "gamma"),
        [
            ("Adobe RGB (1998)", pictures.ADOBE_RGB, 2.19921875),
            ("ProPhoto RGB", pictures.PROPHOTO, 1.80078125),
            ("Display P3, nearly", pictures.DISPLAY_P3, 2.19921875),
        ],
    )
    def test_wide_gamut_is_converted_to_srgb(self, name, colorants, gamma):
        # Soft colours, which sRGB has too: what is outside of it depends on how one clips.
        values = np.random.default_rng(0).integers(90, 170, (20, 20, 3), dtype=np.uint8)
        content = encoded(Image.fromarray(values), icc_profile=pictures.rgb_profile(name, colorants, gamma))
        decoded = decode(content)
        assert np.abs(array(decoded.image) - pictures.to_srgb(values, colorants, gamma)).max() <= 2
        assert np.abs(array(decoded.image) - values).max() > 10
        assert decoded.notes == (f"colours were converted from {name} to sRGB",)

    def test_srgb_by_any_name_leaves_every_pixel(self):
        for profile in (
            ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
            ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes().replace(b"sRGB", b"ProP"),
        ):
            decoded = decode(encoded(noise(), icc_profile=profile))
            assert np.array_equal(array(decoded.image), array(noise()))
            assert decoded.notes == ()

    def test_a_name_is_not_believed(self):
        profile = pictures.rgb_profile("sRGB IEC61966-2.1", pictures.PROPHOTO, 1.8)
        assert decode(encoded(noise(), icc_profile=profile)).notes

    def test_grey_profile(self):
        grey = Image.fromarray(np.full((2, 2), 128, np.uint8))
        decoded = decode(encoded(grey, icc_profile=pictures.grey_profile("Linear grey", 1.0)))
        # 128/255 of light is 188 in sRGB.
        assert np.abs(array(decoded.image) - 188).max() <= 1

    def test_rgb_profile_on_a_grey_file_means_its_tones(self):
        grey = Image.fromarray(np.full((2, 2), 128, np.uint8))
        profile = pictures.rgb_profile("Linear", pictures.SRGB, 1.0)
        assert np.abs(array(decode(encoded(grey, icc_profile=profile)).image) - 188).max() <= 1

    @pytest.mark.parametrize("image_format", ["JPEG", "TIFF"])
    def test_cmyk_with_profile(self, image_format):
        image = Image.new("CMYK", (16, 16), (0, 0, 0, 0))
        image.paste((255, 0, 0, 0), (8, 0, 16, 16))
        content = encoded(image, image_format, icc_profile=pictures.cmyk_profile("Two inks", (60, -30, -40)))
        decoded = decode(content)
        assert decoded.mode == "CMYK"
        assert (array(decoded.image)[:, :4] >= 253).all()
        # CIELAB (60, -30, -40) is sRGB (0, 162, 214) to the nearest level of red, which is out of gamut.
        assert np.abs(array(decoded.image)[8, 13] - [0, 162, 214]).max() <= 4
        rendition = Image.open(io.BytesIO(pixels.rendition_png(decoded.image)))
        assert (rendition.mode, rendition.info) == ("RGB", {})

    @pytest.mark.parametrize("image_format", ["JPEG", "TIFF"])
    def test_cmyk_without_profile_is_refused(self, image_format):
        assert "CMYK without" in refusal(encoded(Image.new("CMYK", (16, 16)), image_format))

    def test_cmyk_with_a_profile_for_rgb_is_refused(self):
        profile = pictures.rgb_profile("Adobe RGB (1998)", pictures.ADOBE_RGB, 2.2)
        assert "CMYK without" in refusal(encoded(Image.new("CMYK", (16, 16)), "JPEG", icc_profile=profile))

    @pytest.mark.parametrize(
        "profile", [b"this is no profile", pictures.cmyk_profile("Two inks", (60, -30, -40))], ids=["broken", "cmyk"]
    )
    def test_a_profile_that_cannot_apply_is_ignored(self, profile):
        decoded = decode(encoded(noise(), icc_profile=profile))
        assert np.array_equal(array(decoded.image), array(noise()))


class TestRefusals:
    def test_empty(self):
        assert refusal(b"") == "the file is empty"

    @pytest.mark.parametrize(
        "content",
        [
            b"<!doctype html><script>alert(1)</script>",
            b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
            b"just text",
            b"\x00" * 1000,
        ],
        ids=["html", "svg", "eps", "text", "zeros"],
    )
    def test_not_an_image(self, content):
        assert "not an image of a known format" in refusal(content)

    @pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"])
    @pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
    def test_cut_short(self, image_format, share):
        content = encoded(noise(size=(200, 150)), image_format)
        with pytest.raises(UnreadableImage):
            decode(content[: int(len(content) * share)])

    @pytest.mark.parametrize("image_format", ["GIF", "PNG", "WEBP", "TIFF"])
    def test_several_frames(self, image_format):
        assert "several frames" in refusal(pictures.animation(image_format))

    def test_five_hundred_frames(self):
        assert "several frames" in refusal(pictures.animation("GIF", 500))

    @pytest.mark.parametrize("side", [7_072, 10_000, 50_000], ids=["over ours", "Pillow warns", "Pillow refuses"])
    def test_too_many_pixels_are_seen_in_the_header(self, side):
        # There are no pixels behind this header: a decoder that went on would call the file damaged.
        assert "pixels" in refusal(pictures.png(side, side, 1, 0))

    def test_the_limit_itself_is_allowed(self):
        content = encoded(Image.new("1", (100, 50)))
        assert decode(content, max_pixels=5_000).width == 100
        with pytest.raises(UnreadableImage, match="100 x 50"):
            decode(content, max_pixels=4_999)

    @pytest.mark.parametrize("kind", [b"zTXt", b"iCCP"])
    def test_text_and_profile_bombs(self, kind):
        bomb = pictures.png_chunk(kind, b"name\0\0" + zlib.compress(bytes(80_000_000)))
        content = pictures.png(1, 1, 8, 2, b"\0\1\2\3", extra=bomb)
        assert len(content) < 100_000
        with contextlib.suppress(UnreadableImage):  # skipping the chunk is as good as refusing the file
            assert decode(content).width == 1

    @pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"])
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8))
    def test_damage_never_gets_out_as_another_error(self, image_format, edits):
        content = bytearray(encoded(noise(size=(20, 20)), image_format))
        for position, value in edits:
            content[position % len(content)] = value
        try:
            decoded = decode(bytes(content))
        except UnreadableImage:
            return
        assert decoded.image.mode == "RGB"


class TestEncoding:
    def test_rendition_has_nothing_but_pixels(self):
        image = noise()
        image.info = {"icc_profile": b"x" * 200, "dpi": (300, 300), "comment": b"me", "transparency": (1, 2, 3)}
        content = pixels.rendition_png(image)
        assert set(pictures.png_chunks(content)) == {"IHDR", "IDAT", "IEND"}
        again = Image.open(io.BytesIO(content))
        assert (again.format, again.mode, again.info) == ("PNG", "RGB", {})
        assert np.array_equal(array(again), array(noise()))

    def test_rendition_is_the_same_for_the_same_pixels(self):
        jpeg = decode(encoded(Image.new("RGB", (32, 32), (128, 128, 128)), "JPEG"))
        png = decode(encoded(Image.new("RGB", (32, 32), (128, 128, 128)), "PNG"))
        assert pixels.rendition_png(jpeg.image) == pixels.rendition_png(png.image)

    def test_thumbnail_is_small_and_bare(self):
        image = noise(size=(600, 300))
        image.info = {"icc_profile": b"x" * 200, "comment": b"me"}
        small = Image.open(io.BytesIO(pixels.thumbnail(image)))
        assert (small.format, small.size) == ("JPEG", (256, 128))
        assert not small.getexif()
        assert "icc_profile" not in small.info
        assert "comment" not in small.info

    def test_thumbnail_does_not_enlarge(self):
        assert Image.open(io.BytesIO(pixels.thumbnail(noise()))).size == (40, 30)


class TestRealFiles:
    """The 130 photographs and the six adversarial examples, as they are in the wild."""

    def test_every_one_decodes_to_the_pixels_a_plain_decode_gives_unless_its_profile_says_otherwise(self, shared_data):
        paths = [
            path
            for folder in ("imagenet", "attacks_140")
            for path in sorted((shared_data / "images" / folder).iterdir())
            if path.suffix != ".csv"
        ]
        assert len(paths) == 137
        converted = 0
        for path in paths:
            plain = Image.open(path)
            decoded = decode(path.read_bytes())
            rendition = Image.open(io.BytesIO(pixels.rendition_png(decoded.image)))
            assert (rendition.format, rendition.mode, rendition.info) == ("PNG", "RGB", {}), path.name
            same = np.array_equal(array(rendition), array(plain.convert("RGB")))
            assert same != bool(decoded.notes), path.name
            if decoded.notes:
                assert plain.info["icc_profile"], path.name
                converted += 1
        assert converted == 13

    def test_adobe_rgb_photographs_follow_the_textbook(self, shared_data):
        checked = 0
        for path in sorted((shared_data / "images" / "imagenet").iterdir()):
            decoded = decode(path.read_bytes())
            if decoded.notes == ("colours were converted from Adobe RGB (1998) to sRGB",):
                plain = np.asarray(Image.open(path))
                expected = pictures.to_srgb(plain, pictures.ADOBE_RGB, 2.19921875)
                assert np.abs(array(decoded.image) - expected).mean() < 0.6, path.name
                checked += 1
        assert checked == 5
