"""Entering a study: who may come, come back, or begin again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import ParticipantIdentity, Participation, Rating
from studies.services import life
from studies.services.participations import (
    AlreadyTookPart,
    InvalidAnswer,
    SessionOfOtherKind,
    StudyFull,
    StudyNotOpen,
    close_timed_out,
    decline_consent,
    give_feedback,
)
from tests import factories, walks
from tests.studies.participations import PREVIEW, REAL, TEST

pytestmark = pytest.mark.django_db


def test_a_session_has_one_participation_however_often_it_comes(study):
    first = walks.to_main(study, participant_id="p", session_id="s")
    walks.rate(first)
    order = list(first.trials.values_list("token", flat=True))
    for _ in range(5):
        again = walks.enter(study, participant_id="p", session_id="s")
        assert again.pk == first.pk
        assert list(again.trials.values_list("token", flat=True)) == order
        assert walks.current_trial(again).position == 2
    assert Participation.objects.count() == ParticipantIdentity.objects.count() == 1


def test_without_a_session_id_everyone_is_new(study):
    assert walks.enter(study).pk != walks.enter(study).pk
    sessions = list(ParticipantIdentity.objects.values_list("session_id", flat=True))
    assert len(set(sessions)) == 2
    assert all(len(session) >= 32 for session in sessions)


def test_the_same_session_id_in_another_study_is_another_participation(study):
    other = factories.running_study()
    assert walks.enter(study, session_id="s").study == study
    assert walks.enter(other, session_id="s").study == other


def test_a_session_stays_of_the_kind_it_began_as(study):
    """A test link with somebody's session must not answer in their place, nor the reverse."""
    for session, kind, other in (("real", REAL, TEST), ("test", TEST, REAL)):
        first = walks.to_main(study, kind, session_id=session)
        with pytest.raises(SessionOfOtherKind):
            walks.enter(study, other, session_id=session)
        assert not first.events.filter(name="came_back").exists()
    assert Participation.objects.count() == 2


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        ("draft", REAL, "not_started"),
        ("ready", REAL, "not_started"),
        ("running", REAL, None),
        ("paused", REAL, "paused"),
        ("closed", REAL, "closed"),
        ("archived", REAL, "closed"),
        ("draft", TEST, "not_started"),
        ("ready", TEST, None),
        ("running", TEST, None),
        ("paused", TEST, None),
        ("closed", TEST, "closed"),
        ("draft", PREVIEW, "not_started"),
        ("ready", PREVIEW, None),
        ("paused", PREVIEW, None),
        ("closed", PREVIEW, "closed"),
    ],
)
def test_who_may_enter_when(study, status, kind, reason):
    study.status = status
    study.save()
    if reason is None:
        assert walks.enter(study, kind).kind == kind
        return
    with pytest.raises(StudyNotOpen) as refusal:
        walks.enter(study, kind)
    assert refusal.value.reason == reason
    assert not Participation.objects.exists()


@pytest.mark.parametrize("end_entry", [life.pause, life.close])
def test_who_is_in_may_finish_after_the_study_was_paused_or_closed(study, end_entry):
    participation = walks.to_main(study, session_id="s")
    end_entry(study)
    assert walks.enter(study, session_id="s").pk == participation.pk
    assert give_feedback(walks.rate_all(participation).pk, {}).outcome == Outcome.COMPLETED


def test_who_has_finished_may_not_start_again_with_another_session(study):
    walks.complete(study, participant_id="p", session_id="s1")
    with pytest.raises(AlreadyTookPart) as refusal:
        walks.enter(study, participant_id="p", session_id="s2")
    assert refusal.value.reason == "already_took_part"
    assert walks.enter(study, participant_id="p", session_id="s1").outcome == Outcome.COMPLETED
    assert walks.enter(study, participant_id="q", session_id="s3").step == Step.CONSENT


def test_who_failed_a_check_may_not_start_again(study):
    walks.answer_plates(walks.consent(walks.enter(study, participant_id="p", session_id="s1")), wrong=1)
    with pytest.raises(AlreadyTookPart):
        walks.enter(study, participant_id="p", session_id="s2")


def test_who_returned_without_a_result_may_come_with_a_new_session(study):
    first = walks.to_main(study, participant_id="p", session_id="s1")
    second = walks.enter(study, participant_id="p", session_id="s2")
    assert second.pk != first.pk
    decline_consent(second.pk)
    assert walks.enter(study, participant_id="p", session_id="s3").step == Step.CONSENT


def test_a_later_session_ends_the_earlier_one_so_that_a_person_counts_once(study):
    first = walks.rate(walks.to_main(study, participant_id="p", session_id="s1"))
    second = walks.complete(study, participant_id="p", session_id="s2")
    assert second.is_valid
    back = walks.enter(study, participant_id="p", session_id="s1")
    assert (back.pk, back.step, back.outcome) == (first.pk, Step.END, Outcome.REPLACED)
    assert back.completion_code is None
    assert back.is_valid is False
    assert give_feedback(first.pk, {}).outcome == Outcome.REPLACED
    assert Rating.objects.filter(trial__participation=first).count() == 1, "what was answered is kept"
    assert selectors.places_left(study, REAL) == study.place_count - 1
    assert Participation.objects.filter(is_valid=True).count() == 1


