"""The one place where participants get their dataset: an expiring lease on a place."""

import secrets
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone

from studies.models import Dataset, Participation, ParticipationKind, Study
from studies.selectors import holds_dataset_place, takes_place


class StudyFull(Exception):
    """Every place of the study is taken, for now or for good."""


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
    A preview gets any dataset and takes no place. Raises StudyFull when no place is left.
    """
    study = Study.objects.select_for_update(no_key=True).get(pk=participation.study_id)
    if participation.dataset_id is None:
        dataset_ids = list(Dataset.objects.filter(study=study).values_list("id", flat=True))
        if participation.kind == ParticipationKind.PREVIEW:
            participation.dataset_id = secrets.choice(dataset_ids)
        else:
            now = timezone.now()
            counts = (
                Participation.objects.filter(takes_place(now), study=study, kind=participation.kind)
                .order_by()
                .values("dataset_id")
                .annotate(taken=Count("id"), held=Count("id", filter=holds_dataset_place(now)))
            )
            rows = {row["dataset_id"]: row for row in counts}
            if sum(row["taken"] for row in rows.values()) >= study.place_count:
                raise StudyFull
            held = {dataset_id: rows[dataset_id]["held"] if dataset_id in rows else 0 for dataset_id in dataset_ids}
            fewest = min(held.values())
            participation.dataset_id = secrets.choice([key for key, count in held.items() if count == fewest])
    extend_lease(participation, study)
