"""Fixtures of the tests of studies."""

import pytest

from studies.models import Panel, Study
from studies.signals import valid_ratings_changed
from tests import factories
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
