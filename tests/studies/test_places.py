"""The places of a study: filled evenly, given once, freed by who leaves."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import Study, StudyStatus, Verdict
from studies.pay import amount_due
from studies.selectors.quality import decisions_about
from studies.services import life
from studies.services.participations import StudyFull, close_timed_out
from studies.services.places import PlacesRefused, put_back, raise_places
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


def finish(participation):
    return walks.give_feedback(walks.rate_all(participation).pk, {})


def valid_per_dataset(study):
    return [row.valid for row in selectors.monitor(study).datasets]


def test_whose_place_was_passed_on_is_paid_in_full_and_the_counts_end_as_planned(study):
    away = walks.rate(walks.to_main(study, session_id="s"))
    expire_lease(away)
    for _ in range(study.place_count):
        walks.complete(study)
    walks.enter(study, session_id="s")
    late = finish(away)
    assert (late.outcome, late.is_valid, late.completion_code.outcome) == (Outcome.COMPLETED, False, Outcome.COMPLETED)
    assert amount_due(Outcome(late.outcome), study.rates) == amount_due(Outcome.COMPLETED, study.rates)
    assert valid_per_dataset(study) == [2, 2]
    (ratings,) = selectors.valid_ratings(study.attack_id, study.target_model_id)
    assert set(Counter(ratings.image_ids.tolist()).values()) == {2}
    assert late.trials.filter(rating=None).count() == 0, "what was answered is kept"
    (decision,) = decisions_about(late)
    assert (decision.verdict, decision.author, decision.counted_before) == (Verdict.EXCLUDE, None, True)
    assert decision.reason.startswith("Beyond the plan")
    assert selectors.places_left(study, REAL) == 0, "nor is a place freed that was never taken"


def test_of_two_on_one_place_the_one_who_finishes_first_counts(study):
    away = walks.to_main(study)
    expire_lease(away)
    others = [walks.to_main(study) for _ in range(study.place_count)]
    assert finish(away).is_valid
    ends = [finish(other) for other in others]
    assert valid_per_dataset(study) == [2, 2]
    (left_out,) = [end for end in ends if not end.is_valid]
    assert left_out.dataset_id == away.dataset_id


@pytest.mark.parametrize("failed_checks", [0, 1])
def test_complete_ratings_at_the_feedback_page_are_displaced_by_nobody_who_rated_later(study, failed_checks):
    """The place was passed on, and its new holder sends the feedback page first."""
    away = walks.to_main(study)
    expire_lease(away)
    others = [walks.to_main(study) for _ in range(study.place_count)]
    away = walks.rate_all(away, failed_checks=failed_checks)
    assert away.step == Step.FEEDBACK
    ends = [finish(other) for other in others]
    left_out = [end for end in ends if not end.is_valid]
    if failed_checks:  # that participant will not count, so the others are not kept out by it
        assert left_out == []
        return
    assert [end.dataset_id for end in left_out] == [away.dataset_id]
    assert walks.give_feedback(away.pk, {}).is_valid
    assert valid_per_dataset(study) == [2, 2]


def test_of_two_at_the_feedback_page_the_one_who_rated_first_counts(study):
    away = walks.to_main(study)
    expire_lease(away)
    others = [walks.to_main(study) for _ in range(study.place_count)]
    same = [other for other in others if other.dataset_id == away.dataset_id]
    assert len(same) == 2
    first, second, last = [walks.rate_all(each) for each in (same[0], away, same[1])]
    assert not walks.give_feedback(last.pk, {}).is_valid
    assert walks.give_feedback(second.pk, {}).is_valid
    assert walks.give_feedback(first.pk, {}).is_valid


def test_the_study_too_ends_with_as_many_places_as_it_has():
    study = factories.running_study(buffer_percent=25)
    assert (study.place_count, study.places_per_dataset) == (5, 3)
    away = walks.to_main(study)
    expire_lease(away)
    walks.complete(study, failed_checks=1)
    for _ in range(4):
        assert walks.complete(study).is_valid
    assert not finish(away).is_valid
    assert valid_per_dataset(study) == [2, 2]


def test_bots_and_previews_fill_nobodys_place(study):
    for _ in range(study.place_count):
        assert walks.complete(study, TEST).is_valid
    for _ in range(study.place_count + 1):
        assert decisions_about(walks.complete(study, PREVIEW)) == []
    assert all(walks.complete(study).is_valid for _ in range(study.place_count))


@pytest.mark.parametrize(
    ("plan", "buffer", "places", "per_dataset"),
    [((60, 10), 15, 690, 12), ((1, 1), 15, 2, 2), ((3, 1), 0, 3, 1)],
)
def test_the_buffer_is_rounded_up(plan, buffer, places, per_dataset):
    study = factories.study(dataset_count=plan[0], participants_per_dataset=plan[1], buffer_percent=buffer)
    assert (study.place_count, study.places_per_dataset) == (places, per_dataset)


def test_more_places_let_more_people_in_and_leave_the_plan_as_it_is(study):
    for _ in range(study.place_count):
        walks.complete(study)
    with pytest.raises(StudyFull):
        walks.enter(study)
    planned = study.planned_participations
    assert raise_places(study, 6) == 2
    assert (study.place_count, study.places_per_dataset, study.planned_participations) == (6, 3, planned)
    for _ in range(2):
        assert walks.complete(study).is_valid
    assert valid_per_dataset(study) == [3, 3]
    with pytest.raises(StudyFull):
        walks.enter(study)
    assert life.copy_study(study).place_count == 4


def test_places_are_put_back_unless_somebody_has_raised_them_again(study):
    added = raise_places(study, 900)
    put_back(study, added)
    assert (study.place_count, study.extra_places) == (4, 0)
    added = raise_places(study, 9)
    raise_places(Study.objects.get(), 12)
    put_back(study, added)
    assert study.place_count == 12


@pytest.mark.parametrize(
    ("status", "places", "said"),
    [
        (StudyStatus.RUNNING, 4, "There are 4 places"),
        (StudyStatus.RUNNING, 3, "There are 4 places"),
        (StudyStatus.READY, 6, "change its plan"),
        (StudyStatus.CLOSED, 6, "closed here"),
        (StudyStatus.ARCHIVED, 6, "closed here"),
    ],
)
def test_places_are_not_raised_where_that_would_let_nobody_in(study, status, places, said):
    Study.objects.filter(pk=study.pk).update(status=status)
    with pytest.raises(PlacesRefused, match=said):
        raise_places(study, places)
    study.refresh_from_db()
    assert study.extra_places == 0
