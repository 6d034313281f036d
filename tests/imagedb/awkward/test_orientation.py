"""EXIF orientation: pictures are upright, whichever way the camera was held."""

import io

import numpy as np
import pytest
from PIL import Image

from imagedb import pixels
from imagedb.pixels import decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import array
from tests.imagedb.pictures import encoded, noise


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
