"""Images of plates, pairs, examples and trials, each only while its participant may see it."""

from functools import partial
from uuid import UUID

from django.db.models.fields.files import FieldFile
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from imagedb import files
from imagedb.models import Image
from studies import selectors
from studies.models import Stimulus, StimulusPurpose, Trial
from studies.selectors.pictures import picture_in_sight
from studies.views.access import may_preview, session_of

CACHE_SECONDS = 3600


@require_safe
def image(request: HttpRequest, slug: str, kind: str, token: UUID) -> HttpResponse:
    """The PNG behind an opaque token. Whatever may not be seen now does not exist."""
    session = session_of(request, slug)
    found = None
    if session is not None:
        find = _second_picture if kind == "trial-second" else partial(picture_in_sight, kind)
        found = find(session, slug, token)
    if found is None and kind == "example" and may_preview(request):
        stimulus = Stimulus.objects.filter(study__slug=slug, purpose=StimulusPurpose.EXAMPLE, token=token).first()
        found = stimulus.file if stimulus else None
    if found is None:
        raise Http404
    return files.serve(
        found, request=request, etag=f"{kind}-{token}", filename="image.png", cache_seconds=CACHE_SECONDS
    )


def _second_picture(session: UUID, slug: str, token: UUID) -> FieldFile | None:
    participation = selectors.participation_of(session, slug)
    trial = Trial.objects.filter(participation=participation, token=token).first() if participation else None
    if participation is None or trial is None or not selectors.may_see_trial_image(participation, trial):
        return None
    second = Image.objects.filter(pk=trial.parameters.get("second_image")).first()
    return second.rendition if second else None
