"""Many arrive at once: places are shared out evenly, each exactly once."""

import threading
from collections import Counter
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from studies.flow import Step
from studies.models import Participation, ParticipationKind, Rating, Study
from studies.selectors import places_left
from studies.selectors.places import is_beyond_plan
from studies.services import allocation, answers, quality_policy
from studies.services.participations import StudyFull, give_feedback, return_participation
from tests import factories, walks
from tests.concurrency.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def arrive(study, number):
    return lambda: walks.consent(walks.enter(study, session_id=f"s{number}"))


def test_200_simultaneous_arrivals_fill_20_datasets_as_planned_and_the_last_place_goes_once():
    """All land and consent at the same moment; 20 more than there are places."""
    study = factories.running_study(
        dataset_count=20, clean_per_dataset=2, modified_per_dataset=2, participants_per_dataset=9, buffer_percent=0
    )
    assert study.place_count == 180
    results = at_once([arrive(study, number) for number in range(200)])
    placed = [result for result in results if isinstance(result, Participation)]
    refused = [result for result in results if isinstance(result, StudyFull)]
    assert (len(placed), len(refused)) == (180, 20), [result for result in results if result not in placed + refused]
    taken = Participation.objects.exclude(dataset=None).values_list("dataset__number", flat=True)
    assert Counter(taken) == dict.fromkeys(range(1, 21), 9)
    assert places_left(study, ParticipationKind.REAL) == 0


def test_100_arrivals_fill_10_datasets_evenly():
    study = factories.running_study(
        dataset_count=10, clean_per_dataset=2, modified_per_dataset=2, participants_per_dataset=10
    )
    results = at_once([arrive(study, number) for number in range(100)])
    assert [result for result in results if isinstance(result, Exception)] == []
    assert set(Counter(result.dataset_id for result in results).values()) == {10}
    assert Participation.objects.count() == 100
    assert all(result.trials.count() == 6 for result in results)


def test_more_arrivals_than_places_leave_nobody_out_and_no_place_twice():
    study = factories.running_study(participants_per_dataset=10, buffer_percent=15)
    assert study.place_count == 23
    results = at_once([arrive(study, number) for number in range(40)])
    placed = [result for result in results if isinstance(result, Participation)]
    refused = [result for result in results if isinstance(result, StudyFull)]
    assert (len(placed), len(refused)) == (23, 17)
    assert sorted(Counter(result.dataset_id for result in placed).values()) == [11, 12]
    assert places_left(study, ParticipationKind.REAL) == 0


@pytest.mark.parametrize("is_locked", [False, True], ids=["without the lock", "with the lock"])
def test_the_last_place_goes_to_two_people_without_the_lock_and_to_one_with_it(monkeypatch, is_locked):
    study = factories.running_study()
    for _ in range(study.place_count - 1):
        walks.consent(walks.enter(study))
    waiting = [walks.enter(study) for _ in range(2)]
    meeting = threading.Barrier(2)

    def meet_before_choosing(dataset_ids):
        """Both count before either of them takes the place, if nothing holds one of them back."""
        with suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=2)
        return dataset_ids[0]

    monkeypatch.setattr(allocation, "pick_one", meet_before_choosing)
    if not is_locked:
        monkeypatch.setattr(allocation, "lock_study", lambda study_id: Study.objects.get(pk=study_id))

    def allocate(participation):
        # On SQLite it is the transaction that keeps others out, on PostgreSQL the lock within it.
        with transaction.atomic() if is_locked else nullcontext():
            allocation.allocate_dataset(participation)
            participation.save()

    results = at_once([lambda each=each: allocate(each) for each in waiting])
    assert [type(result) for result in results if result is not None] == ([StudyFull] if is_locked else [])
    holders = Participation.objects.filter(dataset__isnull=False).count()
    assert holders == study.place_count + (0 if is_locked else 1)


def test_places_that_three_return_at_once_go_to_the_three_who_come_instead():
    """Returned sessions unnoticed kept places occupied: replacements came with nowhere to go."""
    study = factories.running_study(
        dataset_count=5, clean_per_dataset=2, modified_per_dataset=2, participants_per_dataset=2, buffer_percent=0
    )
    participations = at_once([arrive(study, number) for number in range(10)])
    returned = participations[:3]
    freed = Counter(each.dataset_id for each in returned)
    with pytest.raises(StudyFull):
        walks.enter(study, session_id="too early")
    at_once([lambda each=each: return_participation(each.pk) for each in returned] * 2)
    replacements = at_once([arrive(study, number) for number in range(10, 13)])
    assert Counter(each.dataset_id for each in replacements) == freed
    with pytest.raises(StudyFull):
        walks.enter(study, session_id="too late")


@pytest.mark.parametrize("is_locked", [False, True], ids=["without the lock", "with the lock"])
def test_of_two_who_finish_on_one_place_both_count_without_the_lock_and_one_with_it(monkeypatch, is_locked):
    """One was away while the place was passed on to the other, and both gave their last rating at one moment."""
    study = factories.running_study(dataset_count=1, participants_per_dataset=1)
    away = walks.rate_all(walks.to_main(study))
    Participation.objects.update(step=Step.MAIN, lease_expires_at=timezone.now())
    both = [away, walks.rate_all(walks.to_main(study))]
    Participation.objects.update(step=Step.FEEDBACK)
    Rating.objects.update(answered_at=timezone.now())
    meeting = threading.Barrier(2)

    def meet_after_counting(participation, waiting):
        """Both have counted before either of them is done, if nothing holds one of them back."""
        is_beyond = is_beyond_plan(participation, waiting)
        with suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=2)
        return is_beyond

    monkeypatch.setattr(quality_policy, "is_beyond_plan", meet_after_counting)
    if not is_locked:
        monkeypatch.setattr(quality_policy, "lock_datasets", lambda study_id: None)
        if connection.vendor == "sqlite":  # there it is the transaction that keeps others out
            monkeypatch.setattr(answers, "transaction", SimpleNamespace(atomic=nullcontext))
    ends = at_once([lambda each=each: give_feedback(each.pk, {}) for each in both])
    assert [end for end in ends if isinstance(end, Exception)] == []
    assert sorted(end.is_valid for end in ends) == [not is_locked, True]
