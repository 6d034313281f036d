"""What people decide about submissions, and events that cannot be worked through: nothing is done twice or for ever."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies import tasks
from studies.models import PanelStudy, Submission, WebhookEvent
from studies.recruitment.errors import Ambiguous, NotAllowed, Refused, TooManyRequests, Unavailable
from studies.recruitment.payments import Way
from studies.recruitment.review import Offer, Reason
from studies.selectors.payments import due_now
from studies.services import recruitment_sync
from studies.services.recruitment import RecruitmentError
from tests.studies.recruitment.deciding import decide
from tests.studies.recruitment.test_sync import arrive, fail_colour_check, poll, submission_of, to_main


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


@pytest.mark.parametrize(("decision", "due"), [(Offer.BONUS, []), (Offer.APPROVE, [Way.APPROVE])])
def test_a_decision_is_paid_or_put_before_a_person_again(published, fake, decision, due):
    """A bonus is not offered before they return: such a decision of earlier days is neither paid nor forgotten."""
    participation = arrive(fake, published)
    fail_colour_check(participation)
    fake.submit(participation.identity.session_id, None)
    poll(published)
    Submission.objects.update(settled_reason=Reason.NO_CODE, settled_with=decision, review_reason="")
    poll(published)
    assert submission_of(participation).review_reason == ("" if due else Reason.NO_CODE)
    assert [instruction.way for _, instruction in due_now(published)] == due


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


def test_a_service_that_is_away_is_asked_once_not_for_every_event_that_waits(published, fake, monkeypatch):
    """Each would be tried for minutes, and the next turn comes in two."""
    one = fake.arrive(published.panel_id)["id"]
    waiting = [event(published, f"{number}", 30 - number) for number in range(3)] + [event(published, one, 4)]
    asked = []

    def answer(client, about, asked_at, error=None):
        asked.append(about.resource_id)
        if error:
            raise error
        return "Read."

    away = Unavailable("reading a submission", text="Prolific did not answer in time.")
    for error in (away, TooManyRequests("reading a submission"), NotAllowed("reading a submission")):
        asked.clear()
        monkeypatch.setattr(recruitment_sync, "_read_again", partial(answer, error=error))
        tasks.process_waiting_webhook_events.delay()
        assert asked == ["0"]
    # What is refused about one says nothing of the others.
    asked.clear()
    monkeypatch.setattr(recruitment_sync, "_read_again", partial(answer, error=Refused("reading a submission")))
    tasks.process_waiting_webhook_events.delay()
    assert asked == [about.resource_id for about in waiting]


def test_a_submission_that_cannot_be_taken_over_keeps_back_no_other(published, fake, monkeypatch):
    ids = [fake.arrive(published.panel_id)["id"] for _ in range(3)]
    take_over = recruitment_sync.apply

    def fail_for_the_second(panel_study, state, asked_at):
        if state.id == ids[1]:
            raise ZeroDivisionError
        return take_over(panel_study, state, asked_at)

    PanelStudy.objects.update(status="unpublished")
    monkeypatch.setattr(recruitment_sync, "apply", fail_for_the_second)
    poll(published)
    assert set(Submission.objects.values_list("submission_id", flat=True)) == {ids[0], ids[2]}
    published.refresh_from_db()
    assert published.status == "active"
    assert published.sync_error.startswith("1 of the submissions could not be taken over")
    monkeypatch.setattr(recruitment_sync, "apply", take_over)
    poll(published)
    published.refresh_from_db()
    assert (Submission.objects.count(), published.sync_error) == (3, "")
