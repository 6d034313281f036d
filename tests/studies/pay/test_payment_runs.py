"""Payment runs against the stand-in: prepared, confirmed, carried out once, whatever the service does."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from scooter_site.demo.fake_prolific import submissions
from scooter_site.demo.fake_prolific.faults import Fault
from studies import tasks
from studies.flow import Outcome
from studies.models import BonusBatch, Payment, PaymentRun, PaymentState, Submission
from studies.recruitment.payments import Way
from studies.recruitment.statuses import SubmissionStatus
from studies.selectors.payments import due_now, spent
from studies.services import payment_execution, payments, recruitment_sync
from studies.services.payment_execution import execute
from studies.services.payments import PaymentRefused
from studies.services.recruitment import RecruitmentError
from tests.studies.pay.people import (
    completed,
    confirmed_run,
    failed_comprehension,
    paid_by_submission,
    returned_screen_out,
    say_unpaid,
    session,
)

pytestmark = pytest.mark.django_db

PAY = "bulk-bonus-payments"
MESSAGE = (
    "You failed the attention checks at items 12 and 57, which said in words which end of the scale to choose there."
)


def states(run) -> dict[str, int]:
    found: dict[str, int] = {}
    for state in run.payments.values_list("state", flat=True):
        found[state] = found.get(state, 0) + 1
    return found


def bonus_calls(fake) -> int:
    return sum(PAY in request for request in fake.requests)


def long_ago(run) -> None:
    """As if the bonuses had been asked for two hours ago."""
    run.batches.update(pay_requested_at=timezone.now() - timedelta(hours=2))


def test_who_completed_is_approved_and_who_was_screened_out_gets_a_bonus(fake, published, payer):
    done, screened = completed(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    execute(run.pk)
    assert paid_by_submission(fake) == {session(done): [165], session(screened): [13]}
    run.refresh_from_db()
    assert states(run) == {"done": 2}
    assert run.finished_at is not None
    assert run.error == ""
    assert set(done.events.filter(name="payment_approve").values_list("detail", flat=True)[0].items()) == {
        ("amount_minor", 165)
    }
    assert due_now(published) == []
    assert spent(published).total_minor == 178


def test_a_run_carried_out_again_pays_nothing_more(fake, published, payer):
    completed(fake, published)
    returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    for _ in range(3):
        tasks.execute_payment_run(run.pk)
    PaymentRun.objects.update(finished_at=None)
    tasks.execute_payment_run(run.pk)
    assert sum(map(sum, paid_by_submission(fake).values())) == 178
    assert bonus_calls(fake) == 1


def test_nothing_is_paid_before_it_is_confirmed(fake, published, payer):
    completed(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    execute(run.pk)
    assert paid_by_submission(fake) == {}
    payments.withdraw(run, payer)
    execute(run.pk)
    assert paid_by_submission(fake) == {}
    assert states(run) == {"withdrawn": 1}
    assert len(due_now(published)) == 1


def test_who_did_not_pass_the_comprehension_check_is_asked_to_return_and_paid_after_it(fake, published, payer):
    person = failed_comprehension(fake, published)
    run = confirmed_run(published, payer)
    execute(run.pk)
    assert [payment.way for payment in run.payments.all()] == [Way.RETURN]
    assert len(fake.world.messages) == 1
    assert paid_by_submission(fake) == {}
    fake.give_back(session(person))
    second = confirmed_run(published, payer)
    execute(second.pk)
    assert paid_by_submission(fake) == {session(person): [32]}
    assert len(fake.world.messages) == 1


def test_fees_are_those_of_the_services_calculator(fake, published, payer):
    completed(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    # 100 places of 1.65: fees 33 %, VAT 20 % of them, so 39.6 % of 1.65 = 65.34, up to the next penny.
    assert run.fees_minor == 66


def test_a_run_that_changed_after_it_was_read_is_not_confirmed(fake, published, payer):
    completed(fake, published, failed_checks=2)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    seen = payments.fingerprint(run)
    payments.reject_instead(run.payments.get(), category="FAILED_CHECK", message=MESSAGE)
    with pytest.raises(PaymentRefused, match="changed since you opened it"):
        payments.confirm(run, payer, seen=seen)
    payments.confirm(run, payer, seen=payments.fingerprint(run))
    with pytest.raises(PaymentRefused, match="confirmed already"):
        payments.confirm(run, payer, seen=payments.fingerprint(run))


def test_one_run_at_a_time_waits_for_confirmation(fake, published, payer):
    completed(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    payments.prepare(published, payer)
    with pytest.raises(PaymentRefused, match="Nothing is due"):
        payments.prepare(published, payer)
    completed(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    with pytest.raises(PaymentRefused, match="waits for confirmation"):
        payments.prepare(published, payer)
    assert PaymentRun.objects.count() == 1


# --- The service in trouble -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.LOST_AFTER_ACTING, Fault.SERVER_ERROR_AFTER_ACTING])
def test_who_was_asked_to_return_is_not_asked_again_for_want_of_an_answer(fake, published, payer, fault):
    failed_comprehension(fake, published)
    run = confirmed_run(published, payer)
    fake.fail(fault, "request-return", times=1)
    execute(run.pk)
    assert states(run) == {"done": 1}
    assert len(fake.world.messages) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE_ACTING, Fault.SERVER_ERROR])
def test_who_was_not_asked_to_return_is_asked_a_little_later(fake, published, payer, fault):
    """The place there stays taken by somebody who waits, and nothing else would ever free it."""
    failed_comprehension(fake, published)
    run = confirmed_run(published, payer)
    fake.fail(fault, "request-return", times=1)
    for _ in range(2):
        execute(run.pk)
        assert states(run) == {"claimed": 1}
        assert fake.world.messages == []
    run.payments.update(claimed_at=timezone.now() - timedelta(minutes=6))
    execute(run.pk)
    execute(run.pk)
    assert states(run) == {"done": 1}
    assert len(fake.world.messages) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_AFTER_ACTING, Fault.SERVER_ERROR_AFTER_ACTING])
def test_a_bonus_whose_answer_was_lost_is_found_and_not_paid_again(fake, published, payer, fault):
    person = returned_screen_out(fake, published)
    fake.settings.bonus_lag_reads = 0
    run = confirmed_run(published, payer)
    fake.fail(fault, PAY, times=1)
    execute(run.pk)
    assert paid_by_submission(fake) == {session(person): [13]}
    assert states(run) == {"done": 1}
    assert bonus_calls(fake) == 1


def test_a_bonus_that_shows_late_is_waited_for(fake, published, payer):
    person = returned_screen_out(fake, published)
    fake.settings.bonus_lag_reads = 3
    fake.fail(Fault.LOST_AFTER_ACTING, PAY, times=1)
    run = confirmed_run(published, payer)
    for _ in range(3):
        execute(run.pk)
        assert states(run) == {"claimed": 1}
    execute(run.pk)
    assert states(run) == {"done": 1}
    assert paid_by_submission(fake) == {session(person): [13]}
    assert bonus_calls(fake) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE_ACTING, Fault.SERVER_ERROR])
def test_a_bonus_that_was_never_paid_waits_for_a_person(fake, published, payer, fault):
    """Nobody here can know whether it was; the run stays open, and only a person has it paid in a new run."""
    person = returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.fail(fault, PAY, times=1)
    for _ in range(3):
        execute(run.pk)
    assert bonus_calls(fake) == 1
    assert states(run) == {"claimed": 1}
    assert due_now(published) == []
    with pytest.raises(PaymentRefused, match="too new"):
        say_unpaid(run)
    long_ago(run)
    assert say_unpaid(run) == 1
    run.refresh_from_db()
    assert run.finished_at is not None
    second = confirmed_run(published, payer)
    execute(second.pk)
    assert paid_by_submission(fake) == {session(person): [13]}


def test_what_shows_in_the_last_moment_is_not_declared_unpaid(fake, published, payer):
    returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.settings.bonus_lag_reads = 1
    fake.fail(Fault.LOST_AFTER_ACTING, PAY, times=1)
    execute(run.pk)
    long_ago(run)
    with pytest.raises(PaymentRefused, match="Nothing is unclear"):
        say_unpaid(run)
    assert states(run) == {"done": 1}


@pytest.mark.parametrize("match", [PAY, "bonus-payments/$", "bulk-approve", "submissions/"])
def test_too_many_requests_only_put_it_off(fake, published, payer, match):
    done, screened = completed(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.fail(Fault.TOO_MANY_REQUESTS, match, times=6)
    for _ in range(7):
        execute(run.pk)
    assert paid_by_submission(fake) == {session(done): [165], session(screened): [13]}
    run.refresh_from_db()
    assert states(run) == {"done": 2}
    assert run.error == ""


def test_a_set_up_whose_answer_was_lost_is_done_anew_and_one_is_paid(fake, published, payer):
    person = returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.fail(Fault.LOST_AFTER_ACTING, "submissions/bonus-payments/", times=1)
    execute(run.pk)
    run.refresh_from_db()
    assert "may have done it or not" in run.error
    execute(run.pk)
    assert len(fake.world.batches) == 2
    assert paid_by_submission(fake) == {session(person): [13]}


def test_one_refused_bonus_does_not_hold_up_the_others(fake, published, payer):
    first, second = returned_screen_out(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    # Gone between the last look and the payment.
    original = payment_execution._divide

    def forget(run):
        original(run)
        fake.world.submissions.pop(session(first))

    payment_execution._divide = forget
    try:
        execute(run.pk)
    finally:
        payment_execution._divide = original
    assert paid_by_submission(fake) == {session(second): [13]}
    failed = run.payments.get(state=PaymentState.FAILED)
    assert "Unknown ids" in failed.error
    assert states(run) == {"failed": 1, "done": 1}


def test_another_sum_than_is_due_is_not_paid(fake, published, payer, monkeypatch):
    """As if the service took pence for pounds."""
    returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    monkeypatch.setattr("scooter_site.demo.fake_prolific.submissions._minor", lambda line: 1300)
    execute(run.pk)
    assert run.payments.get().error == "Prolific would have paid 13.00, but 0.13 is due."
    assert bonus_calls(fake) == 0
    assert paid_by_submission(fake) == {}


# --- What changed meanwhile -----------------------------------------------------------------------------------


def test_what_was_approved_by_hand_meanwhile_is_done(fake, published, payer):
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    with fake.world.lock:
        submissions.transition(fake.world, session(person), {"action": "APPROVE"})
    execute(run.pk)
    assert paid_by_submission(fake) == {session(person): [165]}
    assert states(run) == {"done": 1}
    assert not any("bulk-approve" in request for request in fake.requests)


def test_what_was_returned_meanwhile_is_not_approved(fake, published, payer):
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    fake.give_back(session(person))
    execute(run.pk)
    assert run.payments.get().error == "On Prolific the submission is “Returned”, so it was left as it is."
    assert Submission.objects.get().review_reason == "returned_after_end"


def test_a_bonus_that_somebody_paid_by_hand_is_not_paid_again(fake, published, payer):
    person = returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.world.submissions[session(person)]["bonuses"].append({"amount_minor": 20, "hidden_reads": 0})
    execute(run.pk)
    assert "not paid from here" in run.payments.get().error
    assert paid_by_submission(fake) == {}
    assert due_now(published) == []


def test_approvals_that_are_carried_out_later_are_waited_for(fake, published, payer, monkeypatch):
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    monkeypatch.setattr("scooter_site.demo.fake_prolific.submissions._approve", lambda world, submission: None)
    execute(run.pk)
    assert states(run) == {"sent": 1}
    monkeypatch.undo()
    execute(run.pk)
    assert states(run) == {"done": 1}
    assert paid_by_submission(fake) == {session(person): [165]}


# --- Rejections -----------------------------------------------------------------------------------------------


def test_a_rejection_is_sent_with_ground_and_message_and_is_nobodys_question_afterwards(fake, published, payer):
    person = completed(fake, published, failed_checks=2)
    assert person.outcome == Outcome.ATTENTION_FAILED
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    payments.reject_instead(run.payments.get(), category="FAILED_CHECK", message=MESSAGE)
    payments.confirm(run, payer, seen=payments.fingerprint(run))
    execute(run.pk)
    assert fake.world.submissions[session(person)]["status"] == "REJECTED"
    assert paid_by_submission(fake) == {}
    submission = Submission.objects.get()
    assert (submission.status, submission.review_reason) == (SubmissionStatus.REJECTED, "")
    recruitment_sync.read_panel_study(published.pk)
    submission.refresh_from_db()
    assert submission.review_reason == ""
    assert due_now(published) == []


def test_a_rejection_can_be_taken_back_before_the_run_is_confirmed(fake, published, payer):
    completed(fake, published, failed_checks=2)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    payments.reject_instead(run.payments.get(), category="FAILED_CHECK", message=MESSAGE)
    payments.approve_after_all(run.payments.get())
    payment = run.payments.get()
    assert (payment.way, payment.amount_minor, payment.rejection_message) == (Way.APPROVE, 165, "")


@pytest.mark.parametrize(
    ("failed_checks", "message", "said"),
    [(0, MESSAGE, "0 attention checks failed"), (1, MESSAGE, "1 attention check failed"), (2, "x" * 99, "99")],
)
def test_a_rejection_against_policy_is_refused_before_any_call(fake, published, payer, failed_checks, message, said):
    completed(fake, published, failed_checks=failed_checks)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    with pytest.raises(PaymentRefused, match=said):
        payments.reject_instead(run.payments.get(), category="FAILED_CHECK", message=message)
    assert run.payments.get().way == Way.APPROVE


# --- What the database holds ----------------------------------------------------------------------------------


def test_no_submission_has_two_live_payments_of_one_way_or_two_verdicts(fake, published, payer):
    completed(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    payment = run.payments.get()
    copy = {"run": run, "submission": payment.submission, "reason": "again"}
    with pytest.raises(IntegrityError), transaction.atomic():
        Payment.objects.create(**copy, way=Way.APPROVE, amount_minor=165)
    with pytest.raises(IntegrityError), transaction.atomic():
        Payment.objects.create(
            **copy, way=Way.REJECT, amount_minor=0, rejection_category="FAILED_CHECK", rejection_message=MESSAGE
        )
    with pytest.raises(IntegrityError), transaction.atomic():
        Payment.objects.create(**copy, way=Way.BONUS, amount_minor=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        BonusBatch.objects.create(run=run, pay_requested_at=timezone.now())
    Payment.objects.create(**copy, way=Way.BONUS, amount_minor=5)
    with pytest.raises(IntegrityError), transaction.atomic():
        Payment.objects.create(**copy, way=Way.BONUS, amount_minor=5)


def test_without_a_token_the_run_waits_and_says_why(fake, published, payer):
    completed(fake, published)
    run = confirmed_run(published, payer)
    published.workspace.token = ""
    published.workspace.save()
    execute(run.pk)
    run.refresh_from_db()
    assert "has no token" in run.error
    assert run.finished_at is None
    with pytest.raises(RecruitmentError):
        say_unpaid(run)
