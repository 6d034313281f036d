"""Send a stored file: one place for content type, caching and name, for local and S3 storage alike.

Who may see a file is decided before, by the caller.
"""

import logging
from pathlib import PurePosixPath

from django.db.models.fields.files import FieldFile
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags, quote_etag

from imagedb.models import Image, Visibility
from scooter_site.common.storage import ObjectStorage, content_type

logger = logging.getLogger(__name__)

# Files never change; who may see an image may, and is asked again after this time.
IMAGE_CACHE_SECONDS = 3600


def serve(
    field_file: FieldFile,
    *,
    cache_seconds: int,
    request: HttpRequest | None = None,
    etag: str = "",
    filename: str = "image",
    is_public: bool = False,
    as_attachment: bool = False,
    by_link: bool = False,
) -> HttpResponse:
    """Answer with the content of a stored file.

    ``etag`` identifies the content (a digest); with ``request``, a client that has it already gets a 304.
    ``cache_seconds`` is how long a browser may keep it, shared caches only if ``is_public``; 0: ask every time.
    ``filename`` is the name it is saved under. ``by_link`` redirects to a short-lived signed link where the storage
    has such links (S3); without it the content goes through the app, so that the address stays cacheable and tells
    nothing about the storage. Raises Http404, and logs it, if the storage has lost the file.
    """
    scope = "public" if is_public else "private"
    headers = {
        "Cache-Control": f"{scope}, max-age={cache_seconds}" if cache_seconds else f"{scope}, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if etag:
        headers["ETag"] = quote_etag(etag)
        if request is not None and _client_has(request, headers["ETag"]):
            return HttpResponseNotModified(headers=headers)
    disposition = content_disposition_header(as_attachment, filename) or "inline"
    name, storage = field_file.name or "", field_file.storage
    response: HttpResponseBase
    if by_link and isinstance(storage, ObjectStorage):
        # The link expires, so the redirect must not be kept.
        return HttpResponseRedirect(storage.signed_link(name, disposition), headers={"Cache-Control": "no-store"})
    try:
        content = storage.open(name, "rb")
    except FileNotFoundError:
        logger.exception("The storage has lost %s", name)
        raise Http404("This file is missing.") from None
    response = FileResponse(content, content_type=content_type(name), headers=headers)
    response.headers["Content-Disposition"] = disposition
    return response  # type: ignore[return-value]  # a FileResponse behaves as an HttpResponse to all callers


def serve_original(request: HttpRequest, image: Image, by_link: bool = False) -> HttpResponse:
    """Send the bytes as they were imported."""
    return _serve_image(request, image, image.original, image.original_sha256, "original", by_link)


def serve_rendition(request: HttpRequest, image: Image, by_link: bool = False) -> HttpResponse:
    """Send what participants see: a PNG."""
    return _serve_image(request, image, image.rendition, image.rendition_sha256, "rendition", by_link)


def serve_thumbnail(request: HttpRequest, image: Image) -> HttpResponse:
    """Send the small version. Its pixels follow from the rendition's, and so does its tag."""
    etag = f"{image.rendition_sha256}-thumbnail"
    return _serve_image(request, image, image.thumbnail, etag, "thumbnail", by_link=False)


def _serve_image(
    request: HttpRequest, image: Image, field_file: FieldFile, etag: str, part: str, by_link: bool
) -> HttpResponse:
    ending = PurePosixPath(field_file.name or "").suffix
    return serve(
        field_file,
        cache_seconds=IMAGE_CACHE_SECONDS,
        request=request,
        etag=etag,
        filename=f"{image.public_id}-{part}{ending}",
        is_public=image.visibility == Visibility.PUBLIC,
        by_link=by_link,
    )


def _client_has(request: HttpRequest, etag: str) -> bool:
    given = parse_etags(request.headers.get("If-None-Match", ""))
    # Weak comparison, as RFC 9110 asks for If-None-Match: a proxy that compresses may have weakened the tag.
    return "*" in given or etag in {tag.removeprefix("W/") for tag in given}
