"""The ratings that count."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from imagedb.models import ImageKind
from studies.models import Participation, Rating, ScaleDirection, Study, TrialKind
from studies.selectors.counting import countable


@dataclass(frozen=True)
class ScaleRatings:
    """All valid ratings of one (attack, target model) pair on one scale, as arrays of equal length.

    The public ids name the same participations and images, and are what exports have.
    ``values`` are oriented: higher = more certain that the image is modified, whatever the study's own direction.
    Ordered by participation, then by the order of rating. ``is_demo``: at least one of the studies is a demonstration.
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


@dataclass(frozen=True)
class PairState:
    """How many valid participations a pair has on one scale (0: it had some), and when that last changed."""

    attack_id: int
    target_model_id: int
    scale_minimum: int
    scale_maximum: int
    participations: int
    changed_at: datetime


def countable_participations(study: Study) -> QuerySet[Participation]:
    """Real participations of a study, whatever their outcome; in a demonstration study its test ones (bots) too."""
    return Participation.objects.filter(countable(), study=study)


def valid_ratings(attack_id: int, target_model_id: int) -> list[ScaleRatings]:
    """Ratings of images (not of checks) by valid, countable participations of all studies of the pair, per scale."""
    groups: dict[tuple[int, int], list[Study]] = {}
    for study in Study.objects.filter(attack_id=attack_id, target_model_id=target_model_id).order_by("id"):
        groups.setdefault((study.scale_minimum, study.scale_maximum), []).append(study)
    results = []
    for (minimum, maximum), studies in groups.items():
        mirrored = {study.pk for study in studies if study.scale_direction == ScaleDirection.HIGHER_IS_CLEAN}
        participations = Participation.objects.filter(countable(), study__in=studies, is_valid=True)
        rows = list(
            Rating.objects.filter(trial__participation__in=participations, trial__kind=TrialKind.IMAGE)
            .order_by("trial__participation_id", "trial__position")
            .values_list(
                "trial__participation_id",
                "trial__image_id",
                "trial__image__kind",
                "value",
                "trial__participation__study_id",
                "trial__participation__public_id",
                "trial__image__public_id",
            )
        )
        if not rows:
            continue
        values = np.array([row[3] for row in rows], np.int64)
        is_mirrored = np.array([row[4] in mirrored for row in rows], np.bool_)
        contributing = {row[4] for row in rows}
        results.append(
            ScaleRatings(
                scale_minimum=minimum,
                scale_maximum=maximum,
                participation_ids=np.array([row[0] for row in rows], np.int64),
                image_ids=np.array([row[1] for row in rows], np.int64),
                participation_public_ids=[row[5] for row in rows],
                image_public_ids=[row[6] for row in rows],
                is_modified=np.array([row[2] == ImageKind.MODIFIED for row in rows], np.bool_),
                values=np.where(is_mirrored, minimum + maximum - values, values),
                is_demo=any(study.is_demo for study in studies if study.pk in contributing),
            )
        )
    return results


def pair_states(**pair: int) -> list[PairState]:
    """The state of every (attack, target model) pair and scale whose ratings count or did so once; one query.

    ``pair``: attack_id and target_model_id, for one pair only.
    """
    valid = Q(is_valid=True)
    rows = (
        Participation.objects.filter(
            countable(),
            valid | Q(validity_changed_at__isnull=False),
            **{f"study__{name}": pk for name, pk in pair.items()},
        )
        .values("study__attack_id", "study__target_model_id", "study__scale_minimum", "study__scale_maximum")
        .annotate(
            participations=Count("id", filter=valid), changed_at=Max(Coalesce("validity_changed_at", "finished_at"))
        )
        .order_by("study__attack_id", "study__target_model_id", "study__scale_minimum", "study__scale_maximum")
    )
    return [
        PairState(
            attack_id=row["study__attack_id"],
            target_model_id=row["study__target_model_id"],
            scale_minimum=row["study__scale_minimum"],
            scale_maximum=row["study__scale_maximum"],
            participations=row["participations"],
            changed_at=row["changed_at"],
        )
        for row in rows
    ]
