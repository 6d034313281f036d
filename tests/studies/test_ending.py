"""Feedback, the end and time-outs: nothing answered is lost, and an end stays."""

from datetime import timedelta

import pytest
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import FeedbackAnswer, Participation, Rating
from studies.services.participations import (
    InvalidAnswer,
    close_timed_out,
    decline_consent,
    enter_study,
    finish_instructions,
    give_feedback,
)
from tests import walks
from tests.studies.participations import REAL, expire_lease

pytestmark = pytest.mark.django_db


def test_feedback_is_optional_and_kept_once_with_the_text_that_asked(study):
    participation = walks.rate_all(walks.to_main(study))
    give_feedback(participation.pk, {"certainty": "1", "comment": "  <b>hard</b> ", "visibility": " "})
    give_feedback(participation.pk, {"certainty": "4"})
    assert dict(FeedbackAnswer.objects.values_list("item", "answer")) == {"certainty": "1", "comment": "<b>hard</b>"}
    assert {answer.text for answer in FeedbackAnswer.objects.all()} == {selectors.study_text(study, "feedback")}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"comment": "x" * 2001}, "comment: .* shorten"),
        ({"strategy": "y"}, "strategy: .* did not ask"),
        ({"certainty": "6"}, "certainty: .* from the answers shown"),
        ({"certainty": "0"}, "certainty: .* from the answers shown"),
        ({"certainty": "Fairly"}, "certainty: .* from the answers shown"),
    ],
)
def test_feedback_that_nobody_asked_for_is_refused_and_nothing_is_lost(study, answers, words):
    participation = walks.rate_all(walks.to_main(study))
    with pytest.raises(InvalidAnswer, match=words):
        give_feedback(participation.pk, answers)
    participation.refresh_from_db()
    assert participation.step == Step.FEEDBACK
    assert not FeedbackAnswer.objects.exists()


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
    assert set(codes) == set(Outcome) - {Outcome.REPLACED, Outcome.RETURNED}
    assert len(set(codes.values())) == len(codes)


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
