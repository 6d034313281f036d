import uuid

from django.db import models
from django.db.models import Q

from studies.flow import Outcome, Step
from studies.models.materials import CompletionCode, Dataset, StudyText
from studies.models.study import Study


class ParticipationKind(models.TextChoices):
    """Only real participations count; a demonstration study also counts its test ones (its bots)."""

    REAL = "real", "Real"
    TEST = "test", "Test (bots and test links)"
    PREVIEW = "preview", "Preview (deleted when left)"


class Participation(models.Model):
    """One person's way through one study. Holds no panel id: those are in ``ParticipantIdentity``."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="participations")
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=10, choices=ParticipationKind, default=ParticipationKind.REAL)
    step = models.CharField(max_length=15, choices=[(s.value, s.value) for s in Step], default=Step.CONSENT)
    outcome = models.CharField(max_length=25, blank=True, choices=[(o.value, o.label) for o in Outcome])
    is_valid = models.BooleanField(
        default=False, help_text="Its ratings count: every answer was given, and nobody and no rule excluded it."
    )
    validity_changed_at = models.DateTimeField(
        null=True, blank=True, help_text="When its ratings began to count or ceased to; empty if they never did."
    )
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, null=True, blank=True, related_name="participations")
    lease_expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Until then an unfinished participation holds its place in the dataset."
    )
    consent_text = models.ForeignKey(StudyText, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    consented_at = models.DateTimeField(null=True, blank=True)
    comprehension_attempt = models.PositiveSmallIntegerField(default=1)
    attention_failures = models.PositiveSmallIntegerField(default=0)
    completion_code = models.ForeignKey(
        CompletionCode,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The code that was shown; fixed at the end, whatever is decided later.",
    )
    viewport_width = models.PositiveSmallIntegerField(null=True, blank=True)
    viewport_height = models.PositiveSmallIntegerField(null=True, blank=True)
    device_pixel_ratio = models.FloatField(null=True, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["study", "kind", "outcome"], name="participation_by_outcome")]
        constraints = [
            models.CheckConstraint(
                name="ended_participation_has_outcome_and_time",
                condition=(Q(step=Step.END, finished_at__isnull=False) & ~Q(outcome=""))
                | (~Q(step=Step.END) & Q(outcome="", finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="valid_participation_reached_the_end",
                condition=Q(is_valid=False) | Q(outcome__in=[Outcome.COMPLETED, Outcome.ATTENTION_FAILED]),
            ),
        ]

    def __str__(self) -> str:
        return f"participation {str(self.public_id)[:8]}"


class ParticipantIdentity(models.Model):
    """The panel's ids of a participation: personal data, kept apart and shown to nobody who need not see it."""

    participation = models.OneToOneField(Participation, on_delete=models.CASCADE, related_name="identity")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="+")
    participant_id = models.CharField(max_length=64, help_text="PROLIFIC_PID, or the id in the researcher's own link.")
    session_id = models.CharField(max_length=64, help_text="SESSION_ID: one participation each.")

    class Meta:
        verbose_name_plural = "participant identities"
        constraints = [
            models.UniqueConstraint(fields=["study", "session_id"], name="one_participation_per_panel_session"),
        ]
        indexes = [models.Index(fields=["study", "participant_id"], name="identity_by_participant")]

    def __str__(self) -> str:
        return f"identity of {self.participation}"


class ParticipationEvent(models.Model):
    """The timeline of a participation: what happened, and when by the server's clock."""

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    name = models.CharField(max_length=40)
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class FeedbackAnswer(models.Model):
    """One optional answer after the main study."""

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="feedback")
    text = models.ForeignKey(
        StudyText, on_delete=models.PROTECT, related_name="+", help_text="The version of the questions that was shown."
    )
    item = models.CharField(max_length=40, help_text="Name of the question in that text.")
    answer = models.TextField(help_text="Of a question with choices the number of the one taken, from 1.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["participation", "item"], name="one_feedback_answer_per_item")]

    def __str__(self) -> str:
        return self.item
