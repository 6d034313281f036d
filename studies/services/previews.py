"""Seeing a study as a participant would, without leaving anything behind."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from studies.flow import Outcome, Step, steps_of
from studies.models import Participation, ParticipationKind, Study
from studies.services.allocation import allocate_dataset, lock_study
from studies.services.answers import make_pairs
from studies.services.entering import enter_study, make_trials
from studies.services.pointer import InvalidAnswer, end_participation, locked_participation

# Previews that were not left by the button are deleted after this long.
PREVIEW_LIFE = timedelta(hours=2)


def start_preview(study: Study) -> Participation:
    """A new participation that counts nowhere, at the first step. Raises StudyNotOpen before materials are built."""
    return enter_study(study, kind=ParticipationKind.PREVIEW)


def jump_preview(participation_id: int, step: Step, outcome: Outcome = Outcome.COMPLETED) -> Participation:
    """Put a preview at the beginning of ``step``, forgetting what was answered; at the end, with this outcome.

    Raises InvalidAnswer if the study has no such step, or the participation is no preview.
    """
    study_id = Participation.objects.values_list("study_id", flat=True).get(pk=participation_id)
    with transaction.atomic():
        lock_study(study_id)  # before the participation, as everywhere
        preview = locked_participation(participation_id)
        if preview.kind != ParticipationKind.PREVIEW:
            raise InvalidAnswer("Only a preview can be moved to another step.")
        if step not in {*steps_of(preview.study.rules), Step.END}:
            raise InvalidAnswer(f"This study has no {step.label.lower()}.")
        preview.plate_trials.all().delete()
        preview.pair_trials.all().delete()
        preview.trials.all().delete()
        preview.feedback.all().delete()
        preview.step, preview.outcome, preview.finished_at, preview.is_valid = step, "", None, False
        preview.attention_failures, preview.comprehension_attempt = 0, 1
        allocate_dataset(preview)
        make_trials(preview)
        if step == Step.COMPREHENSION:
            make_pairs(preview)
        if step == Step.END:
            end_participation(preview, outcome)
        preview.save()
    return preview


def delete_preview(participation_id: int) -> None:
    """Delete a preview and everything answered in it. Nothing happens to one that is gone, or is no preview."""
    Participation.objects.filter(pk=participation_id, kind=ParticipationKind.PREVIEW).delete()


def delete_stale_previews() -> int:
    """Delete previews that nobody has used for a while; how many."""
    stale = Participation.objects.filter(kind=ParticipationKind.PREVIEW, last_seen_at__lt=timezone.now() - PREVIEW_LIFE)
    count = stale.count()
    stale.delete()
    return count
