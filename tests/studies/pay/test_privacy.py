"""The panel's ids of a person, and their IP address, are found where they must be and nowhere else."""

import logging
import sys

import pytest
from django.apps import apps
from django.db import models
from django.urls import reverse

from studies import selectors
from studies.flow import Outcome
from studies.models import Participation
from studies.selectors import exports
from studies.services import payment_execution, recruitment_sync
from tests import walks
from tests.studies.pay.people import completed, confirmed_run, returned_screen_out, session
from tests.studies.visitor import Visitor

pytestmark = pytest.mark.django_db

PID, SESSION, ADDRESS = "ab" * 12, "cd" * 12, "203.0.113.77"
RESTRICTED = {"studies.participantidentity", "studies.submission", "studies.webhookevent"}


def tables_with(*texts: str) -> set[str]:
    """Every model with one of these texts in any column of any row."""
    found = set()
    for model in apps.get_models():
        columns = [field.attname for field in model._meta.concrete_fields if not isinstance(field, models.FileField)]
        for values in model.objects.values_list(*columns) if hasattr(model, "objects") else []:
            if any(text in str(value) for text in texts for value in values):
                found.add(model._meta.label_lower)
    return found


def test_who_comes_from_the_panel_leaves_ids_in_one_table_and_no_address(prolific_study, caplog):
    caplog.set_level(logging.DEBUG)
    visitor = Visitor(prolific_study)
    visitor.client.defaults["REMOTE_ADDR"] = ADDRESS
    response = visitor.land(PROLIFIC_PID=PID, STUDY_ID="ef" * 12, SESSION_ID=SESSION)
    assert response.status_code == 302
    participation = walks.answer_plates(walks.consent(visitor.participation), wrong=1)
    assert participation.outcome == Outcome.COLOUR_CHECK_FAILED
    page = visitor.page()
    for address in (response["Location"], *(one for one, _ in getattr(page, "redirect_chain", []))):
        assert PID not in address
        assert SESSION not in address
    assert PID not in page.content.decode()
    assert SESSION not in page.content.decode()
    assert tables_with(PID, SESSION) == {"studies.participantidentity"}
    assert tables_with(ADDRESS) == set()
    assert PID not in caplog.text
    assert SESSION not in caplog.text
    assert ADDRESS not in caplog.text


def test_a_fault_on_arrival_is_reported_without_ids(prolific_study, caplog, monkeypatch):
    def break_down(*args, **kwargs):
        raise RuntimeError("Something broke.")

    # By its name in sys.modules: the package has a function of that name.
    monkeypatch.setattr(sys.modules["studies.views.landing"], "enter_study", break_down)
    visitor = Visitor(prolific_study)
    visitor.client.raise_request_exception = False
    response = visitor.land(PROLIFIC_PID=PID, STUDY_ID="ef" * 12, SESSION_ID=SESSION)
    assert response.status_code == 500
    assert "Something broke." in caplog.text
    for text in (caplog.text, response.content.decode()):
        assert PID not in text
        assert SESSION not in text


def test_paying_leaves_ids_in_restricted_tables_and_no_log(fake, published, payer, caplog):
    caplog.set_level(logging.DEBUG)
    people = [completed(fake, published), returned_screen_out(fake, published)]
    payment_execution.execute(confirmed_run(published, payer).pk)
    recruitment_sync.read_panel_study(published.pk)
    ids = [text for one in people for text in (session(one), one.identity.participant_id)]
    assert tables_with(*ids) <= RESTRICTED
    # The stand-in's own rows have an IP address, as Prolific's have.
    assert tables_with("192.0.2.7") == set()
    assert not [text for text in ids if text in caplog.text]


def test_public_ids_differ_and_are_all_that_exports_have(fake, published):
    people = [completed(fake, published), completed(fake, published)]
    study = published.study
    assert len({one.public_id for one in people}) == 2
    written = str(list(exports.participant_rows(study, panel_ids=False))) + str(list(exports.rating_rows(study)))
    assert str(people[0].public_id) in written
    for one in people:
        assert session(one) not in written
        assert one.identity.participant_id not in written
    assert selectors.countable_participations(study).count() == Participation.objects.count()


def test_file_names_hold_no_ids(client, researcher, published, fake):
    person = completed(fake, published)
    for name, parts in (("ratings_file", ["csv"]), ("participants_file", [])):
        address = reverse(f"admin:studies_study_{name}", args=[published.study_id, *parts])
        assert session(person) not in client.get(address)["Content-Disposition"]
