"""Colour profiles: wide gamuts, CMYK, grey, and sRGB by any name."""

import io

import numpy as np
import pytest
from PIL import Image, ImageCms

from imagedb import pixels
from imagedb.pixels import decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import array, refusal
from tests.imagedb.pictures import encoded, noise

ADOBE_RGB = ("Adobe RGB (1998)", pictures.ADOBE_RGB, 2.19921875)
PROPHOTO = ("ProPhoto RGB", pictures.PROPHOTO, 1.80078125)
DISPLAY_P3 = ("Display P3", pictures.DISPLAY_P3, None)


class TestWideGamut:
    @pytest.mark.parametrize("image_format", ["PNG", "TIFF", "WEBP"])
    @pytest.mark.parametrize(
        ("profile", "values", "expected"),
        [
            # Web Platform Tests, css/css-color: the same greens in each space, here to 8 bits.
            (DISPLAY_P3, (0.26374, 0.59085, 0.16434), (0, 153, 0)),
            (ADOBE_RGB, (0.281363, 0.498012, 0.116746), (0, 128, 0)),
            (PROPHOTO, (0.230479, 0.395789, 0.129968), (0, 128, 0)),
        ],
        ids=["Display P3", "Adobe RGB", "ProPhoto"],
    )
    def test_published_colours(self, profile, values, expected, image_format):
        pixels_of_file = tuple(round(value * 255) for value in values)
        image = Image.new("RGB", (16, 16), pixels_of_file)
        options = {"lossless": True} if image_format == "WEBP" else {}
        decoded = decode(encoded(image, image_format, icc_profile=pictures.rgb_profile(*profile), **options))
        # A level of the wide space, which rounding may miss by half, is two or three of sRGB.
        assert np.abs(array(decoded.image)[8, 8] - expected).max() <= 4
        assert np.abs(np.array(pixels_of_file) - expected).max() > 30
        assert decoded.profile == profile[0]

    @pytest.mark.parametrize(("name", "colorants", "gamma"), [ADOBE_RGB, PROPHOTO, DISPLAY_P3])
    def test_wide_gamut_is_converted_to_srgb(self, name, colorants, gamma):
        # Soft colours, which sRGB has too: what is outside of it depends on how one clips.
        values = np.random.default_rng(0).integers(90, 170, (20, 20, 3), dtype=np.uint8)
        content = encoded(Image.fromarray(values), icc_profile=pictures.rgb_profile(name, colorants, gamma))
        decoded = decode(content)
        assert np.abs(array(decoded.image) - pictures.to_srgb(values, colorants, gamma)).max() <= 2
        assert np.abs(array(decoded.image) - values).max() > 10
        assert decoded.notes == (f"colours were converted from {name} to sRGB",)

    @pytest.mark.parametrize("profile", [ADOBE_RGB, PROPHOTO, DISPLAY_P3], ids=["Adobe RGB", "ProPhoto", "Display P3"])
    @pytest.mark.parametrize("options", [{}, {"progressive": True, "subsampling": 2}], ids=["baseline", "progressive"])
    def test_jpeg_is_converted_as_its_own_pixels_say(self, profile, options):
        soft = Image.fromarray(np.random.default_rng(0).integers(90, 170, (4, 4, 3), dtype=np.uint8)).resize((64, 64))
        content = encoded(soft, "JPEG", icc_profile=pictures.rgb_profile(*profile), **options)
        expected = pictures.to_srgb(np.asarray(Image.open(io.BytesIO(content))), *profile[1:])
        assert np.abs(array(decode(content).image) - expected).max() <= 2

    def test_what_srgb_does_not_have_is_clipped(self):
        content = encoded(Image.new("RGB", (2, 2), (0, 255, 0)), icc_profile=pictures.rgb_profile(*DISPLAY_P3))
        assert np.abs(array(decode(content).image) - [0, 255, 0]).max() <= 1

    @pytest.mark.parametrize("level", [0, 255])
    def test_black_and_white_stay(self, level):
        for profile in (ADOBE_RGB, PROPHOTO, DISPLAY_P3):
            content = encoded(Image.new("RGB", (2, 2), (level,) * 3), icc_profile=pictures.rgb_profile(*profile))
            assert (array(decode(content).image) == level).all()


class TestSrgb:
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


class TestOtherKindsOfPixels:
    def test_grey_profile(self):
        grey = Image.fromarray(np.full((2, 2), 128, np.uint8))
        decoded = decode(encoded(grey, icc_profile=pictures.grey_profile("Linear grey", 1.0)))
        # 128/255 of light is 188 in sRGB.
        assert np.abs(array(decoded.image) - 188).max() <= 1

    def test_rgb_profile_on_a_grey_file_means_its_tones(self):
        grey = Image.fromarray(np.full((2, 2), 128, np.uint8))
        profile = pictures.rgb_profile("Linear", pictures.SRGB, 1.0)
        assert np.abs(array(decode(encoded(grey, icc_profile=profile)).image) - 188).max() <= 1


class TestCmyk:
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


class TestNamesAndUselessProfiles:
    def test_name_is_kept_for_the_record(self):
        assert decode(encoded(noise(), icc_profile=pictures.rgb_profile(*ADOBE_RGB))).profile == "Adobe RGB (1998)"
        assert decode(encoded(noise())).profile == ""
        assert decode(encoded(noise(), icc_profile=b"this is no profile")).profile == "a profile that cannot be read"

    @pytest.mark.parametrize("name", ["x" * 300, "tab\tand\nline", "\x01\x02"])
    def test_any_name_can_be_stored(self, name):
        profile = decode(encoded(noise(), icc_profile=pictures.rgb_profile(name, pictures.ADOBE_RGB, 2.2))).profile
        assert 0 < len(profile) <= 100
        assert profile.isprintable()

    @pytest.mark.parametrize(
        "profile", [b"this is no profile", pictures.cmyk_profile("Two inks", (60, -30, -40))], ids=["broken", "cmyk"]
    )
    def test_a_profile_that_cannot_apply_is_ignored(self, profile):
        decoded = decode(encoded(noise(), icc_profile=profile))
        assert np.array_equal(array(decoded.image), array(noise()))
