"""The ratings that count."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from django.db.models import BooleanField, Case, Count, Max, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from imagedb.models import Image, ImageKind, Prediction
from studies.models import Participation, Rating, ScaleDirection, Study, Trial, TrialKind
from studies.selectors.counting import countable


@dataclass(frozen=True)
class RatedImage:
    """An image that was rated. ``misleads``: whether its target model takes it for another class; None: not known."""

    public_id: UUID
    is_modified: bool
    source_public_id: UUID | None
    misleads: bool | None


@dataclass(frozen=True)
class ScaleRatings:
    """All valid ratings of one (attack, target model) pair on one scale, as arrays of equal length.

    The public ids name the same participations and images, and are what exports have.
    ``values`` are oriented: higher = more certain that the image is modified, whatever the study's own direction.
    Ordered by participation, then by the order of rating. Of demonstrations (``is_demo``) or of none.
    """

    scale_minimum: int
    scale_maximum: int
    participation_ids: NDArray[np.int64]
    image_ids: NDArray[np.int64]
    participation_public_ids: list[UUID]
    image_public_ids: list[UUID]
    is_modified: NDArray[np.bool_]
    values: NDArray[np.int64]
    is_demo: bool
    images: dict[int, RatedImage]  # by image id


@dataclass(frozen=True)
class PairState:
    """How many valid participations a pair has, and when that last changed (0: it had some).

    On one scale, in studies of one protocol, and of demonstrations or of none.
    """

    attack_id: int
    target_model_id: int
    scale_minimum: int
    scale_maximum: int
    protocol: str
    is_demo: bool
    participations: int
    changed_at: datetime


def countable_participations(study: Study) -> QuerySet[Participation]:
    """Real participations of a study, whatever their outcome; in a demonstration study its test ones (bots) too."""
    return Participation.objects.filter(countable(), study=study)


def valid_ratings(attack_id: int, target_model_id: int, protocol: str = "") -> list[ScaleRatings]:
    """Ratings of images (not of checks) by valid, countable participations of all studies of the pair.

    One for each scale, real data apart from a demonstration's. ``protocol``: only of studies of this preset.
    """
    of_protocol = {"preset": protocol} if protocol else {}
    studies = Study.objects.filter(attack_id=attack_id, target_model_id=target_model_id, **of_protocol)
    groups: dict[tuple[int, int, bool], list[Study]] = {}
    for study in studies.annotate(shows_demo=of_demonstration()).order_by("id"):
        groups.setdefault((study.scale_minimum, study.scale_maximum, study.shows_demo), []).append(study)
    found = [_ratings(studies, *group) for group, studies in groups.items()]
    return [ratings for ratings in found if ratings.values.size]


def _ratings(studies: list[Study], minimum: int, maximum: int, is_demo: bool) -> ScaleRatings:
    participations = Participation.objects.filter(countable(), study__in=studies, is_valid=True)
    mirrored = {study.pk for study in studies if study.scale_direction == ScaleDirection.HIGHER_IS_CLEAN}
    people = {
        pk: (public_id, study_id in mirrored)
        for pk, public_id, study_id in participations.values_list("pk", "public_id", "study_id")
    }
    rows = list(
        Rating.objects.filter(trial__participation__in=participations, trial__kind=TrialKind.IMAGE)
        .order_by("trial__participation_id", "trial__position")
        .values_list("trial__participation_id", "trial__image_id", "value")
    )
    images = _rated_images(participations, studies[0].target_model_id)
    columns = np.array(rows, np.int64).reshape(-1, 3)
    participation_ids, image_ids, values = columns[:, 0], columns[:, 1], columns[:, 2]
    is_mirrored = np.array([people[pk][1] for pk, _, _ in rows], np.bool_)
    return ScaleRatings(
        scale_minimum=minimum,
        scale_maximum=maximum,
        participation_ids=participation_ids,
        image_ids=image_ids,
        participation_public_ids=[people[pk][0] for pk, _, _ in rows],
        image_public_ids=[images[pk].public_id for _, pk, _ in rows],
        is_modified=np.array([images[pk].is_modified for _, pk, _ in rows], np.bool_),
        values=np.where(is_mirrored, minimum + maximum - values, values),
        is_demo=is_demo,
        images=images,
    )


def _rated_images(participations: QuerySet[Participation], target_model_id: int) -> dict[int, RatedImage]:
    """The images that these participations were shown, by id; far fewer than ratings."""
    shown = Trial.objects.filter(participation__in=participations, kind=TrialKind.IMAGE).values("image_id")
    taken_for = Prediction.objects.filter(image=OuterRef("pk"), target_model_id=target_model_id)
    rows = (
        Image.objects.filter(pk__in=shown)
        .annotate(taken_for=Subquery(taken_for.values("predicted_class_id")[:1]))
        .values_list("pk", "public_id", "kind", "source__public_id", "image_class_id", "taken_for")
    )
    return {
        pk: RatedImage(
            public_id=public_id,
            is_modified=kind == ImageKind.MODIFIED,
            source_public_id=source,
            misleads=None if taken_for is None else taken_for != class_id,
        )
        for pk, public_id, kind, source, class_id, taken_for in rows
    }


def of_demonstration(path: str = "") -> Case:
    """Whether a study shows a demonstration: it is one itself, or its attack or target model stands in for a real one.

    ``path`` leads from the model that is asked to Study, such as "study__" from Participation.
    """
    is_demo = Q(**{f"{path}is_demo": True})
    stands_in = Q(**{f"{path}attack__is_demo": True}) | Q(**{f"{path}target_model__is_demo": True})
    return Case(When(is_demo | stands_in, then=True), default=False, output_field=BooleanField())


def pair_states(**pair: int) -> list[PairState]:
    """The state of every (attack, target model) pair whose ratings count or did so once; one query.

    One for each scale and protocol, real data apart from a demonstration's. ``pair``: attack_id and target_model_id,
    for one pair only.
    """
    valid = Q(is_valid=True)
    group = (
        "study__attack_id",
        "study__target_model_id",
        "study__scale_minimum",
        "study__scale_maximum",
        "study__preset",
        "shows_demo",
    )
    rows = (
        Participation.objects.filter(
            countable(),
            valid | Q(validity_changed_at__isnull=False),
            **{f"study__{name}": pk for name, pk in pair.items()},
        )
        .annotate(shows_demo=of_demonstration("study__"))
        .values(*group)
        .annotate(
            participations=Count("id", filter=valid), changed_at=Max(Coalesce("validity_changed_at", "finished_at"))
        )
        .order_by(*group)
        .values_list(*group, "participations", "changed_at")
    )
    return [PairState(*row) for row in rows]
