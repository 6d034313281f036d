"""Send a stored file: one place for content type, caching, ranges and name, for local and S3 storage alike.

Who may see a file is decided before, by the caller.
"""

import logging
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models.fields.files import FieldFile
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect
from django.utils.http import content_disposition_header, parse_etags, quote_etag

from imagedb.archives import UnsatisfiableRange, requested_range
from imagedb.models import Image, Visibility
from scooter_site.common.storage import LocalStorage, content_type

logger = logging.getLogger(__name__)

# Files never change; who may see an image may, and is asked again after this time.
IMAGE_CACHE_SECONDS = 3600
BLOCK_BYTES = 64 * 1024


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
    """Answer with the content of a stored file, or with the part of it that a Range header asks for.

    ``etag`` identifies the content (a digest); with ``request``, a client that has it already gets a 304.
    ``cache_seconds`` is how long a browser may keep it, shared caches only if ``is_public``; 0: ask every time.
    ``filename`` is the name it is saved under. ``by_link`` redirects to a link where the storage has such links (S3);
    without it the content goes through the app, so that the address stays cacheable and tells nothing about the
    storage. Raises Http404, and logs it, if the storage has lost the file.
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
    headers["Content-Disposition"] = content_disposition_header(as_attachment, filename) or "inline"
    name = field_file.name or ""
    storage: Any = field_file.storage
    if by_link and (link := storage.download_link(name, headers["Content-Disposition"])):
        # The link expires, so the redirect must not be kept.
        return HttpResponseRedirect(link, headers={"Cache-Control": "no-store"})
    headers["Content-Type"] = content_type(name)
    try:
        if isinstance(storage, LocalStorage) and settings.X_ACCEL_PREFIX:
            return _sent_by_the_web_server(storage, name, headers)
        return _sent_by_the_app(storage, name, headers, request)
    except FileNotFoundError:
        logger.exception("The storage has lost %s", name)
        raise Http404("This file is missing.") from None


def _sent_by_the_web_server(storage: LocalStorage, name: str, headers: dict[str, str]) -> HttpResponse:
    """Name the file to nginx, which sends it, or the part that was asked for (docs/storage.md)."""
    storage.describe(name)
    return HttpResponse(
        headers={**headers, "X-Accel-Redirect": settings.X_ACCEL_PREFIX + quote(f"{storage.level}/{name}")}
    )


def _sent_by_the_app(storage: Any, name: str, headers: dict[str, str], request: HttpRequest | None) -> HttpResponse:
    headers["Accept-Ranges"] = "bytes"
    if request is not None and request.method == "HEAD":
        # RFC 9110, section 14.2: a range is defined for GET only.
        return HttpResponse(headers={**headers, "Content-Length": str(storage.describe(name).size)})
    wanted = None
    if request is not None and "Range" in request.headers and _range_is_of(request, headers.get("ETag")):
        size = storage.describe(name).size
        try:
            wanted = requested_range(request.headers["Range"], size)
        except UnsatisfiableRange:
            return HttpResponse(status=416, headers={**headers, "Content-Range": f"bytes */{size}"})
        if wanted:
            headers["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{size}"
    content, length = storage.stream(name, *(wanted or ()))
    response = StoredFileResponse(content, status=206 if wanted else 200, headers=headers)
    response.headers["Content-Length"] = str(length)
    return response  # type: ignore[return-value]  # a FileResponse behaves as an HttpResponse to all callers


class StoredFileResponse(FileResponse):
    """A FileResponse that reads larger blocks, and leaves all headers to us."""

    block_size = BLOCK_BYTES

    def set_headers(self, filelike: Any) -> None:
        """Nothing: they are set already, and what is sent may be a part of a file."""


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


def _range_is_of(request: HttpRequest, etag: str | None) -> bool:
    """Whether the client's part is of the content we have: a tag in If-Range must be the same, and a strong one."""
    condition = request.headers.get("If-Range")
    return condition is None or condition.strip() == etag
