"""Fixtures of the tests of studies."""

import pytest

from studies.models import Panel, Study
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
