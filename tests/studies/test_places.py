"""The places of a study: filled evenly, given once, freed by who leaves."""

from datetime import timedelta

import pytest
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.services.participations import StudyFull, close_timed_out
from tests import factories, walks
from tests.studies.participations import PREVIEW, REAL, TEST, expire_lease

pytestmark = pytest.mark.django_db


def test_datasets_fill_evenly_and_no_place_is_given_twice(study):
    for _ in range(study.place_count):
        walks.consent(walks.enter(study))
    assert [row.running for row in selectors.monitor(study).datasets] == [2, 2]
    with pytest.raises(StudyFull):
        walks.enter(study)


def test_the_last_place_may_go_between_entering_and_consent(study):
    late = walks.enter(study)
    for _ in range(study.place_count):
        walks.consent(walks.enter(study))
    with pytest.raises(StudyFull):
        walks.consent(late)
    late.refresh_from_db()
    assert (late.step, late.dataset, late.consented_at) == (Step.CONSENT, None, None)


@pytest.mark.parametrize("leave", ["colour check", "comprehension", "lease", "time-out"])
def test_who_leaves_early_frees_the_place_in_that_dataset(study, leave):
    stayed = [walks.consent(walks.enter(study)) for _ in range(study.place_count - 1)]
    left = walks.consent(walks.enter(study))
    if leave == "colour check":
        walks.answer_plates(left, wrong=1)
    elif leave == "comprehension":
        walks.answer_pairs(walks.answer_plates(left), wrong=1)
    elif leave == "lease":
        expire_lease(left)
    else:
        close_timed_out(left.pk, timezone.now() + timedelta(seconds=1))
    replacement = walks.consent(walks.enter(study))
    assert replacement.dataset_id == left.dataset_id
    with pytest.raises(StudyFull):
        walks.enter(study)
    assert all(other.dataset_id is not None for other in stayed)


def test_excluded_people_use_up_the_buffer_and_their_dataset_is_filled_again():
    study = factories.running_study(buffer_percent=25)
    assert (study.planned_participations, study.place_count) == (4, 5)
    excluded = walks.complete(study, failed_checks=1)
    assert excluded.outcome == Outcome.ATTENTION_FAILED
    for _ in range(4):
        walks.complete(study)
    with pytest.raises(StudyFull):
        walks.enter(study)
    assert [row.valid for row in selectors.monitor(study).datasets] == [2, 2]


def test_places_are_counted_per_kind_and_previews_take_none(study):
    for _ in range(study.place_count):
        walks.consent(walks.enter(study, TEST))
        walks.consent(walks.enter(study, PREVIEW))
    with pytest.raises(StudyFull):
        walks.enter(study, TEST)
    assert walks.enter(study, PREVIEW).kind == PREVIEW
    assert selectors.places_left(study, REAL) == study.place_count


def test_who_returns_after_the_lease_expired_goes_on_and_holds_a_place_again(study):
    participation = walks.rate(walks.to_main(study, session_id="s"))
    expire_lease(participation)
    assert selectors.places_left(study, REAL) == study.place_count
    walks.enter(study, session_id="s")
    assert selectors.places_left(study, REAL) == study.place_count - 1
    expire_lease(participation)
    walks.rate(participation)
    participation.refresh_from_db()
    assert participation.lease_expires_at > timezone.now() + timedelta(minutes=study.lease_minutes - 1)
    assert participation.trials.filter(rating__isnull=False).count() == 2


@pytest.mark.parametrize(("plan", "buffer", "places"), [((60, 10), 15, 690), ((1, 1), 15, 2), ((3, 1), 0, 3)])
def test_the_buffer_is_rounded_up(plan, buffer, places):
    study = factories.study(dataset_count=plan[0], participants_per_dataset=plan[1], buffer_percent=buffer)
    assert study.place_count == places
