"""Background work of studies. Each task may run twice."""

from datetime import timedelta

from django.utils import timezone

from scooter_site.common.tasks import enqueue, task
from studies.selectors import studies_with_lost_build
from studies.selectors.payments import runs_to_work_on
from studies.selectors.recruitment import studies_to_read
from studies.services import materials, payment_execution, previews, recruitment_sync, time_out

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


# --- Recruitment ----------------------------------------------------------------------------------------------

# A task is enqueued with its event; what is still there after this was lost with the broker, or met a service away.
EVENT_WAITS = timedelta(minutes=2)
# Money and decisions may still change a finished study, but slowly.
READ_FINISHED_EVERY = timedelta(hours=12)


@task
def process_webhook_event(event_id: int) -> None:
    recruitment_sync.process_event(event_id)


@task
def process_waiting_webhook_events() -> None:
    recruitment_sync.process_waiting_events(timezone.now() - EVENT_WAITS)
    recruitment_sync.give_up_events(timezone.now() - recruitment_sync.EVENTS_ARE_TRIED_FOR)
    recruitment_sync.forget_old_events(timezone.now() - recruitment_sync.EVENTS_ARE_KEPT)


@task
def read_panel_study(panel_study_id: int) -> None:
    recruitment_sync.read_panel_study(panel_study_id)


@task
def read_panel_studies() -> None:
    """The slow poll: webhooks may be lost, or never have been set up."""
    for panel_study_id in studies_to_read(timezone.now() - READ_FINISHED_EVERY).values_list("id", flat=True):
        enqueue(read_panel_study, panel_study_id)


# --- Pay ------------------------------------------------------------------------------------------------------


@task
def execute_payment_run(run_id: int) -> None:
    payment_execution.execute(run_id)


@task
def continue_payment_runs() -> None:
    """Runs whose worker was lost, that the service could not finish, or whose payments it does not show yet."""
    for run_id in runs_to_work_on().values_list("id", flat=True):
        enqueue(execute_payment_run, run_id)
