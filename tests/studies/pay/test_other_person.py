"""A link that names another person than Prolific does: nobody is paid for it before a person says so."""

import pytest

from scooter_site.demo.fake_prolific import submissions
from studies.models import ParticipantIdentity, Participation, PaymentState, Submission
from studies.recruitment.review import Offer
from studies.selectors.payments import due_now
from studies.services import recruitment_sync
from studies.services.payment_execution import execute
from tests.studies.pay.people import completed, confirmed_run, paid_by_submission, returned_screen_out, session
from tests.studies.recruitment.deciding import decide

pytestmark = pytest.mark.django_db

SOMEBODY_ELSE = "e" * 24


def came_as_somebody_else(person: Participation) -> Participation:
    """The link is in the participant's hands, who may write another id in it."""
    ParticipantIdentity.objects.filter(participation=person).update(participant_id=SOMEBODY_ELSE)
    return person


def read(published) -> Submission:
    recruitment_sync.read_panel_study(published.pk)
    return Submission.objects.get()


def test_who_completed_as_somebody_else_is_paid_when_a_person_says_so(fake, published, payer):
    person = came_as_somebody_else(completed(fake, published))
    submission = read(published)
    assert submission.review_reason == "other_person"
    assert due_now(published) == []
    decide(submission, Offer.APPROVE, "payer")
    execute(confirmed_run(published, payer).pk)
    assert paid_by_submission(fake) == {session(person): [165]}
    assert read(published).review_reason == ""


def test_it_is_noticed_after_the_run_was_confirmed_too(fake, published, payer):
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    fake.world.submissions[session(person)]["participant"] = SOMEBODY_ELSE
    execute(run.pk)
    assert paid_by_submission(fake) == {}
    assert run.payments.get().state == PaymentState.FAILED
    assert read(published).review_reason == "other_person"


def test_a_decision_about_the_return_is_none_about_the_bonus(fake, published, payer):
    """Asked to return because of it, and returned: whether the time is paid is still a person's to say."""
    person = came_as_somebody_else(completed(fake, published))
    decide(read(published), Offer.REQUEST_RETURN, "payer")
    assert read(published).review_reason == ""
    fake.give_back(session(person))
    assert read(published).review_reason == "other_person"
    assert due_now(published) == []
    decide(Submission.objects.get(), Offer.NOTHING, "payer")
    assert (read(published).review_reason, due_now(published)) == ("", [])


def test_who_failed_a_check_as_somebody_else_gets_the_bonus_a_person_allows(fake, published, payer):
    person = came_as_somebody_else(returned_screen_out(fake, published))
    submission = read(published)
    assert (submission.review_reason, due_now(published)) == ("other_person", [])
    decide(submission, Offer.BONUS, "payer")
    execute(confirmed_run(published, payer).pk)
    assert paid_by_submission(fake) == {session(person): [13]}
    assert read(published).review_reason == ""


def test_who_was_approved_there_as_somebody_else_is_noted(fake, published):
    person = came_as_somebody_else(completed(fake, published))
    with fake.world.lock:
        submissions.transition(fake.world, session(person), {"action": "APPROVE"})
    submission = read(published)
    assert submission.review_reason == "other_person"
    decide(submission, Offer.NOTHING, "payer")
    assert read(published).review_reason == ""
