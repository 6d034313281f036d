"""Images of plates, pairs, examples and trials, each only while its participant may see it."""

from collections.abc import Callable
from uuid import UUID

from django.db.models.fields.files import FieldFile
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from imagedb import files
from imagedb.models import Image
from studies import selectors
from studies.flow import Step
from studies.models import PairTrial, Participation, Stimulus, StimulusPurpose, Study, Trial
from studies.selectors.items import picture_in_sight
from studies.views.access import current_participation, may_preview, session_of, study_page

CACHE_SECONDS = 3600


@require_safe
def image(request: HttpRequest, slug: str, kind: str, token: UUID) -> HttpResponse:
    """The PNG behind an opaque token. Whatever may not be seen now does not exist."""
    if kind != "trial":
        return _image_of_step(request, slug=slug, kind=kind, token=token)
    session = session_of(request, slug)
    return _sent(request, picture_in_sight(session, slug, token) if session else None, kind, token)


@study_page
def _image_of_step(request: HttpRequest, study: Study, kind: str, token: UUID) -> HttpResponse:
    participation = current_participation(request, study)
    find = FINDERS.get(kind)
    found = find(participation, token) if participation and find else None
    if found is None and kind == "example" and may_preview(request):
        found = _example_of(study, token)
    return _sent(request, found, kind, token)


def _sent(request: HttpRequest, found: FieldFile | None, kind: str, token: UUID) -> HttpResponse:
    if found is None:
        raise Http404
    return files.serve(
        found, request=request, etag=f"{kind}-{token}", filename="image.png", cache_seconds=CACHE_SECONDS
    )


def _plate(participation: Participation, token: UUID) -> FieldFile | None:
    trial = selectors.current_plate(participation) if participation.step == Step.COLOUR_CHECK else None
    return trial.plate.file if trial and trial.token == token else None


def _pair(participation: Participation, token: UUID, side: PairTrial.Side) -> FieldFile | None:
    trial = selectors.current_pair(participation) if participation.step == Step.COMPREHENSION else None
    if trial is None or trial.token != token:
        return None
    return (trial.modified_stimulus if trial.modified_side == side else trial.clean_stimulus).file


def _pair_left(participation: Participation, token: UUID) -> FieldFile | None:
    return _pair(participation, token, PairTrial.Side.LEFT)


def _pair_right(participation: Participation, token: UUID) -> FieldFile | None:
    return _pair(participation, token, PairTrial.Side.RIGHT)


def _example(participation: Participation, token: UUID) -> FieldFile | None:
    return _example_of(participation.study, token) if participation.step == Step.INSTRUCTIONS else None


def _example_of(study: Study, token: UUID) -> FieldFile | None:
    stimulus = Stimulus.objects.filter(study=study, purpose=StimulusPurpose.EXAMPLE, token=token).first()
    return stimulus.file if stimulus else None


def _trial_second(participation: Participation, token: UUID) -> FieldFile | None:
    trial = Trial.objects.filter(participation=participation, token=token).first()
    if trial is None or not selectors.may_see_trial_image(participation, trial):
        return None
    second = Image.objects.filter(pk=trial.parameters.get("second_image")).first()
    return second.rendition if second else None


FINDERS: dict[str, Callable[[Participation, UUID], FieldFile | None]] = {
    "plate": _plate,
    "pair-left": _pair_left,
    "pair-right": _pair_right,
    "example": _example,
    "trial-second": _trial_second,
}
