"""A preview shows everything, counts nowhere and leaves nothing behind."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationKind
from studies.services import previews
from studies.services.participations import InvalidAnswer, StudyNotOpen, give_feedback
from tests import factories, walks

pytestmark = pytest.mark.django_db


def row_counts():
    return {model._meta.label: model.objects.count() for model in apps.get_app_config("studies").get_models()}


def test_a_complete_preview_leaves_no_row():
    study = factories.ready_study()
    before = row_counts()
    preview = previews.start_preview(study)
    assert (preview.kind, preview.step) == (ParticipationKind.PREVIEW, Step.CONSENT)
    preview = walks.rate_all(walks.answer_pairs(walks.answer_plates(walks.consent(preview))))
    assert give_feedback(preview.pk, {"comment": "x"}).outcome == Outcome.COMPLETED
    assert selectors.monitor(study).by_outcome[Outcome.COMPLETED] == 0
    previews.delete_preview(preview.pk)
    previews.delete_preview(preview.pk)
    assert row_counts() == before


def test_no_preview_before_the_materials_are_built():
    with pytest.raises(StudyNotOpen):
        previews.start_preview(factories.study())


def test_a_preview_may_begin_in_a_full_study():
    study = factories.running_study()
    for _ in range(study.place_count):
        walks.consent(walks.enter(study))
    assert walks.consent(previews.start_preview(study)).step == Step.COLOUR_CHECK


@pytest.mark.parametrize("start", list(Step))
@pytest.mark.parametrize("target", list(Step))
def test_jumping_from_any_step_to_any_other(start, target):
    study = factories.ready_study()
    preview = previews.start_preview(study)
    previews.jump_preview(preview.pk, start)
    preview = previews.jump_preview(preview.pk, target)
    preview.refresh_from_db()
    assert preview.step == target
    assert (preview.outcome == Outcome.COMPLETED) == (target == Step.END)
    if target == Step.COLOUR_CHECK:
        preview = walks.answer_plates(preview)
        assert preview.step == Step.INSTRUCTIONS
    if target == Step.COMPREHENSION:
        assert selectors.current_pair(preview).position == 1
    if target == Step.MAIN:
        assert walks.rate_all(preview).step == Step.FEEDBACK


def test_jumping_forgets_what_was_answered():
    study = factories.ready_study()
    preview = previews.jump_preview(previews.start_preview(study).pk, Step.MAIN)
    walks.rate(preview)
    preview = previews.jump_preview(preview.pk, Step.MAIN)
    assert selectors.progress(preview) == selectors.Progress(done=0, total=study.trial_count)


def test_a_step_that_the_study_lacks_cannot_be_jumped_to():
    study = factories.ready_study(
        plate_count=0, plates_required=0, comprehension_pair_count=0, comprehension_required=0
    )
    preview = previews.start_preview(study)
    for step in (Step.COLOUR_CHECK, Step.COMPREHENSION):
        with pytest.raises(InvalidAnswer, match="has no"):
            previews.jump_preview(preview.pk, step)


def test_only_previews_can_be_moved_or_deleted():
    participation = walks.enter(factories.running_study())
    with pytest.raises(InvalidAnswer, match="Only a preview"):
        previews.jump_preview(participation.pk, Step.END)
    previews.delete_preview(participation.pk)
    participation.refresh_from_db()
    assert participation.step == Step.CONSENT


def test_forgotten_previews_are_deleted_and_nothing_else():
    study = factories.running_study()
    stale, fresh, real = previews.start_preview(study), previews.start_preview(study), walks.enter(study)
    Participation.objects.exclude(pk=fresh.pk).update(last_seen_at=timezone.now() - timedelta(hours=3))
    assert previews.delete_stale_previews() == 1
    assert previews.delete_stale_previews() == 0
    assert set(Participation.objects.values_list("pk", flat=True)) == {fresh.pk, real.pk}
    assert stale.pk not in {fresh.pk, real.pk}
