"""The stand-in for Prolific, served for each test, and what of ours belongs to it."""

import pytest
from django.contrib.auth.models import Permission

from scooter_site.demo.fake_prolific import FakeProlific
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID
from studies.models import Panel, PanelStudy, Workspace
from studies.recruitment import http
from studies.recruitment.client import ProlificClient
from studies.services import recruitment
from tests import factories

LANDING = "https://scooter.example.org/s/abc/"


@pytest.fixture
def fake():
    with FakeProlific() as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """How long the client would have waited between its tries."""
    return []


@pytest.fixture
def prolific(fake, waits):
    with ProlificClient(TOKEN, base_url=fake.url, sleep=waits.append, timeout=0.5) as client:
        yield client


@pytest.fixture
def workspace(db, fake, settings, monkeypatch) -> Workspace:
    """The stand-in's workspace, asked without waiting between tries."""
    settings.PROLIFIC_API_URL = fake.url
    monkeypatch.setattr(http, "FIRST_WAIT_SECONDS", 0)
    made = Workspace(name="Laboratory", workspace_id=WORKSPACE_ID)
    made.token = TOKEN
    made.save()
    return made


@pytest.fixture
def panel_study(workspace) -> PanelStudy:
    """A running study of ours that asks for 4 places and is not yet on Prolific."""
    study = factories.running_study(panel=Panel.PROLIFIC)
    fields = {**recruitment.suggested(study), "screen_out_slots": 2, "most_at_once": 10}
    return PanelStudy.objects.create(study=study, workspace=workspace, **fields)


@pytest.fixture
def published(panel_study) -> PanelStudy:
    recruitment.create_draft(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    return recruitment.publish(panel_study, LANDING)


@pytest.fixture
def spender(researcher):
    researcher.user_permissions.add(Permission.objects.get(codename="spend_panelstudy"))
    return researcher
