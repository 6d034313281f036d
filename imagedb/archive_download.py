"""Sends an archive over HTTP: ranges, preconditions, and a bound on how many are sent at a time.

A download takes as long as the reader's connection is slow, and a thread of the web server all that while. So each
process sends only a few at a time and keeps its other threads for pages.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from django.conf import settings
from django.http import HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags, quote_etag
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from imagedb.archive_files import stored_blocks
from imagedb.archives import ArchiveType, ByteRange, ContentLost, Layout, UnsatisfiableRange, requested_range

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 60
_slots = threading.BoundedSemaphore(settings.ARCHIVE_DOWNLOADS_PER_PROCESS)


class ArchiveFormat(NamedTuple):
    """How a kind of archive is named on the way."""

    content_type: str
    ending: str


FORMATS = {
    ArchiveType.ZIP: ArchiveFormat("application/zip", ".zip"),
    ArchiveType.WEBDATASET: ArchiveFormat("application/x-tar", ".tar"),
}


class TooManyDownloads(APIException):
    """All places for downloads of archives are taken."""

    status_code = 503
    default_detail = (
        "The server sends as many archives as it can at the moment. Try again later; what you have can be resumed."
    )
    default_code = "too_many_downloads"
    wait = RETRY_AFTER_SECONDS  # sent as Retry-After


class ArchiveHasChanged(APIException):
    """The set of images, or what is known of them, is no longer what the client has a part of."""

    status_code = 412
    default_detail = "This is not the archive you have a part of (If-Match): its images have changed. Start again."
    default_code = "archive_has_changed"


def take_slot(resources: ExitStack) -> None:
    """Take one of this process's places for downloads until ``resources`` are closed. Raises TooManyDownloads."""
    if not _slots.acquire(blocking=False):
        raise TooManyDownloads
    resources.callback(_slots.release)


def archive_response(
    request: Request, layout: Layout, resources: ExitStack, archive_type: ArchiveType, name: str
) -> HttpResponseBase:
    """The answer with an archive, or with the part of it that is asked for.

    The answer takes ``resources`` over if it streams. Raises ArchiveHasChanged.
    """
    etag = quote_etag(layout.tag)
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        # Whoever may see other images gets another archive: no cache may keep it, and no proxy may compress it.
        "Cache-Control": "private, no-cache, no-transform",
    }
    if_match = parse_etags(request.headers.get("If-Match", ""))
    if if_match and not {"*", etag}.intersection(if_match):
        raise ArchiveHasChanged
    if_none_match = parse_etags(request.headers.get("If-None-Match", ""))
    if {"*", etag}.intersection(tag.removeprefix("W/") for tag in if_none_match):
        return HttpResponseNotModified(headers=headers)
    format_ = FORMATS[archive_type]
    headers["Content-Type"] = format_.content_type
    headers["Content-Disposition"] = content_disposition_header(True, name + format_.ending) or "attachment"
    if request.method == "HEAD":
        return HttpResponse(headers={**headers, "Content-Length": str(layout.length)})
    try:
        part = _requested_part(request, etag, layout.length)
    except UnsatisfiableRange as error:
        detail = {"detail": f"The range begins after the end: {error}. Have you got it all already?"}
        return Response(detail, status=416, headers={"Content-Range": f"bytes */{layout.length}", "ETag": etag})
    start, stop = part or (0, layout.length)
    headers["Content-Length"] = str(stop - start)
    if part:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{layout.length}"
    _limit_stalling(request)
    download = _Download(name, stored_blocks(layout.pieces(start, stop)), resources.pop_all())
    return StreamingHttpResponse(download, status=206 if part else 200, headers=headers)


def _requested_part(request: Request, etag: str, length: int) -> ByteRange | None:
    if_range = request.headers.get("If-Range", "").strip()
    if if_range and if_range != etag:
        return None  # the client's part is of another archive: it gets this one whole
    return requested_range(request.headers.get("Range", ""), length)


def _limit_stalling(request: Request) -> None:
    """Give up on a client that takes in next to nothing: it would keep others from downloading, for ever."""
    connection = request.META.get("gunicorn.socket")
    if connection is not None:
        # The limit is for a block of a mebibyte. gunicorn lifts it before it reads the next request.
        connection.settimeout(settings.ARCHIVE_STALL_SECONDS)


class _Download:
    """The blocks of a download; ``close`` gives back what it took, also if it was broken off."""

    def __init__(self, name: str, blocks: Iterator[bytes], resources: ExitStack) -> None:
        self._name = name
        self._blocks = blocks
        self._resources = resources

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._blocks
        except ContentLost as error:
            # The length is promised already: breaking off is the only way to tell.
            logger.error("The archive %s was broken off: %s", self._name, error)  # noqa: TRY400 - the server logs it too
            raise
        finally:
            # Not every client of WSGI closes what it has read to the end.
            self.close()

    def close(self) -> None:
        self._resources.close()
