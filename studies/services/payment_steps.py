"""What is noted of payments before and after each call to the service, for workers that may be killed or be several.

Every step moves only what is in the state that it expects: another worker may have got further meanwhile.
"""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from studies.models import BonusBatch, Payment, PaymentRun, PaymentState, Submission
from studies.models.payments import OPEN_STATES
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import NotFound
from studies.recruitment.payments import Way
from studies.recruitment.review import Offer, Reason
from studies.selectors.payments import with_participations
from studies.services.pointer import record
from studies.services.recruitment_sync import apply


def lock(run: PaymentRun) -> PaymentRun:
    """Until the transaction ends: what is in it, in which batch, and whether it is asked for, changes by one at a time.

    Gives the run as it is stored now.
    """
    return PaymentRun.objects.select_for_update(of=("self",)).get(pk=run.pk)


def of_batch(batch: BonusBatch, state: PaymentState) -> list[Payment]:
    return list(batch.payments.filter(state=state).select_related("submission"))


def read_there(client: ProlificClient, run: PaymentRun, payment: Payment) -> Submission | None:
    """The submission as it stands there now, with its bonuses; None if there is no such submission."""
    asked_at = timezone.now()
    try:
        state = client.submission(payment.submission.submission_id)
    except NotFound:
        return None
    apply(run.panel_study, state, asked_at)
    return with_participations(Submission.objects.all()).get(pk=payment.submission_id)


def claim(payments: Sequence[Payment]) -> int:
    """Committed before the call, so that a worker that is lost leaves a trace of it."""
    ids = [payment.pk for payment in payments]
    planned = Payment.objects.filter(pk__in=ids, state=PaymentState.PLANNED)
    return planned.update(state=PaymentState.CLAIMED, claimed_at=timezone.now())


def release(payment: Payment) -> bool:
    """Put down what another worker claimed and was lost with, so that it can be claimed again.

    Of several who saw that claim, one gets True: by the next claim it has another time.
    """
    as_seen = Payment.objects.filter(pk=payment.pk, state=PaymentState.CLAIMED, claimed_at=payment.claimed_at)
    return as_seen.update(state=PaymentState.PLANNED) == 1


def equal_bonuses(submission: Submission, payment: Payment) -> int:
    """How many bonuses of the payment's amount the submission showed when it was last read."""
    return (submission.bonuses_minor or []).count(payment.amount_minor)


def note_equal_bonuses(payments: Sequence[Payment]) -> None:
    """Before they are asked for: what the submissions show already is no proof that they were paid."""
    for payment in payments:
        payment.equal_before = equal_bonuses(payment.submission, payment)
    Payment.objects.bulk_update(payments, ["equal_before"])


def move(payments: Sequence[Payment], before: PaymentState, after: PaymentState) -> None:
    """Only from the state that is expected: another worker may have got further."""
    ids = [payment.pk for payment in payments]
    Payment.objects.filter(pk__in=ids, state=before).update(state=after)


def note(payments: Sequence[Payment], text: str) -> None:
    Payment.objects.filter(pk__in=[payment.pk for payment in payments]).update(error=text)


def fail(payments: Sequence[Payment], before: Sequence[PaymentState], text: str) -> int:
    """Only from the states that are expected. How many there were."""
    ids = [payment.pk for payment in payments]
    return Payment.objects.filter(pk__in=ids, state__in=before).update(state=PaymentState.FAILED, error=text)


def done(payment: Payment) -> None:
    """The service's own state shows it. Put on record with the participation, once."""
    with transaction.atomic():
        moved = Payment.objects.filter(pk=payment.pk, state__in=OPEN_STATES).update(
            state=PaymentState.DONE, done_at=timezone.now(), error=""
        )
        if not moved:
            return
        submission = Submission.objects.select_related("participation").get(pk=payment.submission_id)
        if payment.way == Way.REJECT:
            # Our own rejection is nothing that somebody has to look at.
            submission.settled_reason, submission.settled_with = Reason.REJECTED_ELSEWHERE, Offer.NOTHING
            submission.settled_by = payment.run.confirmed_by.get_username() if payment.run.confirmed_by else ""
            submission.settled_at, submission.review_reason = timezone.now(), ""
            submission.save(
                update_fields=["settled_reason", "settled_with", "settled_by", "settled_at", "review_reason"]
            )
        if submission.participation:
            record(submission.participation, f"payment_{payment.way}", amount_minor=payment.amount_minor)
