"""Fixtures of the tests of studies."""

import pytest
from django.contrib.auth.models import Group

from scooter_site.common.groups import RESEARCHERS
from studies.models import Panel, Study
from studies.signals import valid_ratings_changed
from tests import factories
from tests.studies.admin_pages import account
from tests.studies.visitor import Visitor


@pytest.fixture
def study() -> Study:
    return factories.running_study()


@pytest.fixture
def prolific_study() -> Study:
    return factories.running_study(panel=Panel.PROLIFIC)


@pytest.fixture
def visitor(study: Study) -> Visitor:
    return Visitor(study)


@pytest.fixture
def heard():
    """What ``valid_ratings_changed`` said."""
    calls = []

    def hear(sender, **kwargs):
        calls.append((kwargs["attack_id"], kwargs["target_model_id"]))

    valid_ratings_changed.connect(hear)
    yield calls
    valid_ratings_changed.disconnect(hear)


@pytest.fixture
def researcher(client):
    user = account(name="researcher")
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    client.force_login(user)
    return user


@pytest.fixture
def viewer(client):
    user = account("studies.view_study", "studies.view_participation", name="viewer")
    client.force_login(user)
    return user
