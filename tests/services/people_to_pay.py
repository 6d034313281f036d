"""A study on the stand-in, and people of it who are to be paid, made beside the workers that will pay them."""

from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth.models import User

from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID
from studies.models import Panel, PanelStudy, Study, StudyStatus, Workspace
from studies.services import recruitment
from studies.tasks import execute_payment_run
from tests import factories
from tests.studies.pay.people import completed, confirmed_run, failed_comprehension, returned_screen_out
from tests.studies.recruitment.conftest import LANDING


class Stand:
    """What the tests' people need of the stand-in, over its control addresses."""

    def _post(self, what: str, **body: Any) -> Any:
        return httpx.post(f"{settings.PROLIFIC_API_URL}/fake/{what}", json=body).raise_for_status().json()

    def arrive(self, study_id: str) -> Any:
        return self._post("arrive", study_id=study_id)

    def submit(self, submission_id: str, code: str) -> Any:
        return self._post("submit", submission_id=submission_id, code=code)

    def give_back(self, submission_id: str) -> Any:
        return self._post("return", submission_id=submission_id)


def confirm_a_run(times_enqueued: int) -> None:
    """Six to approve, four bonuses, two to ask for a return; confirmed, and given to the workers so many times."""
    workspace = Workspace(name="Laboratory", workspace_id=WORKSPACE_ID)
    workspace.token = TOKEN
    workspace.save()
    study = factories.study(panel=Panel.PROLIFIC, participants_per_dataset=50)
    Study.objects.filter(pk=study.pk).update(status=StudyStatus.RUNNING)
    study.refresh_from_db()
    panel_study = PanelStudy.objects.create(study=study, workspace=workspace, **recruitment.suggested(study))
    recruitment.create_draft(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    recruitment.publish(panel_study, LANDING)
    stand = Stand()
    for count, comes in ((6, completed), (4, returned_screen_out), (2, failed_comprehension)):
        for _ in range(count):
            comes(stand, panel_study)
    run = confirmed_run(panel_study, User.objects.create_user("payer"))
    for _ in range(times_enqueued):
        execute_payment_run.delay(run.pk)
