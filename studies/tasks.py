"""Background work of studies. Each task may run twice."""

from datetime import timedelta

from django.utils import timezone

from scooter_site.common.tasks import enqueue, task
from studies.selectors import studies_with_lost_build
from studies.services import materials, previews, time_out

# Long after any lease: somebody may come back the next morning and go on.
TIME_OUT = timedelta(hours=24)
# A build takes seconds; one that was asked for this long ago and is not done was lost with its worker or broker.
BUILD_LOST_AFTER = timedelta(minutes=10)


@task
def build_materials(study_id: int) -> None:
    materials.build_materials(study_id)


@task
def resume_lost_builds() -> None:
    for study_id in studies_with_lost_build(timezone.now() - BUILD_LOST_AFTER).values_list("id", flat=True):
        enqueue(build_materials, study_id)


@task
def delete_stale_previews() -> None:
    previews.delete_stale_previews()


@task
def close_timed_out_participations() -> None:
    """End participations that have not been seen for a day."""
    time_out.close_all_timed_out(timezone.now() - TIME_OUT)
