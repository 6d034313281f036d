"""Files of several frames or pages: nobody can say which one is meant."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageFile

from imagedb.pixels import decode
from tests.imagedb import pictures
from tests.imagedb.awkward.decoding import array, refusal
from tests.imagedb.pictures import encoded, noise


@pytest.mark.parametrize("image_format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_several_frames_are_refused(image_format):
    assert refusal(pictures.animation(image_format)) == "it has several frames or pages; save the one that is meant"


@pytest.mark.parametrize("image_format", ["GIF", "PNG", "WEBP"])
def test_five_hundred_frames_are_refused_without_decoding_them(image_format, monkeypatch):
    content = pictures.animation(image_format, 500)
    decoded, load = [], ImageFile.ImageFile.load

    def recorded(image):
        decoded.append(image.tell())
        return load(image)

    monkeypatch.setattr(ImageFile.ImageFile, "load", recorded)
    assert "several frames" in refusal(content)
    assert set(decoded) <= {0}
    with Image.open(BytesIO(content)) as image:  # decoding one would have been noticed
        image.seek(1)
        image.load()
    assert 1 in decoded


@pytest.mark.parametrize("image_format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_a_single_frame_is_a_picture(image_format):
    content = encoded(noise(0, (8, 8)).quantize(16).convert("RGB"), image_format, save_all=True, lossless=True)
    assert decode(content).width == 8


def test_jpeg_with_embedded_previews_is_its_first_picture():
    content = encoded(noise(1), "MPO", save_all=True, append_images=[noise(2)])
    decoded = decode(content)
    assert decoded.format == "JPEG"
    alone = decode(encoded(noise(1), "JPEG"))
    assert np.array_equal(array(decoded.image), array(alone.image))


def test_a_frame_that_does_not_fill_its_picture_is_refused():
    content = bytearray(encoded(noise().quantize(16), "GIF"))
    content[6:10] = (80).to_bytes(2, "little") + (60).to_bytes(2, "little")  # the screen; the frame is 40 x 30
    assert "does not fill" in refusal(bytes(content))


def test_a_frame_larger_than_its_picture_is_the_picture():
    content = bytearray(encoded(Image.new("P", (40, 30), 0), "GIF"))
    content[6:10] = (20).to_bytes(2, "little") + (10).to_bytes(2, "little")
    decoded = decode(bytes(content))
    assert (decoded.width, decoded.height) == decoded.image.size == (40, 30)
