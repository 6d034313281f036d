"""What people decide about submissions, and events that cannot be worked through: nothing is done twice or for ever."""

from datetime import timedelta

import pytest
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies import tasks
from studies.models import Submission, WebhookEvent
from studies.recruitment.errors import Ambiguous
from studies.recruitment.review import Offer, Reason
from studies.services import recruitment_sync
from studies.services.recruitment import RecruitmentError
from tests.studies.recruitment.deciding import decide
from tests.studies.recruitment.test_sync import arrive, poll, submission_of, to_main


@pytest.fixture
def waiting(published, fake) -> Submission:
    """Submitted without ever having been here."""
    fake.submit(fake.arrive(published.panel_id)["id"], None)
    poll(published)
    return Submission.objects.get()


def test_the_first_of_two_decisions_stands(waiting, fake):
    later = Submission.objects.get()
    decide(waiting, Offer.NOTHING, "ada")
    for offer in (Offer.REQUEST_RETURN, Offer.APPROVE):
        with pytest.raises(RecruitmentError, match="changed meanwhile"):
            decide(later, offer, "bob")
    stored = Submission.objects.get()
    assert (stored.settled_with, stored.settled_by) == (Offer.NOTHING, "ada")
    assert fake.world.messages == []


def test_a_request_that_was_not_sent_leaves_the_decision_open(waiting, fake):
    fake.fail(Fault.LOST_BEFORE_ACTING, "request-return", times=1)
    with pytest.raises(Ambiguous):
        decide(waiting, Offer.REQUEST_RETURN, "ada")
    stored = Submission.objects.get()
    assert (stored.review_reason, stored.settled_with, stored.settled_at) == (Reason.NEVER_ARRIVED, "", None)
    decide(stored, Offer.REQUEST_RETURN, "ada")
    assert len(fake.world.messages) == 1


def test_a_request_whose_answer_was_lost_is_not_sent_again(waiting, fake):
    fake.fail(Fault.LOST_AFTER_ACTING, "request-return", times=1)
    decide(waiting, Offer.REQUEST_RETURN, "ada")
    assert len(fake.world.messages) == 1
    assert Submission.objects.get().settled_with == Offer.REQUEST_RETURN


def test_who_was_rejected_there_has_not_timed_out(published, fake):
    participation = arrive(fake, published)
    to_main(participation)
    fake.world.submissions[participation.identity.session_id]["status"] = "REJECTED"
    poll(published)
    assert submission_of(participation).review_reason == ""
    names = set(participation.events.values_list("name", flat=True))
    assert "rejected_on_the_panel" in names
    assert "timed_out_on_the_panel" not in names


# --- Events ---------------------------------------------------------------------------------------------------


def event(panel_study, resource_id, minutes) -> WebhookEvent:
    made = WebhookEvent.objects.create(
        workspace=panel_study.workspace,
        event_id=resource_id,
        event_type="submission.status.change",
        resource_id=resource_id,
    )
    WebhookEvent.objects.filter(pk=made.pk).update(received_at=timezone.now() - timedelta(minutes=minutes))
    return made


def test_an_event_that_fails_keeps_back_no_other_and_has_an_end(published, fake, monkeypatch):
    one = fake.arrive(published.panel_id)["id"]
    bad, good = event(published, "bad", 5), event(published, one, 4)
    read = recruitment_sync._read_again

    def read_or_fail(client, about, asked_at):
        if about.resource_id == "bad":
            raise ZeroDivisionError
        return read(client, about, asked_at)

    monkeypatch.setattr(recruitment_sync, "_read_again", read_or_fail)
    tasks.process_waiting_webhook_events.delay()
    bad.refresh_from_db()
    good.refresh_from_db()
    assert (bad.processed_at, good.result) == (None, "Read: Active")
    WebhookEvent.objects.filter(pk=bad.pk).update(received_at=timezone.now() - timedelta(hours=25))
    tasks.process_waiting_webhook_events.delay()
    bad.refresh_from_db()
    assert bad.result == "Given up: the poll reads what it is about."
