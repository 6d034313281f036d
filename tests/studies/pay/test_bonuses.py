"""Bonuses beside the service's own pay: whichever comes first, nobody gets both, and a person is asked."""

from datetime import timedelta

import pytest
from django.utils import timezone

from scooter_site.demo.fake_prolific import submissions
from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import Participation, Submission
from studies.recruitment.review import Offer
from studies.selectors.payments import due_now
from studies.services import recruitment_sync
from studies.services.payment_execution import execute
from tests.studies.pay.people import (
    completed,
    confirmed_run,
    paid_by_submission,
    returned_screen_out,
    say_unpaid,
    session,
)
from tests.studies.recruitment.deciding import decide

pytestmark = pytest.mark.django_db


def read(published) -> Submission:
    recruitment_sync.read_panel_study(published.pk)
    return Submission.objects.get()


def pay_what_is_due(published, payer) -> None:
    execute(confirmed_run(published, payer).pk)


def hand_in(fake, person: Participation) -> None:
    assert person.completion_code is not None
    fake.submit(session(person), person.completion_code.code)


def time_out(fake, person: Participation) -> None:
    fake.world.submissions[session(person)]["status"] = "TIMED-OUT"


def test_who_timed_out_got_a_bonus_and_then_handed_in_is_not_approved_by_itself(fake, published, payer):
    person = completed(fake, published)
    time_out(fake, person)
    decide(read(published), Offer.BONUS, "payer")
    pay_what_is_due(published, payer)
    assert paid_by_submission(fake) == {session(person): [165]}
    assert read(published).review_reason == ""
    hand_in(fake, person)
    assert read(published).review_reason == "submitted_after_bonus"
    assert due_now(published) == []
    # A person may approve all the same, and is then not asked about it.
    decide(Submission.objects.get(), Offer.APPROVE, "payer")
    pay_what_is_due(published, payer)
    assert paid_by_submission(fake) == {session(person): [165, 165]}
    assert read(published).review_reason == ""
    assert due_now(published) == []


def test_who_is_approved_by_the_service_after_a_bonus_is_noted(fake, published, payer):
    person = completed(fake, published)
    time_out(fake, person)
    decide(read(published), Offer.BONUS, "payer")
    pay_what_is_due(published, payer)
    hand_in(fake, person)
    with fake.world.lock:
        submissions.transition(fake.world, session(person), {"action": "APPROVE"})
    assert read(published).review_reason == "paid_twice"
    decide(Submission.objects.get(), Offer.NOTHING, "payer")
    assert read(published).review_reason == ""


def test_who_failed_a_check_and_timed_out_is_paid_once_by_whoever_comes_first(fake, published, payer):
    person = returned_screen_out(fake, published)
    time_out(fake, person)
    assert read(published).review_reason == "timed_out_after_end"
    assert due_now(published) == []
    decide(Submission.objects.get(), Offer.BONUS, "payer")
    pay_what_is_due(published, payer)
    assert paid_by_submission(fake) == {session(person): [13]}
    # They come with the code after all, and Prolific pays the fixed amount by itself.
    hand_in(fake, person)
    assert read(published).review_reason == "paid_twice"


def test_a_bonus_paid_by_hand_is_put_before_a_person(fake, published, payer):
    person = returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.world.submissions[session(person)]["bonuses"].append({"amount_minor": 20, "hidden_reads": 0})
    execute(run.pk)
    assert paid_by_submission(fake) == {}
    submission = read(published)
    assert submission.review_reason == "bonus_by_hand"
    decide(submission, Offer.BONUS, "payer")
    pay_what_is_due(published, payer)
    assert paid_by_submission(fake) == {session(person): [13]}
    assert read(published).review_reason == ""
    assert due_now(published) == []


@pytest.fixture
def after_an_equal_one(fake, published, payer):
    """Two people due a bonus of 13. One was paid as much by hand, and somebody who knew of it decided for a second."""
    person, other = returned_screen_out(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.world.submissions[session(person)]["bonuses"].append({"amount_minor": 13, "hidden_reads": 0})
    execute(run.pk)
    assert paid_by_submission(fake) == {session(other): [13]}
    submission = Submission.objects.get(submission_id=session(person))
    assert (submission.review_reason, submission.bonuses_minor) == ("bonus_by_hand", [13])
    decide(submission, Offer.BONUS, "payer")
    third = returned_screen_out(fake, published)
    fake.world.payments.clear()
    return [session(person), session(third)]


def test_an_equal_bonus_of_before_is_no_proof_of_ours(fake, published, payer, after_an_equal_one):
    run = confirmed_run(published, payer)
    fake.fail(Fault.SERVER_ERROR, "bulk-bonus-payments", times=1)
    for _ in range(2):
        execute(run.pk)
    assert list(run.payments.order_by("id").values_list("state", "equal_before")) == [("claimed", 1), ("claimed", 0)]
    assert paid_by_submission(fake) == {}
    run.batches.update(pay_requested_at=timezone.now() - timedelta(hours=2))
    assert say_unpaid(run) == 2
    execute(confirmed_run(published, payer).pk)
    assert paid_by_submission(fake) == {one: [13] for one in after_an_equal_one}
    assert due_now(published) == []


def test_one_more_equal_bonus_is(fake, published, payer, after_an_equal_one):
    run = confirmed_run(published, payer)
    fake.fail(Fault.SERVER_ERROR_AFTER_ACTING, "bulk-bonus-payments", times=1)
    execute(run.pk)
    assert paid_by_submission(fake) == {one: [13] for one in after_an_equal_one}
    assert set(run.payments.values_list("state", flat=True)) == {"done"}
