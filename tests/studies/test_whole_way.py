"""One participant's whole way, by the services: nothing ahead of its time, and what of it is announced."""

import uuid

import pytest

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import Rating
from studies.services.participations import (
    InvalidAnswer,
    answer_pair,
    answer_plate,
    finish_instructions,
    give_feedback,
)
from tests import factories, walks
from tests.studies.participations import PREVIEW, TEST

pytestmark = pytest.mark.django_db


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


def test_steps_that_have_not_been_reached_are_refused(study):
    participation = walks.enter(study)
    for too_early in (
        lambda: answer_plate(participation.pk, uuid.uuid4(), "1"),
        lambda: finish_instructions(participation.pk),
        lambda: answer_pair(participation.pk, uuid.uuid4(), "left"),
        lambda: walks.answer(participation, uuid.uuid4(), 0),
        lambda: give_feedback(participation.pk, {}),
    ):
        with pytest.raises(InvalidAnswer):
            too_early()
    participation.refresh_from_db()
    assert participation.step == Step.CONSENT


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
