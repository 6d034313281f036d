"""Studies and submissions as Prolific has them, and what it has told us.

Submissions and events hold ids of people and are restricted like ``ParticipantIdentity``; nothing else refers to them
by those ids.
"""

import uuid

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from scooter_site.common.encryption import decrypt, encrypt
from studies.models.participation import Participation
from studies.models.study import Study
from studies.recruitment.payloads import ScreenOutPay
from studies.recruitment.review import Offer, Reason
from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus

PANEL_ID = RegexValidator(r"\A[0-9a-f]{24}\Z", "Prolific's ids have 24 characters: digits and the letters a to f.")


class Workspace(models.Model):
    """A workspace at Prolific: who pays. Its token has all rights of the account, so it can be set and never read."""

    name = models.CharField(max_length=100, unique=True, help_text="For researchers here.")
    workspace_id = models.CharField(
        "workspace id", max_length=24, unique=True, validators=[PANEL_ID], help_text="In its address on Prolific."
    )
    project_id = models.CharField(
        "project id",
        max_length=24,
        blank=True,
        validators=[PANEL_ID],
        help_text="Where new studies go. Empty: the workspace's first project.",
    )
    currency = models.CharField(max_length=3, choices=[("GBP", "GBP"), ("USD", "USD")], default="GBP")
    encrypted_token = models.TextField(blank=True, editable=False)
    token_set_at = models.DateTimeField(null=True, editable=False)
    # In the address that Prolific calls, so that it tells the workspace without telling anybody else anything.
    webhook_key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    encrypted_webhook_secret = models.TextField(blank=True, editable=False)
    webhooks_set_up_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def token(self) -> str:
        """Raises CannotDecrypt."""
        return decrypt(self.encrypted_token) if self.encrypted_token else ""

    @token.setter
    def token(self, token: str) -> None:
        self.encrypted_token = encrypt(token) if token else ""

    @property
    def webhook_secret(self) -> str:
        """Raises CannotDecrypt."""
        return decrypt(self.encrypted_webhook_secret) if self.encrypted_webhook_secret else ""

    @webhook_secret.setter
    def webhook_secret(self, secret: str) -> None:
        self.encrypted_webhook_secret = encrypt(secret) if secret else ""


class PanelStudy(models.Model):
    """A study of ours on Prolific: what we ask for, and how it stands there. Its id there is the study's own field."""

    study = models.OneToOneField(Study, on_delete=models.PROTECT, related_name="panel_study")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="panel_studies")

    # Part of its internal name there, so that it is found again when the answer to its creation is lost.
    reference = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)

    # What we ask for; fixed once it is published there, but for places and slots, which only grow
    name = models.CharField(max_length=120, help_text="What participants see on Prolific.")
    description = models.TextField(help_text="Plain text; an empty line begins a new paragraph.")
    places = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    minutes = models.PositiveSmallIntegerField("estimated minutes", validators=[MinValueValidator(1)])
    reward_minor = models.PositiveIntegerField("reward in pence or cents")
    screen_out_pay = models.CharField(
        "who fails a check before the main study",
        max_length=20,
        choices=[(way.value, way.label) for way in ScreenOutPay],
        default=ScreenOutPay.FIXED,
    )
    screen_out_slots = models.PositiveIntegerField(
        "screen-out slots",
        default=0,
        help_text="So many fixed screen-outs are paid; then Prolific pauses the study until there are more slots.",
    )
    most_at_once = models.PositiveIntegerField(
        "at once",
        default=50,
        validators=[MinValueValidator(1)],
        help_text="People taking part at the same time, at most.",
    )
    filters = models.JSONField(default=list, blank=True, editable=False, help_text="As sent to Prolific.")
    filters_in_words = models.JSONField(default=list, blank=True, editable=False)
    filters_confirmed_by = models.CharField(max_length=150, blank=True, editable=False)
    filters_confirmed_at = models.DateTimeField(null=True, editable=False)

    # How it stands there
    creation_begun_at = models.DateTimeField(
        null=True, editable=False, help_text="Set before the request: its answer may get lost."
    )
    status = models.CharField(
        max_length=20, blank=True, choices=[(status.value, status.label) for status in PanelStudyStatus]
    )
    raw_status = models.CharField(max_length=50, blank=True, help_text="The service's own word.")
    places_there = models.PositiveIntegerField(null=True, editable=False)
    places_taken = models.PositiveIntegerField(null=True, editable=False)
    slots_there = models.PositiveIntegerField(null=True, editable=False)
    estimated_cost_minor = models.PositiveBigIntegerField(null=True, editable=False)
    estimated_at = models.DateTimeField(null=True, editable=False)
    read_at = models.DateTimeField(null=True, editable=False)
    sync_error = models.TextField(blank=True, editable=False)

    class Meta:
        verbose_name = "study on Prolific"
        verbose_name_plural = "studies on Prolific"
        permissions = [
            ("spend_panelstudy", "Can publish and resume studies on Prolific and add places, which spends money")
        ]

    def __str__(self) -> str:
        return f"{self.study} on Prolific"

    @property
    def panel_id(self) -> str:
        """The service's id of the study; empty before it was created there."""
        return self.study.prolific_study_id


class Submission(models.Model):
    """One person's submission on the panel, as last read there. Beside it stands what they did here, if they came."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="submissions")
    submission_id = models.CharField(max_length=64, unique=True, help_text="The SESSION_ID of the link.")
    participant_id = models.CharField(max_length=64)
    participation = models.OneToOneField(
        Participation, on_delete=models.SET_NULL, null=True, blank=True, related_name="submission"
    )
    status = models.CharField(
        max_length=20,
        choices=[(status.value, status.label) for status in SubmissionStatus],
        default=SubmissionStatus.UNKNOWN,
    )
    raw_status = models.CharField(max_length=50, blank=True, help_text="The service's own word.")
    entered_code = models.CharField(max_length=100, blank=True)
    return_requested = models.BooleanField(default=False)
    bonuses_minor = models.JSONField(null=True, blank=True, help_text="Each bonus paid; empty: not read yet.")
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(help_text="When the service was asked whose answer this is.")

    # What a person has to decide about (studies.recruitment.review)
    review_reason = models.CharField(
        max_length=40, blank=True, db_index=True, choices=[(reason.value, reason.label) for reason in Reason]
    )
    settled_reason = models.CharField(
        max_length=40, blank=True, help_text="The reason that a person has dealt with; it is not asked about again."
    )
    settled_with = models.CharField(max_length=20, blank=True, choices=[(offer.value, offer.label) for offer in Offer])
    settled_by = models.CharField(max_length=150, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["study", "status"], name="submission_by_status")]

    def __str__(self) -> str:
        return f"submission {self.pk}"


class WebhookEvent(models.Model):
    """A message of the service, kept until it is worked through and after. Says what to read again, not what is so."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="events")
    event_id = models.CharField(max_length=100, help_text="The same in every delivery of it.")
    event_type = models.CharField(max_length=60)
    resource_id = models.CharField(max_length=64)
    received_at = models.DateTimeField(auto_now_add=True)
    processed_at = models.DateTimeField(null=True, blank=True)
    result = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["workspace", "event_id"], name="webhook_event_is_kept_once")]
        indexes = [
            models.Index(
                fields=["received_at"], name="webhook_event_unprocessed", condition=Q(processed_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"
