"""Images as pages and the admin show them. Who may see what is the selector's business."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from imagedb import files
from imagedb.selectors import visible_images


@require_safe
def thumbnail(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The small version of an image."""
    return files.serve_thumbnail(request, get_object_or_404(visible_images(request.user), public_id=public_id))


@require_safe
def image_file(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The rendition of an image: what participants are shown."""
    return files.serve_rendition(request, get_object_or_404(visible_images(request.user), public_id=public_id))