@pytest.mark.parametrize(
    ("failed_checks", "outcome", "is_valid"), [(0, Outcome.COMPLETED, True), (1, Outcome.ATTENTION_FAILED, False)]
)
def test_a_later_session_costs_nobody_complete_ratings(study, failed_checks, outcome, is_valid):
    """At the feedback page everything that counts is there: the session ends as it would, and none is begun."""
    first = walks.rate_all(walks.to_main(study, participant_id="p", session_id="s1"), failed_checks=failed_checks)
    assert first.step == Step.FEEDBACK
    for _ in range(2):
        with pytest.raises(AlreadyTookPart):
            walks.enter(study, participant_id="p", session_id="s2")
    first.refresh_from_db()
    assert (first.step, first.outcome, first.is_valid) == (Step.END, outcome, is_valid)
    assert first.completion_code.outcome == outcome
    assert Participation.objects.count() == 1


def test_a_replaced_session_frees_its_place_for_the_later_one(study):
    walks.consent(walks.enter(study, participant_id="p", session_id="s1"))
    for _ in range(study.place_count - 1):
        walks.consent(walks.enter(study))
    assert walks.enter(study, participant_id="p", session_id="s2").step == Step.CONSENT


def test_a_later_session_leaves_other_people_and_test_sessions_alone(study):
    others = [
        walks.to_main(study, participant_id="q", session_id="s1"),
        walks.to_main(study, TEST, participant_id="p", session_id="s2"),
        walks.to_main(factories.running_study(), participant_id="p", session_id="s3"),
        walks.to_main(study),
    ]
    walks.enter(study, participant_id="p", session_id="s4")
    walks.enter(study)
    assert set(Participation.objects.filter(pk__in=[other.pk for other in others]).values_list("step", flat=True)) == {
        Step.MAIN
    }


def test_a_person_cannot_become_valid_twice_even_if_two_sessions_were_never_told_apart(study):
    first = walks.rate_all(walks.to_main(study, participant_id="p", session_id="s1"))
    second = walks.rate_all(walks.to_main(study, participant_id="q", session_id="s2"))
    ParticipantIdentity.objects.update(participant_id="p")
    results = [give_feedback(each.pk, {}) for each in (second, first)]
    assert [result.outcome for result in results] == [Outcome.COMPLETED] * 2
    assert [result.is_valid for result in results] == [True, False]


@pytest.mark.parametrize(("stop", "reason"), [(life.pause, "paused"), (life.close, "closed")])
def test_a_study_that_stops_takes_nobody_from_its_consent_page(study, stop, reason):
    waiting, inside = walks.enter(study), walks.consent(walks.enter(study))
    preview, tester = walks.enter(study, PREVIEW), walks.enter(study, TEST)
    stop(study)
    with pytest.raises(StudyNotOpen) as refusal:
        walks.consent(waiting)
    assert refusal.value.reason == reason
    waiting.refresh_from_db()
    assert (waiting.step, waiting.dataset, waiting.consented_at) == (Step.CONSENT, None, None)
    assert walks.answer_plates(inside).step == Step.INSTRUCTIONS
    assert walks.consent(preview).step == Step.COLOUR_CHECK
    if reason == "paused":
        assert walks.consent(tester).step == Step.COLOUR_CHECK


def time_out(participation):
    close_timed_out(participation.pk, timezone.now() + timedelta(seconds=1))


@pytest.mark.parametrize("end", [lambda participation: decline_consent(participation.pk), time_out])
def test_who_only_read_the_consent_text_of_a_direct_study_begins_again_with_the_same_link(study, end):
    participation = walks.enter(study, session_id="s")
    end(participation)
    again = walks.enter(study, session_id="s")
    assert (again.pk, again.step, again.outcome, again.completion_code) == (participation.pk, Step.CONSENT, "", None)
    close_timed_out(participation.pk, timezone.now() - timedelta(hours=24))
    assert walks.consent(again).step == Step.COLOUR_CHECK
    time_out(again)
    assert walks.enter(study, session_id="s").outcome == Outcome.TIMED_OUT, "after the consent an end is an end"


def test_who_begins_again_needs_an_open_study_with_a_place(study):
    participation = decline_consent(walks.enter(study, session_id="s").pk)
    for _ in range(study.place_count):
        walks.consent(walks.enter(study))
    with pytest.raises(StudyFull):
        walks.enter(study, session_id="s")
    life.pause(study)
    with pytest.raises(StudyNotOpen):
        walks.enter(study, session_id="s")
    participation.refresh_from_db()
    assert participation.outcome == Outcome.DECLINED


def test_on_a_panel_a_declined_session_stays_declined():
    study = factories.running_study(panel="prolific")
    decline_consent(walks.enter(study, participant_id="p", session_id="s").pk)
    assert walks.enter(study, participant_id="p", session_id="s").outcome == Outcome.DECLINED


def test_the_same_tester_may_come_as_often_as_they_like(study):
    walks.complete(study, TEST, participant_id="p", session_id="s1")
    assert walks.enter(study, TEST, participant_id="p", session_id="s2").step == Step.CONSENT


def test_ids_that_do_not_fit_are_refused(study):
    with pytest.raises(InvalidAnswer, match="64 characters"):
        walks.enter(study, session_id="x" * 65)
