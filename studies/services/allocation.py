"""The one place where participants get their dataset: an expiring lease on a place."""

import secrets
from datetime import timedelta

from django.db.models import Count, QuerySet
from django.utils import timezone

from scooter_site.common.prepared import PreparedQuery
from studies.models import Dataset, Participation, ParticipationKind, Study
from studies.selectors import holds_dataset_place, takes_place
from studies.services.admission import StudyFull, refuse_unless_open


def extend_lease(participation: Participation, study: Study) -> None:
    """Set, without saving, that the participant was seen now and holds the place for another while.

    Also after the lease had run out and the place was passed on: the participant goes on with the same images, for
    one participation too many is better than lost answers.
    """
    now = timezone.now()
    participation.last_seen_at = now
    if participation.dataset_id is not None:
        participation.lease_expires_at = now + timedelta(minutes=study.lease_minutes)


def allocate_dataset(participation: Participation) -> None:
    """Give the participation, without saving it, the dataset that has the fewest participants of its kind.

    Counted are valid participations and running ones whose lease has not expired; ties are broken at random. The
    study's row is locked until the surrounding transaction ends, so that arrivals are counted one after the other.
    A preview gets any dataset and takes no place. Raises StudyFull when no place is left, and StudyNotOpen when the
    study was paused or closed since the participant came.
    """
    study = lock_study(participation.study_id)
    if participation.dataset_id is None:
        if participation.kind != ParticipationKind.PREVIEW:
            refuse_unless_open(study, participation.kind)
        participation.dataset_id = _fairest_dataset(study, participation.kind)
    extend_lease(participation, study)


def _fairest_dataset(study: Study, kind: str) -> int:
    dataset_ids = list(Dataset.objects.filter(study=study).values_list("id", flat=True))
    if kind == ParticipationKind.PREVIEW:
        return pick_one(dataset_ids)
    now = timezone.now()
    rows = (
        Participation.objects.filter(takes_place(now), study=study, kind=kind)
        .order_by()
        .values_list("dataset_id")
        .annotate(taken=Count("id"), held=Count("id", filter=holds_dataset_place(now)))
    )
    held = dict.fromkeys(dataset_ids, 0)
    all_taken = 0
    for dataset_id, taken, dataset_held in rows:
        all_taken += taken
        held[dataset_id] = dataset_held
    if all_taken >= study.place_count:
        raise StudyFull
    fewest = min(held.values())
    return pick_one([dataset_id for dataset_id, count in held.items() if count == fewest])


def lock_study(study_id: int) -> Study:
    """The study, with its row locked for allocation; participations can still be added to it meanwhile."""
    study = _LOCKED.first(study_id)
    if study is None:
        raise Study.DoesNotExist
    return study


def _locked(study_id: int) -> QuerySet[Study]:
    return Study.objects.select_for_update(no_key=True).filter(pk=study_id).order_by()


_LOCKED = PreparedQuery(_locked, 2**40)


def pick_one(dataset_ids: list[int]) -> int:
    """One of equally good datasets, at random."""
    return secrets.choice(dataset_ids)
