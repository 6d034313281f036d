"""Each task does its work, and does it once when it runs twice."""

from datetime import timedelta

import pytest
from django.utils import timezone

from studies import tasks
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationEvent, ParticipationKind, Study, StudyStatus
from studies.services import life, time_out
from tests import factories, walks

pytestmark = pytest.mark.django_db


def test_materials_are_built_once():
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    for _ in range(2):
        tasks.build_materials.delay(study.pk)
        study.refresh_from_db()
        assert study.status == StudyStatus.READY
        assert study.datasets.count() == 2


def test_a_request_builds_in_a_worker_once_it_is_committed(django_capture_on_commit_callbacks):
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    with django_capture_on_commit_callbacks(execute=True):
        life.request_materials(study)
        assert study.status == StudyStatus.DRAFT
        assert study.materials_requested_at is not None
    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_builds_that_were_lost_are_taken_up_again(django_capture_on_commit_callbacks):
    lost, recent, failed = (factories.study() for _ in range(3))
    factories.images_for(lost)
    factories.plate_pool()
    long_ago = timezone.now() - timedelta(minutes=11)
    Study.objects.filter(pk=lost.pk).update(materials_requested_at=long_ago)
    Study.objects.filter(pk=recent.pk).update(materials_requested_at=timezone.now())
    Study.objects.filter(pk=failed.pk).update(materials_requested_at=long_ago, materials_error="Too few images.")
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True):
            tasks.resume_lost_builds.delay()
    states = dict(Study.objects.values_list("pk", "status"))
    assert states == {lost.pk: "ready", recent.pk: "draft", failed.pk: "draft"}


def test_who_has_not_been_seen_for_a_day_times_out_once():
    study = factories.running_study()
    gone, present, done = walks.to_main(study), walks.to_main(study), walks.complete(study)
    never_consented, preview = walks.enter(study), walks.to_main(study, ParticipationKind.PREVIEW)
    seen = timezone.now() - timedelta(hours=25)
    Participation.objects.exclude(pk=present.pk).update(last_seen_at=seen)
    for _ in range(2):
        tasks.close_timed_out_participations.delay()
    outcomes = dict(Participation.objects.values_list("pk", "outcome"))
    assert outcomes == {
        gone.pk: Outcome.TIMED_OUT,
        present.pk: "",
        done.pk: Outcome.COMPLETED,
        never_consented.pk: Outcome.TIMED_OUT,
        preview.pk: "",
    }
    assert ParticipationEvent.objects.filter(participation=gone, name="ended").count() == 1
    gone.refresh_from_db()
    assert (gone.step, gone.last_seen_at) == (Step.END, seen)  # that nobody was there then is no sign of life


def test_who_was_deleted_meanwhile_keeps_nobody_else_from_timing_out(monkeypatch):
    study = factories.running_study()
    vanished, gone = walks.to_main(study), walks.to_main(study)
    Participation.objects.update(last_seen_at=timezone.now() - timedelta(hours=25))

    close = time_out.close_timed_out

    def close_after_a_build(participation_id, not_seen_since):
        Participation.objects.filter(pk=vanished.pk).delete()
        close(participation_id, not_seen_since)

    monkeypatch.setattr(time_out, "close_timed_out", close_after_a_build)
    tasks.close_timed_out_participations.delay()
    gone.refresh_from_db()
    assert gone.outcome == Outcome.TIMED_OUT


def test_stale_previews_go():
    study = factories.running_study()
    walks.to_main(study, ParticipationKind.PREVIEW)
    tasks.delete_stale_previews.delay()
    assert Participation.objects.count() == 1
    Participation.objects.update(last_seen_at=timezone.now() - timedelta(hours=3))
    for _ in range(2):
        tasks.delete_stale_previews.delay()
        assert not Participation.objects.exists()
