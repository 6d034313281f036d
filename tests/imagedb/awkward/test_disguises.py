"""Files under another name, files that are two things at once, and pages and drawings in disguise."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from imagedb import pixels
from imagedb.pixels import ENDINGS, decode
from scooter_site.common.storage import content_type
from tests.imagedb.awkward.decoding import array, refusal
from tests.imagedb.pictures import encoded, noise, png_chunks

SCRIPT = b"<!doctype html><html><script>alert(document.cookie)</script></html>"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (SCRIPT, "an HTML page"),
        (b"\xef\xbb\xbf\n <!-- x --> <HTML><body>", "an HTML page"),
        (b"<script>alert(1)</script>", "an HTML page"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "an SVG drawing"),
        (b'<?xml version="1.0"?>\n<!-- x -->\n<!DOCTYPE svg PUBLIC "x">\n<svg>', "an SVG drawing"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "PostScript"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"PK\x03\x04\x14\0", "a ZIP archive"),
        (b"\x1f\x8b\x08\0", "a gzip archive"),
        (b"\0\0\0\x1cftypavif\0\0\0\0", "an AVIF image"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "an HEIC image"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0", "a video"),
    ],
)
def test_what_it_is_instead_is_said(content, kind):
    reason = refusal(content)
    assert reason.startswith(f"the content is {kind}")
    assert "not an image of a known format (JPEG, PNG, WEBP, BMP, TIFF, GIF), whatever its name says" in reason


@pytest.mark.parametrize("content", [b"just text", b"\x00" * 1000, b"<", b"svg", b"P6 1 1 255 abc"])
def test_nothing_known(content):
    assert refusal(content).startswith("the content is not an image of a known format")


@pytest.mark.parametrize("image_format", list(ENDINGS))
def test_the_format_is_what_the_content_decodes_to(image_format):
    # Names do not even reach decode(); the stored file gets the ending of its format, and from that its content type.
    decoded = decode(encoded(noise(), image_format))
    assert decoded.format == image_format
    assert content_type(f"original{ENDINGS[decoded.format]}") == f"image/{image_format.lower()}"


def zip_of_a_page() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("index.html", SCRIPT)
    return buffer.getvalue()


@pytest.mark.parametrize("image_format", list(ENDINGS))
@pytest.mark.parametrize("appended", [SCRIPT, zip_of_a_page()], ids=["html", "zip"])
def test_an_image_with_something_behind_it_is_the_image(image_format, appended):
    content = encoded(noise(), image_format)
    decoded = decode(content + appended)
    assert decoded.format == image_format
    assert np.array_equal(array(decoded.image), array(decode(content).image))
    for shown in (pixels.rendition_png(decoded.image), pixels.thumbnail(decoded.image)):
        assert SCRIPT not in shown
        assert b"index.html" not in shown
    assert set(png_chunks(pixels.rendition_png(decoded.image))) == {"IHDR", "IDAT", "IEND"}


def test_a_script_within_the_metadata_stays_there():
    exif = Image.Exif()
    exif[0x9286] = SCRIPT.decode()
    for content in (
        encoded(noise(), "JPEG", exif=exif, comment=SCRIPT),
        encoded(noise(), "PNG", exif=exif),
        encoded(noise().quantize(16), "GIF", comment=SCRIPT),
    ):
        assert SCRIPT in content
        shown = decode(content).image
        assert SCRIPT not in pixels.rendition_png(shown) + pixels.thumbnail(shown)


def test_a_page_that_begins_as_an_image_is_refused():
    # GIF89a/* ... is the way to smuggle a script past a check of the first bytes.
    assert "damaged" in refusal(b"GIF89a/*" + SCRIPT)
    assert "damaged" in refusal(b"\x89PNG\r\n\x1a\n" + SCRIPT)
    assert "damaged" in refusal(b"\xff\xd8\xff\xe0" + SCRIPT)
