"""Payment runs in which something changes between two attempts, or two workers are at work at the same time."""

from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import PanelStudy, PaymentState, Submission
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import NotAllowed, Refused
from studies.recruitment.payments import Way
from studies.recruitment.review import Offer
from studies.services import payment_execution, payment_steps, payments, recruitment_sync
from studies.services.payment_execution import execute
from tests.studies.pay.people import (
    completed,
    confirmed_run,
    failed_comprehension,
    paid_by_submission,
    returned_screen_out,
    say_unpaid,
    session,
)
from tests.studies.recruitment.deciding import decide

pytestmark = pytest.mark.django_db

PAY = "bulk-bonus-payments"
MESSAGE = (
    "You failed the attention checks at items 12 and 57, which said in words which end of the scale to choose there."
)


def states(run) -> list[str]:
    return sorted(run.payments.values_list("state", flat=True))


def test_a_bonus_paid_by_hand_between_two_attempts_is_taken_out_of_its_batch(fake, published, payer):
    first, second = returned_screen_out(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    fake.fail(Fault.TOO_MANY_REQUESTS, PAY, times=1)
    execute(run.pk)
    assert states(run) == ["planned", "planned"]
    fake.world.submissions[session(first)]["bonuses"].append({"amount_minor": 20, "hidden_reads": 0})
    execute(run.pk)
    assert paid_by_submission(fake) == {session(second): [13]}
    assert states(run) == ["done", "failed"]
    assert len(fake.world.batches) == 2


def test_a_bonus_taken_on_that_never_shows_is_put_before_a_person(fake, published, payer):
    returned_screen_out(fake, published)
    fake.settings.bonus_lag_reads = 99
    run = confirmed_run(published, payer)
    execute(run.pk)
    assert states(run) == ["sent"]
    run.batches.update(pay_requested_at=timezone.now() - timedelta(hours=2))
    assert say_unpaid(run) == 1
    assert states(run) == ["failed"]


def test_of_two_workers_that_find_a_claim_of_a_lost_one_only_one_takes_it_up(fake, published, payer):
    """What is claimed here is a message to a participant: the other would send it once more."""
    failed_comprehension(fake, published)
    run = confirmed_run(published, payer)
    run.payments.update(state=PaymentState.CLAIMED, claimed_at=timezone.now() - timedelta(hours=2))
    one, other = run.payments.get(), run.payments.get()
    assert payment_steps.release(one)
    assert payment_steps.claim([one]) == 1
    assert not payment_steps.release(other)
    assert payment_steps.claim([other]) == 0
    assert states(run) == ["claimed"]


def test_an_approval_of_what_is_no_longer_there_is_given_up(fake, published, payer):
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    fake.world.submissions.pop(session(person))
    execute(run.pk)
    assert run.payments.get().error == "Prolific knows no such submission."
    run.refresh_from_db()
    assert run.finished_at is not None


def test_an_approval_that_never_shows_is_said_on_the_page(fake, published, payer, monkeypatch):
    completed(fake, published)
    run = confirmed_run(published, payer)
    monkeypatch.setattr("scooter_site.demo.fake_prolific.submissions._approve", lambda world, submission: None)
    execute(run.pk)
    run.refresh_from_db()
    assert run.error == ""
    run.payments.update(claimed_at=timezone.now() - timedelta(hours=2))
    execute(run.pk)
    run.refresh_from_db()
    assert run.error == "Prolific was asked long ago to approve or reject, and does not show it: 1. Look there."


@pytest.mark.parametrize("call", ["set_up_bonuses", "pay_bonuses", "approve"])
def test_a_token_that_is_void_ends_no_payment(fake, published, payer, monkeypatch, call):
    done, screened = completed(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)

    def not_allowed(*_: object) -> None:
        raise NotAllowed("paying", status=401, text="Invalid token.")

    with monkeypatch.context() as patched:
        patched.setattr(ProlificClient, call, not_allowed)
        execute(run.pk)
    run.refresh_from_db()
    assert run.error == "Invalid token."
    assert not run.payments.filter(state=PaymentState.FAILED).exists()
    execute(run.pk)
    assert paid_by_submission(fake) == {session(done): [165], session(screened): [13]}


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("call", ["set_up_bonuses", "approve", "transition_submission"])
def test_a_worker_that_is_refused_what_another_has_done_undoes_nothing(
    fake, published, payer, monkeypatch, people, call
):
    come = returned_screen_out if call == "set_up_bonuses" else completed
    amount = 13 if call == "set_up_bonuses" else 165
    persons = [come(fake, published) for _ in range(people)]
    run = confirmed_run(published, payer)

    def refuse(*_: object, **__: object) -> None:
        monkeypatch.undo()
        execute(run.pk)  # the other worker, from beginning to end
        raise Refused("paying", status=400, text="Too late.")

    if call == "transition_submission":  # after a refusal of all together
        monkeypatch.setattr(
            payment_execution,
            "_approve",
            lambda client, run, payments: [payment_execution._give_one(client, run, one) for one in payments],
        )
    monkeypatch.setattr(ProlificClient, call, refuse)
    execute(run.pk)
    assert paid_by_submission(fake) == {session(person): [amount] for person in persons}
    assert states(run) == ["done"] * people


def test_what_another_worker_has_claimed_is_not_set_up(fake, published, payer):
    returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    payment_execution._divide(run)
    batch = run.batches.get()
    run.payments.update(state=PaymentState.CLAIMED)
    asked = len(fake.requests)
    with payment_execution.client_of(published.workspace) as client:
        assert payment_execution._set_up(client, batch) is False
        payment_execution._pay(client, batch)
    assert len(fake.requests) == asked


# --- What is judged anew before it is asked for ---------------------------------------------------------------


def pay_by_hand(fake, person) -> None:
    """On Prolific's own pages: lists of submissions do not show it."""
    fake.world.submissions[session(person)]["bonuses"].append({"amount_minor": 165, "hidden_reads": 0})


def test_who_had_a_bonus_by_hand_is_not_approved_before_a_person_says_so(fake, published, payer):
    paid, other = completed(fake, published), completed(fake, published)
    pay_by_hand(fake, paid)
    run = confirmed_run(published, payer)  # what is due is found without it
    execute(run.pk)
    assert paid_by_submission(fake) == {session(other): [165]}
    assert states(run) == ["done", "failed"]
    assert "not paid from here" in run.payments.get(state=PaymentState.FAILED).error
    submission = paid.submission
    assert submission.review_reason == "submitted_after_bonus"
    decide(submission, Offer.APPROVE, "payer")
    execute(confirmed_run(published, payer).pk)
    assert paid_by_submission(fake) == {session(other): [165], session(paid): [165]}


def test_nobody_is_rejected_whom_somebody_paid_by_hand(fake, published, payer):
    person = completed(fake, published, failed_checks=2)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    payments.reject_instead(run.payments.get(), category="FAILED_CHECK", message=MESSAGE)
    payments.confirm(run, payer, seen=payments.fingerprint(run))
    pay_by_hand(fake, person)
    execute(run.pk)
    assert fake.world.submissions[session(person)]["status"] == "AWAITING REVIEW"
    assert states(run) == ["failed"]


def test_who_comes_with_another_code_by_now_is_not_approved(fake, published, payer):
    """Prolific lets participants correct their code while they wait."""
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    fake.world.submissions[session(person)]["entered_code"] = "NOCODE"
    execute(run.pk)
    assert paid_by_submission(fake) == {}
    assert run.payments.get().error == "It is no longer due: the submission is “Awaiting review”."
    assert person.submission.review_reason == "no_code"


@pytest.mark.parametrize("by_now", ["asked", "returned"])
def test_who_was_asked_by_hand_or_has_returned_gets_no_message(fake, published, payer, by_now):
    person = failed_comprehension(fake, published)
    run = confirmed_run(published, payer)
    if by_now == "asked":
        fake.world.submissions[session(person)]["return_requested"] = "2026-12-01T10:00:00Z"
    else:
        fake.give_back(session(person))
    execute(run.pk)
    assert fake.world.messages == []
    said = {"asked": "They have been asked to return it already.", "returned": "the submission is “Returned”"}
    assert said[by_now] in run.payments.get().error


def test_an_approval_that_may_have_been_asked_for_is_neither_repeated_nor_given_up(fake, published, payer):
    """Its worker was killed, and then somebody paid by hand: it closes when the service shows what became of it."""
    person = completed(fake, published)
    run = confirmed_run(published, payer)
    run.payments.update(state=PaymentState.CLAIMED, claimed_at=timezone.now() - timedelta(hours=2))
    pay_by_hand(fake, person)
    execute(run.pk)
    run.refresh_from_db()
    assert states(run) == ["claimed"]
    assert "does not show it: 1. Look there." in run.error
    assert paid_by_submission(fake) == {}
    fake.give_back(session(person))
    execute(run.pk)
    assert states(run) == ["failed"]


def test_approvals_are_made_in_parts_so_that_those_before_trouble_are_made(fake, published, payer, monkeypatch):
    monkeypatch.setattr(payment_execution, "APPROVED_TOGETHER", 2)
    people = [completed(fake, published) for _ in range(5)]
    run = confirmed_run(published, payer)
    fake.fail(Fault.SERVER_ERROR, f"GET /api/v1/submissions/{session(people[3])}/", times=5)
    execute(run.pk)
    assert len(paid_by_submission(fake)) == 2
    assert states(run) == ["planned"] * 3 + ["sent"] * 2
    execute(run.pk)
    assert paid_by_submission(fake) == {session(person): [165] for person in people}
    assert states(run) == ["done"] * 5


@pytest.mark.parametrize("call", ["submissions", "submission", "approve", "set_up_bonuses", "pay_bonuses"])
def test_a_mistake_of_ours_leaves_word_and_the_run_goes_on_afterwards(fake, published, payer, monkeypatch, call):
    done, screened = completed(fake, published), returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    with monkeypatch.context() as patched:
        patched.setattr(ProlificClient, call, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            execute(run.pk)
    run.refresh_from_db()
    assert run.error == "It stopped for an unexpected reason (ZeroDivisionError), which the log describes."
    assert run.finished_at is None
    assert not run.payments.filter(state=PaymentState.FAILED).exists()
    if call == "pay_bonuses":  # nobody knows; so a person is asked, as after any lost answer
        run.batches.update(pay_requested_at=timezone.now() - timedelta(hours=2))
        assert say_unpaid(run) == 1
        run = confirmed_run(published, payer)
    execute(run.pk)
    run.refresh_from_db()
    assert run.error == ""
    assert paid_by_submission(fake) == {session(done): [165], session(screened): [13]}


def test_an_answer_that_cannot_be_read_puts_a_run_off(fake, published, payer, monkeypatch):
    done = completed(fake, published)
    run = confirmed_run(published, payer)
    with monkeypatch.context() as patched:
        patched.setattr(httpx.Client, "request", lambda *_, **__: httpx.Response(200, text="<p>Back at noon.</p>"))
        execute(run.pk)
    run.refresh_from_db()
    assert run.error == "The answer is no JSON: <p>Back at noon.</p>"
    assert states(run) == ["planned"]
    execute(run.pk)
    assert paid_by_submission(fake) == {session(done): [165]}


# --- What a person reads before confirming --------------------------------------------------------------------


def too_small_a_reward(published) -> None:
    PanelStudy.objects.filter(pk=published.pk).update(reward_minor=150)
    published.refresh_from_db()


def test_fees_are_of_what_is_still_to_be_paid_and_their_change_is_noticed(fake, published, payer, monkeypatch):
    completed(fake, published, failed_checks=2)
    too_small_a_reward(published)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    assert sorted(run.payments.values_list("amount_minor", flat=True)) == [15, 150]
    assert run.fees_minor == 66
    seen = payments.fingerprint(run)
    payments.reject_instead(run.payments.get(way=Way.APPROVE), category="FAILED_CHECK", message=MESSAGE)
    run.refresh_from_db()
    assert run.fees_minor == 0
    payments.approve_after_all(run.payments.get(way=Way.REJECT))
    run.refresh_from_db()
    assert run.fees_minor == 60  # of 1.50 alone: the bonus is withdrawn
    assert payments.fingerprint(run) != seen
    with pytest.raises(payments.PaymentRefused, match="changed since"):
        payments.confirm(run, payer, seen=seen)


def test_fees_are_those_of_the_last_change_whoever_answers_last(fake, published, payer, monkeypatch):
    for _ in range(3):
        completed(fake, published, failed_checks=2)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    first, second, _ = run.payments.order_by("id")
    ask = ProlificClient.cost_minor

    def ask_while_somebody_else_changes_more(*given):
        monkeypatch.setattr(ProlificClient, "cost_minor", ask)
        payments.reject_instead(second, category="FAILED_CHECK", message=MESSAGE)
        return ask(*given)

    monkeypatch.setattr(ProlificClient, "cost_minor", ask_while_somebody_else_changes_more)
    payments.reject_instead(first, category="FAILED_CHECK", message=MESSAGE)
    run.refresh_from_db()
    assert run.fees_minor == 66  # of one reward, not of two


def test_fees_that_cannot_be_asked_for_are_none(fake, published, payer):
    completed(fake, published, failed_checks=2)
    recruitment_sync.read_panel_study(published.pk)
    run = payments.prepare(published, payer)
    assert run.fees_minor == 66
    fake.fail(Fault.SERVER_ERROR, "cost-calculator")
    payments.reject_instead(run.payments.get(), category="FAILED_CHECK", message=MESSAGE)
    run.refresh_from_db()
    assert run.fees_minor is None


def test_no_error_that_is_kept_names_anybody(fake, published, payer, monkeypatch):
    returned_screen_out(fake, published)
    run = confirmed_run(published, payer)
    submission_id = Submission.objects.get().submission_id

    def refuse(*_: object) -> None:
        raise Refused("setting up bonuses", status=400, text=f"Unknown ids: {submission_id}, {submission_id}")

    monkeypatch.setattr(ProlificClient, "set_up_bonuses", refuse)
    execute(run.pk)
    assert run.payments.get().error == "Unknown ids: (id), (id)"
