"""A published study and the stand-in; people end by a row, as how they came there is tested elsewhere."""

import pytest
from django.contrib.auth.models import User

from studies.models import Panel, PanelStudy, Study, StudyStatus
from studies.services import recruitment
from tests import factories
from tests.studies.recruitment.conftest import LANDING, fake, workspace

__all__ = ["fake", "workspace"]


@pytest.fixture
def published(workspace) -> PanelStudy:
    """On Prolific, with many places. It has no images: nobody rates any in these tests."""
    study = factories.study(panel=Panel.PROLIFIC, participants_per_dataset=50)
    Study.objects.filter(pk=study.pk).update(status=StudyStatus.RUNNING)
    study.refresh_from_db()
    fields = {**recruitment.suggested(study), "screen_out_slots": 20, "most_at_once": 100}
    panel_study = PanelStudy.objects.create(study=study, workspace=workspace, **fields)
    recruitment.create_draft(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    return recruitment.publish(panel_study, LANDING)


@pytest.fixture
def payer(db) -> User:
    return User.objects.create_user("payer", is_staff=True)
