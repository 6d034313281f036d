"""One participant's way, by the services: each answer once, nothing lost, nothing ahead of its time."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import (
    FeedbackAnswer,
    ParticipantIdentity,
    Participation,
    ParticipationKind,
    Rating,
    Stimulus,
    TrialKind,
)
from studies.services import answers, entering, life
from studies.services.participations import (
    AlreadyTookPart,
    Device,
    DeviceNotSuitable,
    InvalidAnswer,
    StudyFull,
    StudyNotOpen,
    Timings,
    accept_consent,
    answer_pair,
    answer_plate,
    answer_trial,
    close_timed_out,
    decline_consent,
    enter_study,
    finish_instructions,
    give_feedback,
)
from studies.signals import valid_ratings_changed
from tests import factories, walks

pytestmark = pytest.mark.django_db

REAL, TEST, PREVIEW = ParticipationKind.REAL, ParticipationKind.TEST, ParticipationKind.PREVIEW


@pytest.fixture
def study():
    return factories.running_study()


@pytest.fixture
def heard():
    """What ``valid_ratings_changed`` said."""
    calls = []

    def hear(sender, **kwargs):
        calls.append((kwargs["attack_id"], kwargs["target_model_id"]))

    valid_ratings_changed.connect(hear)
    yield calls
    valid_ratings_changed.disconnect(hear)


def expire_lease(participation):
    Participation.objects.filter(pk=participation.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


# --- The whole way --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["paper", "field"])
def test_the_whole_way(preset, heard, django_capture_on_commit_callbacks):
    study = factories.running_study(preset, panel="prolific")
    with django_capture_on_commit_callbacks(execute=True):
        done = walks.complete(study, participant_id="p1", session_id="s1")
    done.refresh_from_db()
    assert (done.step, done.outcome, done.is_valid) == (Step.END, Outcome.COMPLETED, True)
    assert done.completion_code == study.completion_codes.get(outcome=Outcome.COMPLETED)
    assert done.lease_expires_at is None
    assert done.consent_text == selectors.study_text(study, "consent")
    assert done.consented_at is not None
    assert (done.viewport_width, done.viewport_height, done.device_pixel_ratio) == (1280, 800, 2.0)
    assert done.trials.count() == study.trial_count == Rating.objects.filter(trial__participation=done).count()
    assert list(done.feedback.values_list("item", "answer")) == [("comment", "Fine")]
    assert heard == [(study.attack_id, study.target_model_id)]
    names = list(done.events.values_list("name", flat=True))
    assert names[:3] == ["entered", "consented", "plate_answered"]
    assert names[-2:] == ["feedback_given", "ended"]


def test_images_and_checks_of_a_participant_are_those_of_the_dataset(study):
    participation = walks.to_main(study)
    images = set(participation.trials.filter(kind=TrialKind.IMAGE).values_list("image_id", flat=True))
    assert images == set(participation.dataset.dataset_images.values_list("image_id", flat=True))
    assert set(participation.trials.filter(kind=TrialKind.CORRUPTED).values_list("stimulus_id", flat=True)) == set(
        Stimulus.objects.filter(study=study, purpose="attention").values_list("id", flat=True)
    )
    assert list(participation.trials.values_list("position", flat=True)) == list(range(1, study.trial_count + 1))


def test_the_order_differs_between_participants():
    study = factories.running_study(dataset_count=1, clean_per_dataset=10, modified_per_dataset=10)
    orders = [list(walks.to_main(study).trials.values_list("image_id", flat=True)) for _ in range(2)]
    assert orders[0] != orders[1]


def test_declining_ends_with_its_own_code(study, heard):
    participation = decline_consent(walks.enter(study).pk)
    assert (participation.step, participation.outcome, participation.is_valid) == (Step.END, Outcome.DECLINED, False)
    assert participation.completion_code.outcome == Outcome.DECLINED
    assert participation.consented_at is None
    assert heard == []


# --- Entering -------------------------------------------------------------------------------------------------


def test_a_session_has_one_participation_however_often_it_comes(study):
    first = walks.to_main(study, participant_id="p", session_id="s")
    walks.rate(first)
    order = list(first.trials.values_list("token", flat=True))
    for _ in range(5):
        again = walks.enter(study, participant_id="p", session_id="s")
        assert again.pk == first.pk
        assert list(again.trials.values_list("token", flat=True)) == order
        assert selectors.current_trial(again).position == 2
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


# --- Places ---------------------------------------------------------------------------------------------------


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


# --- Checks before the main study -----------------------------------------------------------------------------


def test_plates_have_one_blank_and_are_answered_one_at_a_time(study):
    participation = walks.consent(walks.enter(study))
    plates = list(participation.plate_trials.select_related("plate"))
    assert [plate.plate.digit for plate in plates].count(None) == 1
    with pytest.raises(InvalidAnswer):
        answer_plate(participation.pk, plates[1].token, "3")
    first = selectors.current_plate(participation)
    participation = answer_plate(participation.pk, first.token, "0")
    assert selectors.current_plate(participation).position == 2
    assert selectors.progress(participation) == selectors.Progress(done=1, total=3)


def test_a_plate_answered_with_0_is_answered(study):
    participation = walks.consent(walks.enter(study))
    plate = selectors.current_plate(participation)
    answer_plate(participation.pk, plate.token, "0")
    plate.refresh_from_db()
    assert plate.answer == "0"
    assert plate.answered_at is not None


def test_the_first_answer_to_a_plate_stands(study):
    participation = walks.consent(walks.enter(study))
    plate = selectors.current_plate(participation)
    for answer in ("none", "4", "none"):
        answer_plate(participation.pk, plate.token, answer)
    plate.refresh_from_db()
    assert plate.answer == "none"


@pytest.mark.parametrize("answer", ["", "10", "x", "None", "-1", "٣"])
def test_malformed_plate_answers_are_refused(study, answer):
    participation = walks.consent(walks.enter(study))
    plate = selectors.current_plate(participation)
    with pytest.raises(InvalidAnswer):
        answer_plate(participation.pk, plate.token, answer)
    plate.refresh_from_db()
    assert plate.answered_at is None


def test_the_colour_check_is_judged_after_the_last_plate(study):
    participation = walks.answer_plates(walks.consent(walks.enter(study)), wrong=1)
    assert participation.plate_trials.filter(answered_at__isnull=False).count() == 3
    assert (participation.step, participation.outcome) == (Step.END, Outcome.COLOUR_CHECK_FAILED)
    assert participation.completion_code.outcome == Outcome.COLOUR_CHECK_FAILED


def test_a_study_without_plates_and_pairs_goes_straight_on():
    study = factories.running_study(
        plate_count=0, plates_required=0, comprehension_pair_count=0, comprehension_required=0
    )
    participation = walks.consent(walks.enter(study))
    assert participation.step == Step.INSTRUCTIONS
    assert finish_instructions(participation.pk).step == Step.MAIN


def test_pairs_are_judged_after_the_last_one(study):
    participation = walks.answer_pairs(walks.answer_plates(walks.consent(walks.enter(study))), wrong=1)
    assert (participation.step, participation.outcome) == (Step.END, Outcome.COMPREHENSION_FAILED)
    assert participation.pair_trials.count() == 3


def test_pairs_show_the_unmodified_and_the_modified_version_of_one_image(study):
    participation = finish_instructions(walks.answer_plates(walks.consent(walks.enter(study))).pk)
    for pair in participation.pair_trials.select_related("clean_stimulus", "modified_stimulus"):
        assert pair.clean_stimulus.modification == "none"
        assert pair.modified_stimulus.modification == pair.modified_stimulus.pair_modification != "none"
        assert pair.clean_stimulus.source == pair.modified_stimulus.source


def test_another_try_has_new_pairs_and_the_first_ones_are_past():
    study = factories.running_study(comprehension_tries=2)
    participation = walks.answer_pairs(walks.answer_plates(walks.consent(walks.enter(study))), wrong=2)
    assert (participation.step, participation.comprehension_attempt) == (Step.INSTRUCTIONS, 2)
    old = participation.pair_trials.first()
    assert answer_pair(participation.pk, old.token, "left").step == Step.INSTRUCTIONS
    participation = walks.answer_pairs(participation)
    assert participation.step == Step.MAIN
    assert participation.pair_trials.filter(attempt=2).count() == 3
    assert not set(participation.pair_trials.filter(attempt=1).values_list("token")) & set(
        participation.pair_trials.filter(attempt=2).values_list("token")
    )


def test_the_last_try_is_the_last():
    study = factories.running_study(comprehension_tries=2)
    participation = walks.answer_plates(walks.consent(walks.enter(study)))
    for _ in range(2):
        participation = walks.answer_pairs(participation, wrong=3)
    assert participation.outcome == Outcome.COMPREHENSION_FAILED


def test_malformed_pair_answers_are_refused(study):
    participation = finish_instructions(walks.answer_plates(walks.consent(walks.enter(study))).pk)
    with pytest.raises(InvalidAnswer, match="left or right"):
        answer_pair(participation.pk, selectors.current_pair(participation).token, "middle")


# --- Main study -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-100, -1, 0, 1, 100])
def test_a_rating_is_stored_as_given_and_0_is_one(study, value):
    participation = walks.to_main(study)
    trial = selectors.current_trial(participation)
    answer_trial(participation.pk, trial.token, value, walks.TIMINGS)
    rating = trial.rating
    assert rating.value == value
    assert (rating.response_ms, rating.first_interaction_ms, rating.last_interaction_ms) == (1500, 700, 1200)
    assert rating.focus_losses == 0
    assert selectors.current_trial(participation).position == 2


@pytest.mark.parametrize("value", [101, -101, 10**9, 1.0, "5", True, None, float("nan")])
def test_other_values_are_refused(study, value):
    participation = walks.to_main(study)
    trial = selectors.current_trial(participation)
    with pytest.raises(InvalidAnswer, match="whole number from -100 to 100"):
        answer_trial(participation.pk, trial.token, value, walks.TIMINGS)
    assert not Rating.objects.exists()


def test_the_first_rating_stands_and_a_repeat_moves_nothing(study):
    participation = walks.to_main(study)
    trial = selectors.current_trial(participation)
    for value in (0, 50, -50):
        answer_trial(participation.pk, trial.token, value, walks.TIMINGS)
    assert trial.rating.value == 0
    assert Rating.objects.count() == 1
    assert selectors.current_trial(participation).position == 2


def test_what_lies_ahead_cannot_be_rated(study):
    participation = walks.to_main(study)
    other = walks.to_main(study)
    tokens = list(participation.trials.values_list("token", flat=True))
    for token in [tokens[1], tokens[-1], uuid.uuid4(), selectors.current_trial(other).token]:
        with pytest.raises(InvalidAnswer, match="not been shown"):
            answer_trial(participation.pk, token, 0, walks.TIMINGS)
    assert not Rating.objects.exists()


def test_a_strange_measurement_costs_no_answer(study):
    participation = walks.to_main(study)
    trial = selectors.current_trial(participation)
    answer_trial(participation.pk, trial.token, 5, Timings(-1, 2**40, None, 10**6))
    rating = Rating.objects.get()
    assert (rating.value, rating.response_ms, rating.first_interaction_ms) == (5, None, 2**31 - 1)
    assert (rating.last_interaction_ms, rating.focus_losses) == (None, None)


@pytest.mark.parametrize("touched_at", [None, -1, True, "7"])
def test_a_scale_that_was_never_touched_gives_no_rating(study, touched_at):
    participation = walks.to_main(study)
    trial = selectors.current_trial(participation)
    with pytest.raises(InvalidAnswer, match="touched"):
        answer_trial(participation.pk, trial.token, 0, Timings(900, touched_at, None, 0))
    assert not Rating.objects.exists()
    assert selectors.current_trial(participation) == trial


def test_the_position_a_scale_started_at_is_stored_and_must_be_on_it(study):
    participation = walks.to_main(study)
    for start_position in (-100, 0, None):
        trial = selectors.current_trial(participation)
        participation = answer_trial(participation.pk, trial.token, 5, walks.TIMINGS, start_position=start_position)
        assert trial.rating.start_position == start_position
    trial = selectors.current_trial(participation)
    with pytest.raises(InvalidAnswer, match="started at 101"):
        answer_trial(participation.pk, trial.token, 5, walks.TIMINGS, start_position=101)


def test_what_was_shown_when_is_stored(study):
    participation = walks.to_main(study)
    first, second = participation.trials.all()[:2]
    assert first.first_shown_at is not None
    assert second.first_shown_at is None
    walks.rate(participation)
    second.refresh_from_db()
    assert second.first_shown_at >= first.first_shown_at


def test_failed_checks_are_counted_and_exclude_afterwards(study):
    participation = walks.rate_all(walks.to_main(study), failed_checks=1)
    assert (participation.step, participation.attention_failures) == (Step.FEEDBACK, 1)
    participation = give_feedback(participation.pk, {})
    assert (participation.outcome, participation.is_valid) == (Outcome.ATTENTION_FAILED, False)
    assert participation.completion_code.outcome == Outcome.ATTENTION_FAILED


@pytest.mark.parametrize("preset", ["paper", "field"])
def test_as_many_failures_as_allowed_are_forgiven(preset):
    study = factories.running_study(preset, attention_failures_allowed=1)
    assert walks.complete(study, failed_checks=1).outcome == Outcome.COMPLETED
    assert walks.complete(study, failed_checks=2).outcome == Outcome.ATTENTION_FAILED


def test_a_policy_may_end_the_study_at_once():
    study = factories.running_study(attention_policy="end_at_once")
    participation = walks.rate_all(walks.to_main(study), failed_checks=1)
    assert (participation.step, participation.outcome) == (Step.END, Outcome.ATTENTION_FAILED)
    unanswered = participation.trials.filter(rating__isnull=True)
    assert unanswered.exists()
    assert (
        answer_trial(participation.pk, unanswered.first().token, 3, walks.TIMINGS).outcome == Outcome.ATTENTION_FAILED
    )
    assert unanswered.count() == participation.trials.count() - Rating.objects.count()


def test_the_tolerance_of_instructed_responses(study):
    participation = walks.to_main(study)
    failures = {}
    for distance in (10, 11):
        trial = participation.trials.get(kind=TrialKind.INSTRUCTED)
        value = trial.instructed_value - distance if trial.instructed_value > 0 else trial.instructed_value + distance
        failures[distance] = answers._check_passed(trial, value, study)
    assert failures == {10: True, 11: False}


def test_rating_costs_five_statements(study):
    participation = walks.to_main(study)
    trial = selectors.current_trial(participation)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        answer_trial(participation.pk, trial.token, 5, walks.TIMINGS)
    statements = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
    assert len(statements) == 5, statements


# --- Feedback and end -----------------------------------------------------------------------------------------


def test_feedback_is_optional_and_kept_once(study):
    participation = walks.rate_all(walks.to_main(study))
    give_feedback(participation.pk, {"difficulty": "0", "comment": "  <b>hard</b> ", "strategy": " "})
    give_feedback(participation.pk, {"difficulty": "4"})
    assert dict(FeedbackAnswer.objects.values_list("item", "answer")) == {"difficulty": "0", "comment": "<b>hard</b>"}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"comment": "x" * 5001}, "shorten"),
        ({"x" * 41: "y"}, "did not ask"),
        ({f"item {number}": "y" for number in range(41)}, "did not ask"),
    ],
)
def test_too_much_feedback_is_refused_and_nothing_is_lost(study, answers, words):
    participation = walks.rate_all(walks.to_main(study))
    with pytest.raises(InvalidAnswer, match=words):
        give_feedback(participation.pk, answers)
    participation.refresh_from_db()
    assert participation.step == Step.FEEDBACK


def test_the_code_stays_whatever_is_called_after_the_end(study):
    participation = walks.complete(study)
    code, finished_at = participation.completion_code, participation.finished_at
    walks.consent(participation)
    decline_consent(participation.pk)
    finish_instructions(participation.pk)
    give_feedback(participation.pk, {"comment": "again"})
    close_timed_out(participation.pk, timezone.now() + timedelta(days=2))
    participation.refresh_from_db()
    assert (participation.outcome, participation.completion_code) == (Outcome.COMPLETED, code)
    assert participation.finished_at == finished_at


def test_there_is_one_code_per_outcome(study):
    codes = dict(study.completion_codes.values_list("outcome", "code"))
    assert set(codes) == set(Outcome) - {Outcome.REPLACED}
    assert len(set(codes.values())) == len(codes)


def test_only_what_counts_is_announced(study, heard, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        walks.complete(study, TEST)
        walks.complete(study, failed_checks=1)
        walks.complete(study, PREVIEW)
    assert heard == []


def test_test_data_of_a_demonstration_count(heard, django_capture_on_commit_callbacks):
    study = factories.running_study(is_demo=True)
    with django_capture_on_commit_callbacks(execute=True):
        walks.complete(study, TEST)
    assert heard == [(study.attack_id, study.target_model_id)]


# --- Nothing ahead of its time --------------------------------------------------------------------------------


def test_steps_that_have_not_been_reached_are_refused(study):
    participation = walks.enter(study)
    for too_early in (
        lambda: answer_plate(participation.pk, uuid.uuid4(), "1"),
        lambda: finish_instructions(participation.pk),
        lambda: answer_pair(participation.pk, uuid.uuid4(), "left"),
        lambda: answer_trial(participation.pk, uuid.uuid4(), 0, walks.TIMINGS),
        lambda: give_feedback(participation.pk, {}),
    ):
        with pytest.raises(InvalidAnswer):
            too_early()
    participation.refresh_from_db()
    assert participation.step == Step.CONSENT


def test_trials_cannot_be_rated_before_the_main_study(study):
    participation = walks.consent(walks.enter(study))
    with pytest.raises(InvalidAnswer):
        answer_trial(participation.pk, participation.trials.first().token, 0, walks.TIMINGS)


def test_consenting_twice_changes_nothing(study):
    participation = walks.consent(walks.enter(study))
    order = list(participation.trials.values_list("token", flat=True))
    again = accept_consent(participation.pk, Device(1, 1, 1.0))
    assert (again.viewport_width, again.dataset_id) == (1280, participation.dataset_id)
    assert list(again.trials.values_list("token", flat=True)) == order
    assert again.plate_trials.count() == 3


def test_a_consent_that_was_cut_short_is_taken_up_again(study, monkeypatch):
    participation = walks.enter(study)

    def lose_the_database(participation):
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(entering, "make_trials", lose_the_database)
        with pytest.raises(ConnectionError):
            walks.consent(participation)
    participation.refresh_from_db()
    assert participation.step == Step.CONSENT
    dataset_id = participation.dataset_id
    participation = walks.consent(participation)
    assert (participation.step, participation.dataset_id) == (Step.COLOUR_CHECK, dataset_id)


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_strange_pixel_ratio_is_no_obstacle(study, ratio):
    participation = accept_consent(walks.enter(study).pk, Device(800, 500, ratio))
    assert (participation.viewport_width, participation.viewport_height) == (800, 500)
    assert participation.device_pixel_ratio is None


@pytest.mark.parametrize("kind", [REAL, TEST])
@pytest.mark.parametrize(
    ("width", "height", "reason"),
    [
        (799, 500, "window_too_small"),
        (800, 499, "window_too_small"),
        (0, 900, "window_too_small"),
        (None, 900, "not_measured"),
        (1440, None, "not_measured"),
        (-5, 900, "not_measured"),
        (1440, 10**6, "not_measured"),
    ],
)
def test_a_window_that_does_not_show_the_images_takes_no_place_and_may_try_again(study, kind, width, height, reason):
    participation = walks.enter(study, kind)
    with pytest.raises(DeviceNotSuitable) as refusal:
        accept_consent(participation.pk, Device(width, height, 1.0))
    assert refusal.value.reason == reason
    participation.refresh_from_db()
    assert (participation.step, participation.dataset, participation.consented_at) == (Step.CONSENT, None, None)
    assert walks.consent(participation).step == Step.COLOUR_CHECK


def test_phones_that_are_allowed_only_have_to_be_measured():
    study = factories.running_study(phones_allowed=True)
    with pytest.raises(DeviceNotSuitable):
        accept_consent(walks.enter(study).pk, Device(None, None, None))
    assert accept_consent(walks.enter(study).pk, Device(390, 844, 3.0)).step == Step.COLOUR_CHECK


def test_a_preview_may_be_looked_at_in_any_window(study):
    assert accept_consent(walks.enter(study, PREVIEW).pk, Device(None, None, None)).step == Step.COLOUR_CHECK


# --- Time-out -------------------------------------------------------------------------------------------------


def test_answers_are_kept_when_a_participation_times_out(study):
    participation = walks.to_main(study, session_id="s")
    for _ in range(3):
        walks.rate(participation)
    Participation.objects.update(last_seen_at=timezone.now() - timedelta(hours=25))
    close_timed_out(participation.pk, timezone.now() - timedelta(hours=24))
    back = enter_study(study, kind=REAL, session_id="s")
    assert (back.pk, back.outcome, back.is_valid) == (participation.pk, Outcome.TIMED_OUT, False)
    assert back.completion_code.outcome == Outcome.TIMED_OUT
    assert Rating.objects.count() == 3


@pytest.mark.parametrize(("failed_checks", "outcome"), [(0, Outcome.COMPLETED), (1, Outcome.ATTENTION_FAILED)])
def test_who_leaves_at_the_optional_feedback_keeps_the_place_and_has_completed(study, failed_checks, outcome):
    participation = walks.rate_all(walks.to_main(study), failed_checks=failed_checks)
    expire_lease(participation)
    assert selectors.places_left(study, REAL) == study.place_count - 1
    close_timed_out(participation.pk, timezone.now() + timedelta(seconds=1))
    participation.refresh_from_db()
    assert (participation.outcome, participation.is_valid) == (outcome, outcome == Outcome.COMPLETED)


def test_who_was_seen_meanwhile_does_not_time_out(study):
    participation = walks.to_main(study)
    close_timed_out(participation.pk, timezone.now() - timedelta(hours=24))
    participation.refresh_from_db()
    assert participation.step == Step.MAIN
