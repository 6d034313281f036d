"""Money on its way to participants: runs that a person confirms, the payments in them, and bonuses sent together.

A payment is never deleted and never changes its amount; its state says how far it got. What is *claimed* may have been
paid: nothing pays it again before the service's own state has been read.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q

from studies.models.recruitment import PanelStudy, Submission
from studies.recruitment.payments import GROUNDS, Way


class PaymentRun(models.Model):
    """Payments that were prepared together, and that one person checks and confirms together."""

    panel_study = models.ForeignKey(PanelStudy, on_delete=models.PROTECT, related_name="payment_runs")
    prepared_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    prepared_at = models.DateTimeField(auto_now_add=True)
    fees_minor = models.PositiveBigIntegerField(
        null=True, help_text="Fees and taxes by the service's calculator; empty: it could not be asked."
    )
    confirmed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    withdrawn_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True, help_text="Nothing in it is open any more.")
    error = models.TextField(blank=True, help_text="Why the last attempt ended early; it is tried again.")

    class Meta:
        ordering = ["-id"]
        default_permissions = ("add", "view")
        permissions = [("confirm_paymentrun", "Can confirm payment runs, which pays participants")]
        constraints = [
            models.CheckConstraint(
                name="payment_run_is_confirmed_by_somebody",
                condition=Q(confirmed_at__isnull=True, confirmed_by__isnull=True)
                | Q(confirmed_at__isnull=False, confirmed_by__isnull=False),
            ),
            models.CheckConstraint(
                name="payment_run_is_not_confirmed_and_withdrawn",
                condition=Q(confirmed_at__isnull=True) | Q(withdrawn_at__isnull=True),
            ),
            models.UniqueConstraint(
                fields=["panel_study"],
                condition=Q(confirmed_at__isnull=True, withdrawn_at__isnull=True),
                name="one_payment_run_waits_per_study",
            ),
        ]

    def __str__(self) -> str:
        return f"payment run {self.pk}"


class BonusBatch(models.Model):
    """Bonuses that the service pays in one call, which is made once: ``pay_requested_at`` is committed before it."""

    run = models.ForeignKey(PaymentRun, on_delete=models.PROTECT, related_name="batches")
    batch_id = models.CharField(max_length=64, blank=True, help_text="The service's own; empty: not set up yet.")
    total_minor = models.PositiveBigIntegerField(null=True, help_text="With fees and taxes, as the service said.")
    pay_requested_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="bonus_batch_is_set_up_before_it_is_paid",
                condition=Q(pay_requested_at__isnull=True) | ~Q(batch_id=""),
            ),
        ]

    def __str__(self) -> str:
        return f"bonus batch {self.pk}"


class PaymentState(models.TextChoices):
    PLANNED = "planned", "To be done"
    CLAIMED = "claimed", "Asked for, not answered"
    SENT = "sent", "Taken on by Prolific"
    DONE = "done", "Done"
    FAILED = "failed", "Not done"
    WITHDRAWN = "withdrawn", "Withdrawn"


OPEN_STATES = [PaymentState.PLANNED, PaymentState.CLAIMED, PaymentState.SENT]
# Of the service, which has neither shown nor refused it.
ASKED_FOR = [PaymentState.CLAIMED, PaymentState.SENT]
# The participant may have got it.
PERHAPS_DONE = [PaymentState.CLAIMED, PaymentState.SENT, PaymentState.DONE]
NOT_LIVE = [PaymentState.FAILED, PaymentState.WITHDRAWN]
# What stands in the way of another payment of the same submission by the same way.
LIVE = ~Q(state__in=NOT_LIVE)


class Payment(models.Model):
    """One submission approved, rejected, given a bonus or asked for. That each is done once, the database holds."""

    run = models.ForeignKey(PaymentRun, on_delete=models.PROTECT, related_name="payments")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="payments")
    way = models.CharField(max_length=10, choices=[(way.value, way.label) for way in Way])
    amount_minor = models.PositiveIntegerField(help_text="What the participant gets, in pence or cents.")
    reason = models.CharField(max_length=200)
    rejection_category = models.CharField(max_length=30, blank=True, choices=list(GROUNDS.items()))
    rejection_message = models.TextField(blank=True, help_text="What the participant reads.")
    state = models.CharField(max_length=10, choices=PaymentState, default=PaymentState.PLANNED)
    batch = models.ForeignKey(BonusBatch, on_delete=models.PROTECT, null=True, related_name="payments")
    claimed_at = models.DateTimeField(null=True)
    equal_before = models.PositiveSmallIntegerField(
        default=0, help_text="How many bonuses of this amount the submission showed when this one was asked for."
    )
    done_at = models.DateTimeField(null=True, help_text="When the service's own state showed it.")
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["submission", "way"], condition=LIVE, name="submission_is_dealt_with_once"),
            models.UniqueConstraint(
                fields=["submission"],
                condition=LIVE & Q(way__in=[Way.APPROVE, Way.REJECT]),
                name="submission_is_approved_or_rejected",
            ),
            models.CheckConstraint(
                name="only_approval_and_bonus_pay",
                condition=Q(way__in=[Way.APPROVE, Way.BONUS], amount_minor__gt=0)
                | Q(way__in=[Way.RETURN, Way.REJECT], amount_minor=0),
            ),
            models.CheckConstraint(
                name="rejection_says_why",
                condition=(Q(way=Way.REJECT) & ~Q(rejection_category="") & ~Q(rejection_message=""))
                | (~Q(way=Way.REJECT) & Q(rejection_category="", rejection_message="")),
            ),
        ]
        indexes = [models.Index(fields=["run", "state"], name="payment_by_run_and_state")]

    def __str__(self) -> str:
        return f"payment {self.pk}"
