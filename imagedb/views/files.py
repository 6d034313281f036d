"""Images as pages and the admin show them."""

import io
import logging
from uuid import UUID

import numpy as np
from django.db.models.fields.files import FieldFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header, quote_etag
from django.views.decorators.http import require_safe
from PIL import Image as PillowImage

from imagedb import files
from imagedb.measures import FACTORS
from imagedb.models import Image, Visibility
from imagedb.selectors import visible_images
from imagedb.selectors.examples import COMPARABLE

logger = logging.getLogger(__name__)

USUAL_FACTOR = 10


@require_safe
def thumbnail(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The small version of an image."""
    return files.serve_thumbnail(request, get_object_or_404(visible_images(request.user), public_id=public_id))


@require_safe
def image_file(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The rendition of an image: what participants are shown."""
    return files.serve_rendition(request, get_object_or_404(visible_images(request.user), public_id=public_id))


@require_safe
def difference(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """What was changed in a modified image, amplified, as a PNG; made anew each time, and kept by browsers.

    ``?factor=`` says how often, one of FACTORS. 404 where there is nothing to compare, or the reader may not see the
    source: the two together give it away.
    """
    factor = request.GET.get("factor", str(USUAL_FACTOR))
    if factor not in {str(known) for known in FACTORS}:
        return HttpResponseBadRequest(
            f"factor must be one of {', '.join(map(str, FACTORS))}.", content_type="text/plain; charset=utf-8"
        )
    visible = visible_images(request.user)
    modified = get_object_or_404(visible, public_id=public_id, comparison__in=COMPARABLE)
    source = get_object_or_404(visible, pk=modified.source_id)
    is_public = modified.visibility == source.visibility == Visibility.PUBLIC
    etag = quote_etag(f"{modified.rendition_sha256}-{source.rendition_sha256}-{factor}")
    headers = {
        "Cache-Control": f"{'public' if is_public else 'private'}, max-age={files.IMAGE_CACHE_SECONDS}",
        "ETag": etag,
        "X-Content-Type-Options": "nosniff",
    }
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is not None:
        for name, value in headers.items():
            unchanged[name] = value
        return unchanged
    response = HttpResponse(_difference_png(modified, source, int(factor)), "image/png", headers=headers)
    response["Content-Disposition"] = (
        content_disposition_header(False, f"{public_id}-difference-x{factor}.png") or "inline"
    )
    return response


def _difference_png(modified: Image, source: Image, factor: int) -> bytes:
    # Here, because it brings scipy, which nothing else in a web process needs: it would start later.
    from imagedb.differences import amplified

    buffer = io.BytesIO()
    amplified(_pixels(modified.rendition), _pixels(source.rendition), factor).save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def _pixels(rendition: FieldFile) -> np.ndarray:
    """A rendition as (height, width, 3), sRGB of 8 bits."""
    try:
        with rendition.storage.open(rendition.name or "", "rb") as file, PillowImage.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except FileNotFoundError:
        logger.exception("The storage has lost %s", rendition.name)
        raise Http404("This file is missing.") from None
