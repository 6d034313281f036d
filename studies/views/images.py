"""Images of plates, pairs, examples and trials, each only while its participant may see it."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from imagedb import files
from studies.models import Stimulus, StimulusPurpose
from studies.selectors.pictures import picture_in_sight
from studies.views.access import may_preview, session_of

CACHE_SECONDS = 3600


@require_safe
def image(request: HttpRequest, slug: str, kind: str, token: UUID) -> HttpResponse:
    """The PNG behind an opaque token. Whatever may not be seen now does not exist."""
    session = session_of(request, slug)
    found = None
    if session is not None:
        found = picture_in_sight(kind, session, slug, token)
    if found is None and kind == "example" and may_preview(request):
        stimulus = Stimulus.objects.filter(study__slug=slug, purpose=StimulusPurpose.EXAMPLE, token=token).first()
        found = stimulus.file if stimulus else None
    if found is None:
        raise Http404
    return files.serve(
        found, request=request, etag=f"{kind}-{token}", filename="image.png", cache_seconds=CACHE_SECONDS
    )
