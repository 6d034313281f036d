"""Payment runs: prepared from what is due, looked at, changed to rejections where policy allows it, and confirmed.

Nothing here pays anybody; ``payment_execution`` does, after the confirmation.
"""

import logging

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from scooter_site.common.as_seen import digest_of
from studies.flow import Outcome
from studies.models import PanelStudy, Participation, Payment, PaymentRun, PaymentState
from studies.models.payments import LIVE
from studies.recruitment.errors import ProlificError
from studies.recruitment.payments import Way, rejection_refusals, why_not_rejectable
from studies.selectors.payments import due_now, terms_of
from studies.services.payment_steps import lock
from studies.services.recruitment import RecruitmentError, client_of

logger = logging.getLogger(__name__)


class PaymentRefused(Exception):
    """This cannot be done now; the message is for people."""


def prepare(panel_study: PanelStudy, prepared_by: User) -> PaymentRun:
    """Put down everything that is due now, for somebody to check.

    Raises PaymentRefused where nothing is due, or another run of the study waits for confirmation.
    """
    try:
        with transaction.atomic():
            # One at a time, so that two clicks do not find the same people.
            PanelStudy.objects.select_for_update(of=("self",)).get(pk=panel_study.pk)
            due = due_now(panel_study)
            if not due:
                raise PaymentRefused("Nothing is due now.")
            if PaymentRun.objects.filter(
                panel_study=panel_study, confirmed_at__isnull=True, withdrawn_at__isnull=True
            ).exists():
                raise PaymentRefused("A payment run waits for confirmation already: confirm or withdraw it first.")
            run = PaymentRun.objects.create(panel_study=panel_study, prepared_by=prepared_by)
            Payment.objects.bulk_create(
                Payment(
                    run=run,
                    submission=submission,
                    way=instruction.way,
                    amount_minor=instruction.amount_minor,
                    reason=instruction.reason,
                )
                for submission, instruction in due
            )
    except IntegrityError:
        # What is due was read a moment before, and a worker may have taken up a submission since.
        raise PaymentRefused("Some of these submissions were dealt with just now. Prepare the run again.") from None
    _estimate_fees(run)
    return run


def _estimate_fees(run: PaymentRun) -> None:
    """Ask the service's calculator what it adds to the reward; bonuses bear the same share, rounded up.

    The run may be changed while it is asked: then the answer is no use, and whoever changed it asks too.
    """
    reward = terms_of(run.panel_study).reward_minor
    amount = _amount(run)
    try:
        with client_of(run.panel_study.workspace) as client:
            with_fees = client.cost_minor(reward, 100)
    except (ProlificError, RecruitmentError) as error:
        logger.warning("Fees of %s are unknown: %s", run, error)
        return
    fees = with_fees - 100 * reward
    with transaction.atomic():
        locked = lock(run)
        if _amount(locked) == amount:
            locked.fees_minor = max(0, -(-amount * fees // (100 * reward)))
            locked.save(update_fields=["fees_minor"])
    run.fees_minor = locked.fees_minor


def _amount(run: PaymentRun) -> int:
    return sum(run.payments.filter(LIVE).values_list("amount_minor", flat=True))


def _forget_fees(run: PaymentRun) -> None:
    """With a change of the amounts, so that nobody confirms one of them with the fees of the other."""
    run.fees_minor = None
    run.save(update_fields=["fees_minor"])


def withdraw(run: PaymentRun, withdrawn_by: User) -> None:
    """Take a run back that nobody has confirmed; what is due is due as before."""
    with transaction.atomic():
        locked = _waiting(run)
        locked.withdrawn_by, locked.withdrawn_at = withdrawn_by, timezone.now()
        locked.save(update_fields=["withdrawn_by", "withdrawn_at"])
        locked.payments.update(state=PaymentState.WITHDRAWN)


def fingerprint(run: PaymentRun) -> str:
    """Changes with anything that a person reads before confirming."""
    rows = run.payments.order_by("id").values_list(
        "id", "way", "amount_minor", "reason", "state", "error", "rejection_category", "rejection_message"
    )
    fees_minor = PaymentRun.objects.values_list("fees_minor", flat=True).get(pk=run.pk)
    return digest_of(fees_minor, *rows)


def confirm(run: PaymentRun, confirmed_by: User, *, seen: str) -> None:
    """Let the run be executed. ``seen`` is the ``fingerprint`` of what the person had before them.

    The caller checks permission, and enqueues the execution after the commit. Raises PaymentRefused.
    """
    with transaction.atomic():
        locked = _waiting(run)
        if seen != fingerprint(locked):
            raise PaymentRefused("The run has been changed since you opened it. Read it again, then confirm it.")
        locked.confirmed_by, locked.confirmed_at = confirmed_by, timezone.now()
        locked.save(update_fields=["confirmed_by", "confirmed_at"])


def _waiting(run: PaymentRun) -> PaymentRun:
    locked = lock(run)
    if locked.confirmed_at:
        raise PaymentRefused("The run has been confirmed already.")
    if locked.withdrawn_at:
        raise PaymentRefused("The run has been withdrawn.")
    return locked


# --- Rejections -----------------------------------------------------------------------------------------------


def obstacle_to_rejection(payment: Payment) -> str:
    """Why this submission may not be rejected, for people; empty where it may."""
    outcome, failures = _what_they_did(payment.submission.participation)
    return why_not_rejectable(outcome, failures, float(payment.submission.study.minutes_complete))


def reject_instead(payment: Payment, *, category: str, message: str) -> None:
    """Reject in place of approving, in a run that nobody has confirmed. Raises PaymentRefused."""
    with transaction.atomic():
        _forget_fees(_waiting(payment.run))
        payment = Payment.objects.select_related("submission__study", "submission__participation").get(pk=payment.pk)
        if payment.way != Way.APPROVE:
            raise PaymentRefused("Only what is to be approved can be rejected instead.")
        outcome, failures = _what_they_did(payment.submission.participation)
        minutes = float(payment.submission.study.minutes_complete)
        message = message.replace("\r\n", "\n").strip()
        if problems := rejection_refusals(outcome, failures, minutes, category, message):
            raise PaymentRefused(" ".join(problems))
        payment.way, payment.amount_minor = Way.REJECT, 0
        payment.rejection_category, payment.rejection_message = category, message
        payment.save(update_fields=["way", "amount_minor", "rejection_category", "rejection_message"])
        # A bonus on top of the reward that is not paid now.
        payment.run.payments.filter(submission=payment.submission_id, way=Way.BONUS).update(
            state=PaymentState.WITHDRAWN, error="Rejected instead."
        )
    _estimate_fees(payment.run)


def approve_after_all(payment: Payment) -> None:
    """Take a rejection back before the run is confirmed. A bonus that belonged to the approval is in the next run."""
    with transaction.atomic():
        _forget_fees(_waiting(payment.run))
        payment = Payment.objects.select_related("run__panel_study__study").get(pk=payment.pk)
        if payment.way != Way.REJECT:
            raise PaymentRefused("This is no rejection.")
        payment.way, payment.amount_minor = Way.APPROVE, terms_of(payment.run.panel_study).reward_minor
        payment.rejection_category = payment.rejection_message = ""
        payment.save(update_fields=["way", "amount_minor", "rejection_category", "rejection_message"])
    _estimate_fees(payment.run)


def _what_they_did(participation: Participation | None) -> tuple[Outcome | None, int]:
    if participation is None or not participation.outcome:
        return None, 0
    return Outcome(participation.outcome), participation.attention_failures
