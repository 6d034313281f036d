"""The pictures that a participant may see now, each asked for once or twice, and each found by one query."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import F, Model, OuterRef, QuerySet, Subquery
from django.db.models.fields.files import FieldFile

from imagedb.models import Image
from scooter_site.common.prepared import PreparedQuery
from studies.flow import Step
from studies.models import ColourPlate, PairTrial, PlateTrial, Stimulus, StimulusPurpose, Trial
from studies.selectors.items import LOOK_AHEAD


def picture_in_sight(kind: str, public_id: UUID, slug: str, token: UUID) -> FieldFile | None:
    """The picture behind a token, for the participation with this public id of the study with this slug.

    ``kind``: "plate" or "pair-left", "pair-right" of what is to be answered now; "example" during the instructions;
    "trial" and "trial-second" (the picture beside it) in the main study, up to what may be fetched ahead. None for
    whatever may not be seen, and for other kinds. No other place decides it.
    """
    find = _FINDERS.get(kind)
    return find(public_id, slug, token) if find else None


def _file(model: type[Model], name: str, path: str) -> FieldFile:
    return FieldFile(None, model._meta.get_field(name), path)  # type: ignore[arg-type]


def _of_trial(public_id: UUID, slug: str, token: UUID) -> FieldFile | None:
    for rendition, check_image in _TRIAL.rows(public_id, slug, token):
        if rendition:
            return _file(Image, "rendition", rendition)
        if check_image:
            return _file(Stimulus, "file", check_image)
    return None


def _of_second(public_id: UUID, slug: str, token: UUID) -> FieldFile | None:
    for parameters in _in_sight(public_id, slug, token).values_list("parameters", flat=True):
        if "second_image" in parameters:
            return Image.objects.get(pk=parameters["second_image"]).rendition
    return None


def _trials(public_id: UUID, slug: str, token: UUID) -> QuerySet[Trial, Any]:
    return _in_sight(public_id, slug, token).values_list("image__rendition", "stimulus__file")


def _in_sight(public_id: UUID, slug: str, token: UUID) -> QuerySet[Trial]:
    """The item with this token, if it is in the main study and not beyond what may be fetched ahead."""
    unanswered = Trial.objects.filter(participation=OuterRef("participation"), rating__isnull=True)
    return (
        Trial.objects.filter(token=token, participation__public_id=public_id, participation__study__slug=slug)
        .filter(participation__step=Step.MAIN)
        .alias(first_unanswered=_first_position(unanswered))
        .filter(position__lte=F("first_unanswered") + LOOK_AHEAD)
        .order_by()
    )


def _of_plate(public_id: UUID, slug: str, token: UUID) -> FieldFile | None:
    return next((_file(ColourPlate, "file", path) for (path,) in _PLATE.rows(public_id, slug, token)), None)


def _plates(public_id: UUID, slug: str, token: UUID) -> QuerySet[PlateTrial, Any]:
    unanswered = PlateTrial.objects.filter(participation=OuterRef("participation"), answered_at__isnull=True)
    return (
        PlateTrial.objects.filter(token=token, participation__public_id=public_id, participation__study__slug=slug)
        .filter(participation__step=Step.COLOUR_CHECK)
        .alias(first_unanswered=_first_position(unanswered))
        .filter(position=F("first_unanswered"))
        .order_by()
        .values_list("plate__file")
    )


def _of_pair(side: PairTrial.Side) -> Callable[[UUID, str, UUID], FieldFile | None]:
    def of_side(public_id: UUID, slug: str, token: UUID) -> FieldFile | None:
        for clean, modified, modified_side in _PAIR.rows(public_id, slug, token):
            return _file(Stimulus, "file", modified if modified_side == side else clean)
        return None

    return of_side


def _pairs(public_id: UUID, slug: str, token: UUID) -> QuerySet[PairTrial, Any]:
    unanswered = PairTrial.objects.filter(
        participation=OuterRef("participation"), attempt=OuterRef("attempt"), answered_at__isnull=True
    )
    return (
        PairTrial.objects.filter(token=token, participation__public_id=public_id, participation__study__slug=slug)
        .filter(participation__step=Step.COMPREHENSION, attempt=F("participation__comprehension_attempt"))
        .alias(first_unanswered=_first_position(unanswered))
        .filter(position=F("first_unanswered"))
        .order_by()
        .values_list("clean_stimulus__file", "modified_stimulus__file", "modified_side")
    )


def _of_example(public_id: UUID, slug: str, token: UUID) -> FieldFile | None:
    return next((_file(Stimulus, "file", path) for (path,) in _EXAMPLE.rows(public_id, slug, token)), None)


def _examples(public_id: UUID, slug: str, token: UUID) -> QuerySet[Stimulus, Any]:
    return (
        Stimulus.objects.filter(token=token, purpose=StimulusPurpose.EXAMPLE, study__slug=slug)
        .filter(study__participations__public_id=public_id, study__participations__step=Step.INSTRUCTIONS)
        .order_by()
        .values_list("file")
    )


def _first_position(unanswered: QuerySet[Any]) -> Subquery:
    return Subquery(unanswered.order_by("position").values("position")[:1])


_STAND_INS = (UUID(int=1), "a slug", UUID(int=2))
_TRIAL = PreparedQuery(_trials, *_STAND_INS)
_PLATE = PreparedQuery(_plates, *_STAND_INS)
_PAIR = PreparedQuery(_pairs, *_STAND_INS)
_EXAMPLE = PreparedQuery(_examples, *_STAND_INS)
_FINDERS: dict[str, Callable[[UUID, str, UUID], FieldFile | None]] = {
    "trial": _of_trial,
    "trial-second": _of_second,
    "plate": _of_plate,
    "pair-left": _of_pair(PairTrial.Side.LEFT),
    "pair-right": _of_pair(PairTrial.Side.RIGHT),
    "example": _of_example,
}
