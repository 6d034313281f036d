"""Who holds a place in a study, and how many are left."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count, Max, Q
from django.utils import timezone

from studies.flow import Outcome, Step
from studies.models import Participation, Study


def holds_dataset_place(now: datetime) -> Q:
    """Valid participations, running ones that have been seen lately, and those that lack nothing but feedback."""
    running = ~Q(step=Step.END) & Q(dataset__isnull=False, lease_expires_at__gt=now)
    return Q(is_valid=True) | running | Q(step=Step.FEEDBACK)


def takes_place(now: datetime) -> Q:
    """Those, and people who went through all of it but failed the attention checks: the buffer is for them."""
    return holds_dataset_place(now) | Q(outcome=Outcome.ATTENTION_FAILED)


def places_taken(study: Study, kind: str) -> int:
    """How many places participations of this kind (ParticipationKind) take now."""
    return Participation.objects.filter(takes_place(timezone.now()), study=study, kind=kind).count()


def places_left(study: Study, kind: str) -> int:
    """Places for participations of this kind; 0 when full. Each kind has the whole number of places to itself."""
    return max(0, study.place_count - places_taken(study, kind))


def rated_before(participation: Participation) -> list[Participation]:
    """Others still at the feedback page who had given all their ratings before this participant had."""
    own = participation.trials.aggregate(at=Max("rating__answered_at"))["at"]
    others = Participation.objects.filter(
        study=participation.study_id, kind=participation.kind, step=Step.FEEDBACK
    ).exclude(pk=participation.pk)
    rated = others.select_related("study").annotate(rated_at=Max("trials__rating__answered_at"))
    return [other for other in rated if own and other.rated_at < own]


def is_beyond_plan(participation: Participation, waiting: Collection[Participation]) -> bool:
    """Whether others have filled the dataset of this participation, or the study, for good: valid ones, those
    ``waiting`` who will be, and in the study those who failed the attention checks. Others who run are not counted.
    """
    study = participation.study
    others = Participation.objects.filter(study=study, kind=participation.kind).exclude(pk=participation.pk)
    counts = others.aggregate(
        dataset=Count("id", filter=Q(is_valid=True, dataset=participation.dataset_id)),
        study=Count("id", filter=Q(is_valid=True) | Q(outcome=Outcome.ATTENTION_FAILED)),
    )
    in_dataset = counts["dataset"] + sum(other.dataset_id == participation.dataset_id for other in waiting)
    return in_dataset >= study.places_per_dataset or counts["study"] + len(waiting) >= study.place_count
