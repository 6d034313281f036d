"""Awkward files on their way through an import: taken whole, with a clean rendition, or a row that says why not."""

import hashlib
import io

import numpy as np
import pytest
from PIL import Image as PillowImage

from imagedb.models import Image, ImportBatch, ImportRow
from imagedb.pixels import decode
from tests.imagedb import pictures
from tests.imagedb.awkward.archives import zipped
from tests.imagedb.manifests import Folder, clean, stored
from tests.imagedb.pictures import encoded, noise

pytestmark = pytest.mark.django_db

PAGE = b"<!doctype html><script>alert(1)</script>"
ADOBE_RGB = pictures.rgb_profile("Adobe RGB (1998)", pictures.ADOBE_RGB, 2.2)

TAKEN = {
    "polyglot with a page.png": encoded(noise()) + PAGE,
    "polyglot with a zip.jpg": encoded(noise(), "JPEG") + zipped({"index.html": PAGE}),
    "really a jpeg.png": encoded(noise(1), "JPEG"),
    "deep.png": encoded(PillowImage.fromarray(np.arange(1200, dtype=np.uint16).reshape(30, 40) * 54)),
    "palette.gif": encoded(noise(2).quantize(16), "GIF"),
    "transparent.png": encoded(PillowImage.new("RGBA", (8, 8), (9, 9, 9, 100))),
    "cmyk.jpg": encoded(
        PillowImage.new("CMYK", (16, 16)), "JPEG", icc_profile=pictures.cmyk_profile("Inks", (60, -30, -40))
    ),
    "wide.png": encoded(noise(3), icc_profile=ADOBE_RGB),
    "turned.jpg": pictures.oriented(6, "JPEG"),
}
REFUSED = {
    "bare cmyk.jpg": (encoded(PillowImage.new("CMYK", (16, 16)), "JPEG"), "CMYK without a CMYK colour profile"),
    "moving.gif": (pictures.animation("GIF"), "several frames"),
    "cut.jpg": (encoded(noise(), "JPEG")[:-30], "cut short"),
    "empty.png": (b"", "the file is empty"),
    "drawing.png": (b"<svg onload='alert(1)'/>", "an SVG drawing"),
    "page.jpg": (PAGE, "an HTML page"),
    "bomb.png": (pictures.png(50_000, 50_000, 1, 0), "far too many pixels"),
    "lie.png": (pictures.png(10, 20, 8, 2, pictures.scan_lines(noise(size=(10, 10)))), "fewer pixels"),
}


def test_each_is_taken_whole_or_refused_with_its_reason(tmp_path):
    folder = Folder(tmp_path)
    for name, content in TAKEN.items():
        folder.add(name, content=content)
    for name, (content, _) in REFUSED.items():
        folder.add(name, content=content)
    folder.run(*[clean(name) for name in [*TAKEN, *REFUSED]])

    batch = ImportBatch.objects.get()
    images = {image.original_filename: image for image in Image.objects.all()}
    assert set(images) == set(TAKEN)
    for name, image in images.items():
        decoded = decode(TAKEN[name])
        assert stored(image.original) == TAKEN[name], name
        assert image.original_sha256 == hashlib.sha256(TAKEN[name]).hexdigest(), name
        assert (image.original_format, image.original_profile) == (decoded.format, decoded.profile), name
        shown = stored(image.rendition)
        assert set(pictures.png_chunks(shown)) == {"IHDR", "IDAT", "IEND"}, name
        assert np.array_equal(np.asarray(PillowImage.open(io.BytesIO(shown))), np.asarray(decoded.image)), name
        assert (image.width, image.height) == decoded.image.size, name
        # The stored name has the ending of what it is, from which the content type follows.
        assert image.original.name.endswith({"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif"}[decoded.format]), name
    assert (images["turned.jpg"].width, images["turned.jpg"].height) == (48, 32)

    failed = batch.rows.filter(result=ImportRow.Result.FAILED)
    assert {row.filename for row in failed} == set(REFUSED)
    for row in failed:
        assert REFUSED[row.filename][1] in row.message, row.filename
