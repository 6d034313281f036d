"""The API keeps to its own schema, whatever it is asked: every public address, with values it expects and others."""

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance

from scooter_site.wsgi import application
from tests import factories
from tests.leaderboard import rows

SCHEMA = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
SCHEMA.app = application
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


def label(operation):
    return operation.label


@pytest.fixture
def catalogue(db):
    attack, target_model = factories.attack(slug="cadv"), factories.target_model(slug="resnet-50")
    factories.modified_image(attack=attack, target_model=target_model)
    rows.entry(attack=attack, target_model=target_model)
    rows.entry(difference=None)
    # As Django's own test client does: the end of a request would close the connection that holds the test's rows.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_every_endpoint_is_tried():
    assert {operation.method for operation in OPERATIONS} >= {"get", "post", "put", "delete"}
    assert {operation.path.split("/")[3] for operation in OPERATIONS} >= {"images", "attacks", "leaderboard"}


def call_with_examples(operation, mode):
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def call(case):
        # A slug or cursor must also exist, which the schema cannot say: a 400 or 404 for one that does not is right.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    call()


@pytest.mark.parametrize("operation", OPERATIONS, ids=label)
def test_answers_what_the_schema_says(operation, catalogue):
    call_with_examples(operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if len(o.query)], ids=label)
def test_refuses_what_the_schema_does_not_allow(operation, catalogue):
    call_with_examples(operation, GenerationMode.NEGATIVE)
