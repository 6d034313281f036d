"""Background work of studies. Each task may run twice."""

from datetime import timedelta

from django.utils import timezone

from scooter_site.common.tasks import enqueue, task
from studies.flow import Step
from studies.models import Participation, ParticipationKind, Study, StudyStatus
from studies.services import materials, previews
from studies.services.participations import close_timed_out

# Long after any lease: somebody may come back the next morning and go on.
TIME_OUT = timedelta(hours=24)
# A build takes seconds; one that was asked for this long ago and is not done was lost with its worker or broker.
BUILD_LOST_AFTER = timedelta(minutes=10)


@task
def build_materials(study_id: int) -> None:
    materials.build_materials(study_id)


@task
def resume_lost_builds() -> None:
    lost = Study.objects.filter(
        status=StudyStatus.DRAFT,
        materials_built_at__isnull=True,
        materials_error="",
        materials_requested_at__lt=timezone.now() - BUILD_LOST_AFTER,
    )
    for study_id in lost.values_list("id", flat=True):
        enqueue(build_materials, study_id)


@task
def delete_stale_previews() -> None:
    previews.delete_stale_previews()


@task
def close_timed_out_participations() -> None:
    """End participations that have not been seen for a day."""
    not_seen_since = timezone.now() - TIME_OUT
    unfinished = Participation.objects.exclude(step=Step.END).exclude(kind=ParticipationKind.PREVIEW)
    for participation_id in unfinished.filter(last_seen_at__lt=not_seen_since).values_list("id", flat=True):
        close_timed_out(participation_id, not_seen_since)
