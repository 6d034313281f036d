"""Decoding to upright sRGB pixels, and encoding what is shown. Awkward files have tests of their own: awkward/."""

import io

import numpy as np
import pytest
from PIL import Image, ImageCms

from imagedb import pixels
from imagedb.pixels import decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import array
from tests.imagedb.pictures import encoded, noise


class TestPlainFiles:
    @pytest.mark.parametrize("image_format", ["PNG", "BMP", "TIFF", "JPEG", "WEBP"])
    def test_pixels_without_profile_stay_as_a_plain_decode_gives_them(self, image_format):
        content = encoded(noise(), image_format)
        decoded = decode(content)
        assert (decoded.format, decoded.mode, decoded.width, decoded.height) == (image_format, "RGB", 40, 30)
        assert np.array_equal(array(decoded.image), array(Image.open(io.BytesIO(content)).convert("RGB")))
        assert decoded.notes == ()

    @pytest.mark.parametrize("size", [(40, 30), (1, 1), (17, 9)])
    @pytest.mark.parametrize(
        "options",
        [
            {"subsampling": 0},
            {"subsampling": 1},
            {"subsampling": 2},
            {"progressive": True},
            {"quality": 30},
            {"restart_marker_blocks": 1},
            {"keep_rgb": True},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("mode", ["RGB", "L"])
    def test_jpeg_of_every_kind_decodes_as_with_pillow(self, mode, options, size):
        content = encoded(noise(size=size).convert(mode), "JPEG", **options)
        assert np.array_equal(array(decode(content).image), array(Image.open(io.BytesIO(content)).convert("RGB")))

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


class TestEncoding:
    def test_rendition_has_nothing_but_pixels(self):
        image = noise()
        image.info = {"icc_profile": b"x" * 200, "dpi": (300, 300), "comment": b"me", "transparency": (1, 2, 3)}
        content = pixels.rendition_png(image)
        assert set(pictures.png_chunks(content)) == {"IHDR", "IDAT", "IEND"}
        again = Image.open(io.BytesIO(content))
        assert (again.format, again.mode, again.info) == ("PNG", "RGB", {})
        assert np.array_equal(array(again), array(noise()))

    @pytest.mark.parametrize("mode", ["RGB", "L", "P", "1", "RGBA"])
    @pytest.mark.parametrize("image_format", ["PNG", "TIFF"])
    def test_rendition_has_every_pixel_of_an_srgb_original(self, mode, image_format):
        original = noise().convert(mode)
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        for profile in ({}, {"icc_profile": srgb}) if mode in {"RGB", "RGBA", "P"} else ({},):
            rendition = pixels.rendition_png(decode(encoded(original, image_format, **profile)).image)
            assert np.array_equal(array(Image.open(io.BytesIO(rendition))), array(original.convert("RGB")))

    def test_decoded_image_holds_no_metadata(self):
        exif = Image.Exif()
        exif[271] = "A camera"
        for content in (
            encoded(noise(), "JPEG", exif=exif, comment=b"me", dpi=(300, 300)),
            encoded(noise(), "PNG", exif=exif, dpi=(300, 300)),
            encoded(noise().convert("L"), "PNG", exif=exif),
        ):
            image = decode(content).image
            assert type(image) is Image.Image  # not a file of Pillow's, which would keep all bytes of it in memory
            assert (image.info, dict(image.getexif())) == ({}, {})

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

    @pytest.mark.parametrize(("size", "small"), [((600, 1), (256, 1)), ((1, 600), (1, 256)), ((257, 257), (256, 256))])
    def test_thumbnail_of_any_shape(self, size, small):
        assert Image.open(io.BytesIO(pixels.thumbnail(noise(size=size)))).size == small

    def test_arguments_stay_as_they_are(self):
        image = noise(size=(600, 300))
        pixels.thumbnail(image)
        pixels.rendition_png(image)
        assert np.array_equal(array(image), array(noise(size=(600, 300))))

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
