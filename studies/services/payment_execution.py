"""Carrying out confirmed payment runs, each payment exactly once, whatever happens on the way.

``execute`` may be called again at any time, by several workers, and after a worker was killed anywhere in it. It only
does what is certain not to have been done:

- Before anything is asked for, the submission is read again, and what is no longer due is given up: hours may lie
  between preparation and this, and only a submission read by itself shows the bonuses that somebody paid by hand.
- Approving, rejecting: doing it twice is doing it once there, so it is repeated until the service's state shows it.
- Asking to return: every request is a message. Claimed before the call; after an answer that was lost, repeated only
  if the submission does not show that it was asked for, as who is not asked waits for ever.
- Bonuses: the payment that the service would make twice. Setting up a batch pays nothing, so a batch whose id was lost
  is set up anew. Paying is claimed first, in a transaction of its own. Only where it was certainly not done (429, no
  connection) is it tried again; refused, it is given up. After any other answer but a good one, what became of it is
  read in the submissions' own bonuses, which may lag. What stays unclear is put before a person (``declare_unpaid``).

No database transaction is open while the service is asked.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from studies.models import BonusBatch, Payment, PaymentRun, PaymentState
from studies.models.payments import ASKED_FOR, OPEN_STATES
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import Ambiguous, ProlificError, Refused
from studies.recruitment.money import to_major
from studies.recruitment.payloads import MOST_BONUSES
from studies.recruitment.payments import Way, bonuses_of, instructions
from studies.recruitment.statuses import SubmissionStatus
from studies.selectors.payments import (
    VERDICTS,
    dealt_with,
    open_payments,
    standing_of,
    terms_of,
    unclear_bonuses,
    unseen_verdicts,
)
from studies.services.payment_steps import (
    claim,
    done,
    equal_bonuses,
    fail,
    lock,
    move,
    note,
    note_equal_bonuses,
    of_batch,
    read_there,
    release,
)
from studies.services.payments import PaymentRefused
from studies.services.recruitment import RecruitmentError, client_of
from studies.services.recruitment_sync import apply

logger = logging.getLogger(__name__)

RETURN_REASON = "The study ended early for you. Please return your submission; your time is then paid as a bonus."
# Fewer than the service takes: each is read before, so that what was read is fresh, and few are read anew where the
# service is away in the middle.
APPROVED_TOGETHER = 100
# Longer than any call; what was claimed before that is in nobody's hands any more.
CALL_TAKES = timedelta(minutes=5)
UNKNOWN_THERE = "Prolific knows no such submission."


def execute(run_id: int) -> None:
    """Go on with a confirmed run as far as the service lets us. What is left is tried again by the next call."""
    run = PaymentRun.objects.select_related("panel_study__study", "panel_study__workspace").get(pk=run_id)
    if run.confirmed_at is None or run.finished_at is not None:
        return
    error = ""
    try:
        with client_of(run.panel_study.workspace) as client:
            _give_verdicts(client, run)
            _ask_for_returns(client, run)
            _pay_bonuses(client, run)
            _see_what_was_paid(client, run)
    except (ProlificError, RecruitmentError) as failure:
        logger.warning("%s is not finished: %s", run, failure)
        error = failure.text if isinstance(failure, ProlificError) else str(failure)
    except Exception as failure:
        # A mistake of ours. Whoever looks at the run learns of it, and no payment is taken for done or given up.
        PaymentRun.objects.filter(pk=run.pk).update(
            error=f"It stopped for an unexpected reason ({type(failure).__name__}), which the log describes."
        )
        raise
    _finish(run, error or _unseen_verdicts(run))


def _finish(run: PaymentRun, error: str) -> None:
    is_open = run.payments.filter(state__in=OPEN_STATES).exists()
    run.error = error
    run.finished_at = None if is_open else timezone.now()
    run.save(update_fields=["error", "finished_at"])


# --- What is still due ----------------------------------------------------------------------------------------


def _is_still_due(client: ProlificClient, run: PaymentRun, payment: Payment) -> bool:
    """Read the submission anew; give the payment up if it is no longer due, or somebody else has paid it.

    What was asked for without an answer may have been done, so it is not given up, only not asked for again. What the
    service has taken on is not judged: its own state will say.
    """
    if payment.state == PaymentState.SENT:
        return True
    submission = read_there(client, run, payment)
    way = Way(payment.way)
    if submission is None:
        _give_up(run, payment, UNKNOWN_THERE)
        return False
    if submission.status == VERDICTS.get(way):
        done(payment)
        return False
    standing, terms = standing_of(submission), terms_of(run.panel_study)
    due = instructions(standing, terms, already=dealt_with(submission, beside=payment))
    amounts = {one.way: one.amount_minor for one in due}
    if amounts.get(way) == payment.amount_minor or (way == Way.REJECT and Way.APPROVE in amounts):
        return True
    if bonuses_of(standing, terms).by_hand:
        text = "Prolific shows a bonus that was not paid from here: look at it there first."
    elif way == Way.RETURN and submission.return_requested:
        text = "They have been asked to return it already."
    else:
        text = f"It is no longer due: the submission is “{submission.get_status_display()}”."
    _give_up(run, payment, text)
    return False


# --- Approving and rejecting ----------------------------------------------------------------------------------


def _give_verdicts(client: ProlificClient, run: PaymentRun) -> None:
    if not open_payments(run, *VERDICTS).exists():
        return
    _see_verdicts(client, run)
    for payment in open_payments(run, Way.REJECT):
        if _is_still_due(client, run, payment):
            _give_one(client, run, payment)
    approvals = list(open_payments(run, Way.APPROVE).values_list("id", flat=True))
    for start in range(0, len(approvals), APPROVED_TOGETHER):
        # As they are now: another worker may have got further.
        part = open_payments(run, Way.APPROVE).filter(pk__in=approvals[start : start + APPROVED_TOGETHER])
        if still_due := [payment for payment in part if _is_still_due(client, run, payment)]:
            _approve(client, run, still_due)
    _see_verdicts(client, run)


def _see_verdicts(client: ProlificClient, run: PaymentRun) -> None:
    """Read how all submissions stand: close what is as it should be, and give up what can no longer become so."""
    asked_at = timezone.now()
    states = {state.id: state for state in client.submissions(run.panel_study.panel_id)}
    for payment in open_payments(run, *VERDICTS):
        state = states.get(payment.submission.submission_id)
        if state is None:
            submission = read_there(client, run, payment)
            if submission is None:
                fail([payment], OPEN_STATES, UNKNOWN_THERE)
                continue
            status = SubmissionStatus(submission.status)
        else:
            status = state.status
        if status == SubmissionStatus.AWAITING_REVIEW:
            continue
        if state is not None:
            apply(run.panel_study, state, asked_at)
        if status == VERDICTS[Way(payment.way)]:
            done(payment)
        else:
            text = f"On Prolific the submission is “{status.label}”, so it was left as it is."
            fail([payment], OPEN_STATES, text)


def _unseen_verdicts(run: PaymentRun) -> str:
    """For people: what is asked for again and again and never shows; empty where there is none."""
    count = unseen_verdicts(run, settled_before()).count()
    return (
        f"Prolific was asked long ago to approve or reject, and does not show it: {count}. Look there." if count else ""
    )


def _approve(client: ProlificClient, run: PaymentRun, payments: Sequence[Payment]) -> None:
    claim(payments)
    try:
        client.approve([payment.submission.submission_id for payment in payments])
    except Refused as error:
        # All for the sake of one; that one is found by approving each by itself.
        logger.warning("%s; approving one by one", error)
        for payment in payments:
            _give_one(client, run, payment)
        return
    move(payments, PaymentState.CLAIMED, PaymentState.SENT)


def _give_one(client: ProlificClient, run: PaymentRun, payment: Payment) -> None:
    claim([payment])
    submission_id = payment.submission.submission_id
    try:
        if payment.way == Way.REJECT:
            client.reject(submission_id, category=payment.rejection_category, message=payment.rejection_message)
        else:
            client.transition_submission(submission_id, "APPROVE")
    except Refused as error:
        # Perhaps because another worker has just had it done.
        submission = read_there(client, run, payment)
        if submission is not None and submission.status == VERDICTS[Way(payment.way)]:
            done(payment)
        elif not fail([payment], [PaymentState.CLAIMED], error.text):
            note([payment], error.text)  # it was taken on before: a person reads this, and may give it up
        return
    move([payment], PaymentState.CLAIMED, PaymentState.SENT)


# --- Asking for returns ---------------------------------------------------------------------------------------


def _ask_for_returns(client: ProlificClient, run: PaymentRun) -> None:
    for payment in open_payments(run, Way.RETURN):
        if payment.state == PaymentState.CLAIMED:
            if payment.claimed_at is None or payment.claimed_at > timezone.now() - CALL_TAKES:
                continue  # another worker may be just asking
            if _was_asked_to_return(client, run, payment):
                done(payment)
                continue
            if not release(payment):
                continue  # another worker has taken it up
            payment.refresh_from_db(fields=["state"])
        if not _is_still_due(client, run, payment) or not claim([payment]):
            continue
        try:
            client.request_return(payment.submission.submission_id, [RETURN_REASON])
        except Refused as error:
            fail([payment], [PaymentState.CLAIMED], error.text)
            continue
        except Ambiguous as error:
            logger.warning("%s; the submission is read before it is asked for again", error)
            if not _was_asked_to_return(client, run, payment):
                continue  # or it shows late
        except ProlificError:
            move([payment], PaymentState.CLAIMED, PaymentState.PLANNED)
            raise
        done(payment)


def _was_asked_to_return(client: ProlificClient, run: PaymentRun, payment: Payment) -> bool:
    """Whether the submission shows it, or there is nothing to return any more."""
    submission = read_there(client, run, payment)
    return submission is None or submission.return_requested or submission.status != SubmissionStatus.AWAITING_REVIEW


# --- Bonuses --------------------------------------------------------------------------------------------------


def _pay_bonuses(client: ProlificClient, run: PaymentRun) -> None:
    # Also those set up in a batch: hours may pass before the service can be asked to pay it.
    for payment in open_payments(run, Way.BONUS).filter(state=PaymentState.PLANNED):
        _is_still_due(client, run, payment)
    _divide(run)
    for batch in run.batches.filter(pay_requested_at__isnull=True, payments__state=PaymentState.PLANNED).distinct():
        if batch.batch_id or _set_up(client, batch):
            _pay(client, batch)


def _give_up(run: PaymentRun, payment: Payment, text: str) -> None:
    """Before it is asked for. A batch that was set up with it is set up anew without it."""
    with transaction.atomic():
        lock(run)
        if fail([payment], [PaymentState.PLANNED], text):
            run.batches.filter(payments=payment.pk).update(batch_id="", total_minor=None)


def _divide(run: PaymentRun) -> None:
    """Put bonuses into batches of what the service takes at once."""
    with transaction.atomic():
        lock(run)
        free = list(
            open_payments(run, Way.BONUS)
            .filter(state=PaymentState.PLANNED, batch__isnull=True)
            .values_list("id", flat=True)
        )
        for start in range(0, len(free), MOST_BONUSES):
            _new_batch(run, free[start : start + MOST_BONUSES])


def _new_batch(run: PaymentRun, payment_ids: Sequence[int]) -> BonusBatch:
    batch = BonusBatch.objects.create(run=run)
    Payment.objects.filter(pk__in=payment_ids).update(batch=batch)
    return batch


def _set_up(client: ProlificClient, batch: BonusBatch) -> bool:
    """Have the service prepare the batch, which pays nothing. False: it will not be paid, or not in this batch."""
    payments = of_batch(batch, PaymentState.PLANNED)
    if not payments:
        return False  # another worker was faster
    amounts = [(payment.submission.submission_id, to_major(payment.amount_minor)) for payment in payments]
    try:
        answer = client.set_up_bonuses(batch.run.panel_study.panel_id, amounts)
    except Refused as error:
        if len(payments) == 1:
            _give_up(batch.run, payments[0], error.text)
        else:
            # All for the sake of one; each gets a batch of its own.
            logger.warning("%s; paying one by one", error)
            for single in _split(batch):
                if _set_up(client, single):
                    _pay(client, single)
        return False
    due = sum(payment.amount_minor for payment in payments)
    if answer.amount_minor != due:
        for payment in payments:
            text = f"Prolific would have paid {to_major(answer.amount_minor)}, but {to_major(due)} is due."
            _give_up(batch.run, payment, text)
        return False
    with transaction.atomic():
        lock(batch.run)
        if of_batch(batch, PaymentState.PLANNED) != payments:
            return False  # set up with others than are in it now
        # Another worker may have been faster: then its batch is the one that is paid.
        BonusBatch.objects.filter(pk=batch.pk, batch_id="").update(batch_id=answer.id, total_minor=answer.total_minor)
    batch.refresh_from_db()
    return True


def _split(batch: BonusBatch) -> list[BonusBatch]:
    """A batch for each of its payments; none where another worker has set it up or asked to pay it."""
    with transaction.atomic():
        lock(batch.run)
        if not BonusBatch.objects.filter(pk=batch.pk, batch_id="").exists():
            return []
        return [_new_batch(batch.run, [payment.pk]) for payment in of_batch(batch, PaymentState.PLANNED)]


def _pay(client: ProlificClient, batch: BonusBatch) -> None:
    if not _claim_batch(batch):
        return
    payments = of_batch(batch, PaymentState.CLAIMED)
    try:
        client.pay_bonuses(batch.batch_id)
    except Ambiguous as error:
        logger.warning("%s; the bonuses are read before anything else is done", error)
        note(payments, error.text)
        return
    except ProlificError as error:
        # Certainly not paid: refused, or never reached.
        with transaction.atomic():
            BonusBatch.objects.filter(pk=batch.pk).update(pay_requested_at=None)
            if isinstance(error, Refused):
                fail(payments, [PaymentState.CLAIMED], error.text)
            else:
                move(payments, PaymentState.CLAIMED, PaymentState.PLANNED)
        if not isinstance(error, Refused):
            raise
        return
    move(payments, PaymentState.CLAIMED, PaymentState.SENT)


def _claim_batch(batch: BonusBatch) -> bool:
    """Note, and commit, that the batch is about to be paid. Whoever gets True is the only one who may pay it.

    It is paid as it was set up: not where it has another id by now, or nothing is left in it.
    """
    with transaction.atomic():
        lock(batch.run)
        planned = of_batch(batch, PaymentState.PLANNED)
        as_set_up = BonusBatch.objects.filter(pk=batch.pk, batch_id=batch.batch_id, pay_requested_at__isnull=True)
        if not planned or not as_set_up.update(pay_requested_at=timezone.now()):
            return False
        note_equal_bonuses(planned)
        claim(planned)
    return True


def _see_what_was_paid(client: ProlificClient, run: PaymentRun) -> None:
    """Look for the bonuses in the submissions. One that is there proves that its whole batch was taken on.

    A bonus has no name by which it is known, so there must be one more of its amount than before it was asked for: the
    earlier ones were paid by somebody else.
    """
    for payment in open_payments(run, Way.BONUS).filter(state__in=ASKED_FOR):
        submission = read_there(client, run, payment)
        if submission is not None and equal_bonuses(submission, payment) > payment.equal_before:
            done(payment)
            if payment.batch is not None:
                move(of_batch(payment.batch, PaymentState.CLAIMED), PaymentState.CLAIMED, PaymentState.SENT)


def settled_before() -> datetime:
    """Bonuses asked for before this are shown by the service by now, if it has paid them."""
    return timezone.now() - timedelta(minutes=settings.BONUS_SHOWS_WITHIN_MINUTES)


def declare_unpaid(run: PaymentRun, by: str, *, seen: Collection[int]) -> int:
    """A person says that unclear bonuses were not paid; they are due again, in a new run. How many there are.

    ``seen``: the payments that were unclear on the page, as only those were looked for on Prolific. The service is
    asked once more, and what it shows by now is not among them. Raises ProlificError, RecruitmentError, and
    PaymentRefused where nothing of it is unclear.
    """
    with client_of(run.panel_study.workspace) as client:
        _see_what_was_paid(client, run)
    with transaction.atomic():
        lock(run)
        payments = list(unclear_bonuses(run, settled_before()).filter(pk__in=seen))
        if not payments:
            raise PaymentRefused(
                "Nothing is unclear any more: Prolific shows the bonuses, or they are too new to tell."
            )
        fail(payments, ASKED_FOR, f"Not paid, said {by}: Prolific showed no such bonus.")
    _finish(run, "")
    return len(payments)


def give_up_verdicts(run: PaymentRun, by: str, *, seen: Collection[int]) -> int:
    """A person ends approvals and rejections that were asked for long ago and never show. How many there are.

    ``seen``: those on the page. The service is asked once more how they stand. What still awaits review there is due
    again, in a new run; approving twice pays once. Raises ProlificError, RecruitmentError, and PaymentRefused where
    there is none.
    """
    with client_of(run.panel_study.workspace) as client:
        _see_verdicts(client, run)
    with transaction.atomic():
        lock(run)
        payments = list(unseen_verdicts(run, settled_before()).filter(pk__in=seen))
        if not payments:
            raise PaymentRefused("There is none any more: Prolific shows them, or they are too new to tell.")
        for payment in payments:
            fail([payment], ASKED_FOR, f"Given up by {by}: Prolific did not show it. {payment.error}".rstrip())
    _finish(run, _unseen_verdicts(run))
    return len(payments)
