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
from studies.views.access import current_participation, may_preview, study_page

CACHE_SECONDS = 3600


@require_safe
@study_page
def image(request: HttpRequest, study: Study, kind: str, token: UUID) -> HttpResponse:
    """The PNG behind an opaque token. Whatever may not be seen now does not exist."""
    participation = current_participation(request, study)
    find = FINDERS.get(kind)
    found = find(participation, token) if participation and find else None
    if found is None and kind == "example" and may_preview(request):
        found = _example_of(study, token)
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


def _visible_trial(participation: Participation, token: UUID) -> Trial | None:
    trial = Trial.objects.select_related("image", "stimulus").filter(participation=participation, token=token).first()
    return trial if trial and selectors.may_see_trial_image(participation, trial) else None


def _trial_second(participation: Participation, token: UUID) -> FieldFile | None:
    trial = _visible_trial(participation, token)
    second = Image.objects.filter(pk=trial.parameters.get("second_image")).first() if trial else None
    return second.rendition if second else None


def _trial(participation: Participation, token: UUID) -> FieldFile | None:
    trial = _visible_trial(participation, token)
    if trial is None:
        return None
    if trial.image:
        return trial.image.rendition
    return trial.stimulus.file if trial.stimulus else None


FINDERS: dict[str, Callable[[Participation, UUID], FieldFile | None]] = {
    "plate": _plate,
    "pair-left": _pair_left,
    "pair-right": _pair_right,
    "example": _example,
    "trial": _trial,
    "trial-second": _trial_second,
}
