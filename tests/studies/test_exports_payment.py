"""Payment files: one per outcome, exact amounts, real people only, in the form the panel takes."""

import csv
import io
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry

from studies.admin import exports as export_pages
from studies.admin.exports import payment_lines
from studies.flow import Outcome
from studies.models import Panel, PanelStudy, ParticipationKind, Workspace
from studies.services.participations import decline_consent, give_feedback
from tests import factories, walks
from tests.studies.admin_pages import text_of
from tests.studies.test_exports import address, download, may_see_panel_ids

pytestmark = pytest.mark.django_db


def ids(number):
    return {"participant_id": f"{number:024x}", "session_id": f"{number + 100:024x}"}


@pytest.fixture
def study():
    """Two who completed, one each who failed attention and colour, one who declined, one test run."""
    study = factories.running_study(panel=Panel.PROLIFIC, participants_per_dataset=5)
    walks.complete(study, **ids(1))
    walks.complete(study, **ids(2))
    walks.complete(study, failed_checks=1, **ids(3))
    walks.answer_plates(walks.consent(walks.enter(study, **ids(4))), wrong=3)
    decline_consent(walks.enter(study, **ids(5)).pk)
    walks.complete(study, ParticipationKind.TEST, **ids(6))
    return study


def test_amounts_are_exact_and_files_as_prolific_takes_them(client, researcher, study):
    may_see_panel_ids(client, researcher)
    lines = {line.outcome: (line.people, line.amount, line.total) for line in payment_lines(study)}
    assert lines == {
        Outcome.COMPLETED: (2, Decimal("1.65"), Decimal("3.30")),
        Outcome.ATTENTION_FAILED: (1, Decimal("1.65"), Decimal("1.65")),
        Outcome.COMPREHENSION_FAILED: (0, Decimal("0.32"), Decimal(0)),
        Outcome.COLOUR_CHECK_FAILED: (1, Decimal("0.13"), Decimal("0.13")),
    }
    approve = download(client, address(study, "payment_file", "completed", "approve"))
    assert approve == f"{101:024x}\n{102:024x}\n"
    bonus = download(client, address(study, "payment_file", "colour_check_failed", "bonus"))
    assert bonus == f"{104:024x},0.13\n"
    assert LogEntry.objects.filter(change_message__contains="payment file").count() == 2

    page = text_of(client.get(address(study, "exports")))
    assert "Completed 2 GBP 1.65 GBP 3.30 Payment list , Ids to approve" in page
    assert "Failed the comprehension check 0 GBP 0.32 GBP 0.00 –" in page


def test_what_payment_runs_pay_has_no_file_to_pay_it_with(client, researcher, study):
    may_see_panel_ids(client, researcher)
    workspace = Workspace.objects.create(name="Lab", workspace_id="a" * 24, token="secret")
    PanelStudy.objects.create(
        study=study, workspace=workspace, name="A", description="B", places=5, minutes=5, reward_minor=165
    )
    assert {label for line in payment_lines(study) for label, _ in line.files} == {"Payment list"}
    for outcome, use in (("completed", "approve"), ("colour_check_failed", "bonus")):
        assert client.get(address(study, "payment_file", outcome, use)).status_code == 404
    assert "This study is paid on the page Payments" in text_of(client.get(address(study, "exports")))


def test_the_list_names_ids_code_and_amount(client, researcher, study):
    may_see_panel_ids(client, researcher)
    text = download(client, address(study, "payment_file", "attention_failed", "list"))
    (row,) = csv.DictReader(io.StringIO(text))
    code = study.completion_codes.get(outcome="attention_failed").code
    assert row["panel_participant_id"] == f"{3:024x}"
    assert (row["code"], row["amount"], row["currency"]) == (code, "1.65", "GBP")


def test_no_payment_file_without_the_permission_for_panel_ids(client, researcher, study):
    for use in ("list", "approve"):
        assert client.get(address(study, "payment_file", "completed", use)).status_code == 403
    assert "Payments" not in text_of(client.get(address(study, "exports")))


@pytest.mark.parametrize(
    "parts",
    [("declined", "list"), ("completed", "bonus"), ("colour_check_failed", "approve"), ("gone", "list")],
)
def test_what_is_not_paid_so_has_no_such_file(client, researcher, study, parts):
    may_see_panel_ids(client, researcher)
    assert client.get(address(study, "payment_file", *parts)).status_code == 404


def test_more_than_one_call_takes_comes_in_parts(client, researcher, study, monkeypatch):
    monkeypatch.setattr(export_pages, "IDS_PER_APPROVAL", 1)
    may_see_panel_ids(client, researcher)
    file = address(study, "payment_file", "completed", "approve")
    assert [download(client, file, part=part) for part in ("1", "2", "3")] == [f"{101:024x}\n", f"{102:024x}\n", ""]
    (completed,) = [line for line in payment_lines(study) if line.outcome == Outcome.COMPLETED]
    assert [label for label, _ in completed.files] == [
        "Payment list",
        "Ids to approve, part 1",
        "Ids to approve, part 2",
    ]
    for part in ("0", "x", "-1"):
        assert client.get(file, {"part": part}).status_code == 404


def test_who_ends_later_is_in_no_part_that_was_downloaded_before(client, researcher, study, monkeypatch):
    """Whoever came first and is still there ends last, and must not push others into the next part."""
    monkeypatch.setattr(export_pages, "IDS_PER_APPROVAL", 1)
    may_see_panel_ids(client, researcher)
    early, late = (walks.to_main(study, participant_id=f"{n:024x}", session_id=f"{n:024x}") for n in (201, 202))
    complete(late)
    file = address(study, "payment_file", "completed", "approve")
    parts = ("1", "2", "3")
    before = [download(client, file, part=part) for part in parts]
    assert before == [f"{101:024x}\n", f"{102:024x}\n", f"{202:024x}\n"]
    complete(early)
    assert [download(client, file, part=part) for part in (*parts, "4")] == [*before, f"{201:024x}\n"]


def complete(participation):
    give_feedback(walks.rate_all(participation).pk, {})


def test_a_direct_study_has_lists_only(client, researcher):
    study = factories.running_study()
    walks.complete(study, participant_id="anna", session_id="s1")
    may_see_panel_ids(client, researcher)
    assert client.get(address(study, "payment_file", "completed", "approve")).status_code == 404
    assert "anna,s1," in download(client, address(study, "payment_file", "completed", "list"))
