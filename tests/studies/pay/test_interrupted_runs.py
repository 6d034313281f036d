"""Payment runs in which something changes between two attempts, or two workers are at work at the same time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import PanelStudy, PaymentState, Submission
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import NotAllowed, Refused
from studies.recruitment.payments import Way
from studies.services import payment_execution, payments, recruitment_sync
from studies.services.payment_execution import execute
from tests.studies.pay.people import completed, confirmed_run, paid_by_submission, returned_screen_out, session

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
    assert payment_execution.declare_unpaid(run, "payer") == 1
    assert states(run) == ["failed"]


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
