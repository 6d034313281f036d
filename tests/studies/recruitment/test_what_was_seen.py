"""Whoever says yes to money says it to what the page showed: where that has changed since, nothing happens."""

import pytest
from django.urls import reverse
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import PanelStudy, Submission
from studies.selectors.payments import due_now
from studies.services import recruitment_sync
from tests.studies.admin_pages import text_of
from tests.studies.pay.people import completed, session
from tests.studies.recruitment.pages import ask_and_do, do, seen_on

pytestmark = pytest.mark.django_db


def test_what_costs_something_else_by_now_is_refused(client, spender, panel_study, fake):
    """Each was asked about; then somebody changed the numbers, and yes was the answer to the old ones."""
    for name in ("create", "estimate"):
        client.post(do(panel_study, name))
    page = client.get(do(panel_study, "publish"))
    assert "Places 4 Reward of each GBP 1.65 Screen-out slots 2 With fees and VAT, by Prolific GBP 10.04" in text_of(
        page
    )
    changes = [{"places": 5}, {"reward_minor": 166}, {"screen_out_slots": 3}, {"estimated_cost_minor": 1005}]
    for change in [*changes, {"filters_in_words": ["Everybody who speaks English"]}]:
        before = PanelStudy.objects.values(*change).get()
        PanelStudy.objects.update(**change)
        said = client.post(do(panel_study, "publish"), {"seen": seen_on(page)}, follow=True)
        assert "What it costs has changed" in text_of(said), change
        PanelStudy.objects.update(**before)
    assert "has changed" in text_of(client.post(do(panel_study, "publish"), follow=True))
    [there] = fake.world.studies.values()
    assert there["status"] == "UNPUBLISHED"
    ask_and_do(client, panel_study, "publish")
    assert there["status"] == "ACTIVE"
    seen = seen_on(client.get(do(panel_study, "places"), {"number": "9"}))
    said = client.post(do(panel_study, "places"), {"number": "10", "seen": seen}, follow=True)
    assert "What it costs has changed" in text_of(said)
    assert there["total_available_places"] == 4


def test_before_money_is_spent_prolific_is_asked_how_the_study_stands(client, spender, published, fake):
    """Since the last poll somebody has paused it and raised the places on Prolific's own pages."""
    there = fake.world.studies[published.panel_id]
    there["status"], there["total_available_places"] = "PAUSED", 7
    page = client.get(do(published, "resume"))
    assert "Places still free 7 Rewards for them GBP 11.55" in text_of(page)
    there["total_available_places"] = 8
    client.post(do(published, "read"))
    said = text_of(client.post(do(published, "resume"), {"seen": seen_on(page)}, follow=True))
    assert "What it costs has changed since you were asked" in said
    assert there["status"] == "PAUSED"
    assert "Prolific lets people in again." in text_of(ask_and_do(client, published, "resume"))
    fake.fail(Fault.SERVER_ERROR)
    assert "Prolific: Internal error" in text_of(client.get(do(published, "places"), {"number": "9"}, follow=True))


def read(published, prolific, person) -> None:
    """With the bonuses, which lists do not have."""
    recruitment_sync.apply(published, prolific.submission(session(person)), timezone.now())


def test_what_was_decided_on_a_page_of_before_is_refused(client, researcher, published, fake, prolific):
    """The page says: timed out, nothing paid. Somebody then pays by hand, and the same button would pay once more."""
    person = completed(fake, published)
    there = fake.world.submissions[session(person)]
    there["status"] = "TIMED-OUT"
    read(published, prolific, person)
    submission = Submission.objects.get()
    settle = reverse("admin:studies_submission_settle", args=[submission.pk])
    page = client.get(reverse("admin:studies_submission_change", args=[submission.pk]))
    assert "Timed out there, finished here" in text_of(page)
    there["bonuses"].append({"amount_minor": 165, "hidden_reads": 0})
    read(published, prolific, person)
    sent = {"offer": "bonus", "seen": seen_on(page)}
    answer = client.post(settle, sent, follow=True)
    assert "changed meanwhile" in text_of(answer)
    assert "A bonus is due, and one was paid by hand" in text_of(answer)
    # The reason stays the same with a second bonus, and what was seen does not.
    there["bonuses"].append({"amount_minor": 20, "hidden_reads": 0})
    read(published, prolific, person)
    assert "changed meanwhile" in text_of(client.post(settle, {**sent, "seen": seen_on(answer)}, follow=True))
    submission.refresh_from_db()
    assert (submission.settled_with, submission.review_reason) == ("", "bonus_by_hand")
    assert due_now(published) == []
