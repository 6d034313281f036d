"""Queries whose SQL is written once give what the ORM's own give, with any arguments and in any thread."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scooter_site.common.prepared import PreparedQuery
from studies.models import Participation, Study, Trial
from tests import factories, walks
from tests.concurrency.threads import at_once

COLUMNS = ("id", "token", "first_shown_at", "parameters", "participation__public_id", "image__linf", "position")


def trials(public_id, slug, position):
    found = Trial.objects.filter(participation__public_id=public_id, participation__study__slug=slug)
    return found.filter(position__lte=position, position__gte=1).order_by("position").values_list(*COLUMNS)[:3]


@pytest.fixture
def prepared():
    return PreparedQuery(trials, uuid.UUID(int=7), "a slug", 2**40)


@pytest.mark.django_db
def test_it_gives_what_the_query_gives(prepared):
    people = [walks.to_main(factories.running_study()) for _ in range(2)]
    Trial.objects.filter(position=2).update(parameters={"exposure_ms": 100})
    for person in people:
        for position in (0, 1, 2, 10):
            arguments = (person.public_id, person.study.slug, position)
            assert [tuple(row) for row in prepared.rows(*arguments)] == list(trials(*arguments))
    assert prepared.rows(people[0].public_id, people[1].study.slug, 10) == []
    with CaptureQueriesContext(connection) as captured:
        prepared.rows(people[0].public_id, people[0].study.slug, 10)
    assert len(captured) == 1


@pytest.mark.django_db(transaction=True)
def test_it_may_be_used_by_many_threads(prepared):
    person = walks.consent(walks.enter(factories.running_study()))
    arguments = (person.public_id, person.study.slug, 10)
    expected = list(trials(*arguments))
    assert len(expected) == 3
    results = at_once([lambda: [tuple(row) for row in prepared.rows(*arguments)]] * 10)
    assert results == [expected] * 10


@pytest.mark.django_db
def test_it_says_which_columns_belong_to_which_model():
    prepared = PreparedQuery(
        lambda pk: Participation.objects.select_related("study").only("step", "study__slug").filter(pk=pk), 2**40
    )
    assert prepared.columns_of(Participation) == ["id", "study_id", "step"]
    assert prepared.columns_of(Study) == ["id", "slug"]
