"""What is to be paid, how far payments have got, and what a study has cost so far."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet, Sum

from studies.flow import Outcome
from studies.models import PanelStudy, Payment, PaymentRun, PaymentState, Submission
from studies.models.payments import ASKED_FOR, NOT_LIVE, OPEN_STATES, PERHAPS_DONE
from studies.pay import amount_due
from studies.recruitment.money import to_minor
from studies.recruitment.payloads import fixed_screen_out
from studies.recruitment.payments import Instruction, Standing, Terms, Way, bonuses_of, instructions
from studies.recruitment.review import NO_BONUSES, Bonuses
from studies.recruitment.statuses import SubmissionStatus
from studies.selectors.recruitment import here, screen_outs

# The state that shows that it was done.
VERDICTS = {Way.APPROVE: SubmissionStatus.APPROVED, Way.REJECT: SubmissionStatus.REJECTED}


def terms_of(panel_study: PanelStudy) -> Terms:
    study = panel_study.study
    due = {outcome: to_minor(amount_due(outcome, study.rates)) for outcome in Outcome}
    fixed = fixed_screen_out(panel_study.screen_out_pay, screen_outs(study))
    return Terms(panel_study.reward_minor, due, due[fixed] if fixed else 0)


def standing_of(submission: Submission) -> Standing:
    return Standing(
        status=SubmissionStatus(submission.status),
        entered_code=submission.entered_code,
        here=here(submission),
        settled_reason=submission.settled_reason,
        settled_with=submission.settled_with,
        return_requested=submission.return_requested,
        bonuses_minor=tuple(submission.bonuses_minor or ()),
        our_bonus_minor=_our_bonus(submission),
    )


def _our_bonus(submission: Submission) -> int:
    """What a bonus paid from here was, or perhaps was; 0 if there is none."""
    return sum(
        payment.amount_minor
        for payment in submission.payments.all()
        if payment.way == Way.BONUS and payment.state in PERHAPS_DONE
    )


def bonuses_so_far(submission: Submission) -> Bonuses:
    """What the submission's bonuses mean for anything else that it might be paid."""
    if not (submission.bonuses_minor or _our_bonus(submission)):
        return NO_BONUSES
    panel_study = PanelStudy.objects.select_related("study").get(study=submission.study_id)
    return bonuses_of(standing_of(submission), terms_of(panel_study))


def dealt_with(submission: Submission, *, beside: Payment | None = None) -> dict[Way, int]:
    """Amounts by the ways in which it was dealt with, or is just being; ``beside``: other than by this payment."""
    return {
        Way(payment.way): payment.amount_minor
        for payment in submission.payments.all()
        if payment.state not in NOT_LIVE and payment != beside
    }


def with_participations(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """With all that ``standing_of`` and ``dealt_with`` read."""
    return submissions.select_related("participation__completion_code", "participation__identity").prefetch_related(
        "payments"
    )


def due_now(panel_study: PanelStudy) -> list[tuple[Submission, Instruction]]:
    """Every payment that could be made now, by submission; what is paid or being paid is not among them."""
    terms = terms_of(panel_study)
    submissions = with_participations(Submission.objects.filter(study=panel_study.study_id)).order_by("id")
    return [
        (submission, instruction)
        for submission in submissions
        for instruction in instructions(standing_of(submission), terms, already=dealt_with(submission))
    ]


@dataclass(frozen=True)
class Total:
    """A line of a run's summary; amounts in pence."""

    way: Way
    people: int
    amount_minor: int
    each_minor: list[tuple[int, int]]  # (amount, people)


def totals(payments: list[Payment]) -> list[Total]:
    """By way, in the order of ``Way``."""
    lines = []
    for way in Way:
        amounts = Counter(payment.amount_minor for payment in payments if payment.way == way)
        if amounts:
            lines.append(
                Total(
                    way,
                    amounts.total(),
                    sum(amount * people for amount, people in amounts.items()),
                    sorted(amounts.items(), reverse=True),
                )
            )
    return lines


@dataclass(frozen=True)
class Spent:
    """What participants of a study got so far, without fees, in pence: by what the service says about submissions."""

    approved: int
    approved_minor: int
    screened_out: int
    screened_out_minor: int
    bonuses: int
    bonuses_minor: int

    @property
    def total_minor(self) -> int:
        return self.approved_minor + self.screened_out_minor + self.bonuses_minor


def spent(panel_study: PanelStudy) -> Spent:
    terms = terms_of(panel_study)
    submissions = Submission.objects.filter(study=panel_study.study_id)
    approved = submissions.filter(status=SubmissionStatus.APPROVED).count()
    screened_out = submissions.filter(status=SubmissionStatus.SCREENED_OUT).count()
    bonuses = Payment.objects.filter(
        run__panel_study=panel_study, way=Way.BONUS, state__in=[PaymentState.SENT, PaymentState.DONE]
    )
    return Spent(
        approved,
        approved * terms.reward_minor,
        screened_out,
        screened_out * terms.fixed_minor,
        bonuses.count(),
        bonuses.aggregate(total=Sum("amount_minor"))["total"] or 0,
    )


def asked_to_return(panel_study: PanelStudy) -> int:
    """People who were asked to return their submission and have not; the service approves them in the end."""
    waiting = Submission.objects.filter(study=panel_study.study_id, status=SubmissionStatus.AWAITING_REVIEW)
    returning = Q(payments__way=Way.RETURN, payments__state=PaymentState.DONE)
    return waiting.filter(Q(return_requested=True) | returning).distinct().count()


def runs_to_work_on() -> QuerySet[PaymentRun]:
    """Confirmed, with something open in them: begun now, or left by a worker that was lost."""
    return PaymentRun.objects.filter(confirmed_at__isnull=False, finished_at__isnull=True)


def unclear_bonuses(run: PaymentRun, asked_before: datetime) -> QuerySet[Payment]:
    """Asked for so long ago that the service would show them, and it neither showed nor refused them."""
    return run.payments.filter(batch__pay_requested_at__lt=asked_before, way=Way.BONUS, state__in=ASKED_FOR)


def unseen_verdicts(run: PaymentRun, asked_before: datetime) -> QuerySet[Payment]:
    """Approvals and rejections that were asked for long ago, and that no submission shows."""
    return run.payments.filter(claimed_at__lt=asked_before, way__in=VERDICTS, state__in=ASKED_FOR)


def open_payments(run: PaymentRun, *ways: Way) -> QuerySet[Payment]:
    """Of these ways."""
    return run.payments.filter(way__in=ways, state__in=OPEN_STATES).select_related("submission", "batch")
