from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from imagedb.models import Attack, TargetModel
from leaderboard.models.board import Board
from scooter_site.common.storage import opaque_name, private_storage


class HighMeans(models.TextChoices):
    MODIFIED = "modified", "Modified"
    CLEAN = "clean", "Unmodified"


class ExternalResult(models.Model):
    """Ratings of a pair that were collected elsewhere, with where they come from; marked as such wherever shown.

    Never changed: a mistake is withdrawn and uploaded again. Its ids of participants are never published
    (leaderboard/inputs.py).
    """

    board = models.ForeignKey(Board, on_delete=models.PROTECT, related_name="external_results")
    attack = models.ForeignKey(Attack, on_delete=models.PROTECT, related_name="external_results")
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="external_results")
    high_means = models.CharField("a high rating means", max_length=10, choices=HighMeans, default=HighMeans.MODIFIED)
    file = models.FileField("ratings", storage=private_storage, upload_to=opaque_name("external"), max_length=200)
    file_sha256 = models.CharField("SHA-256 of the file", max_length=64, editable=False)
    file_bytes = models.PositiveBigIntegerField("size in bytes", editable=False)
    secret = models.CharField(
        max_length=64, editable=False, help_text="Makes public ids of its participants that nobody can trace back."
    )
    citation = models.TextField(help_text="How the authors want it cited.")
    source_url = models.URLField("where it is published", blank=True)
    attack_success_rate = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="As its authors state it, 0 to 1.",
    )
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, editable=False, related_name="+"
    )
    added_at = models.DateTimeField(auto_now_add=True)
    withdrawn_at = models.DateTimeField(null=True, editable=False, help_text="Since then it is shown nowhere.")
    withdrawal_reason = models.TextField(blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["board", "attack", "target_model"],
                condition=Q(withdrawn_at__isnull=True),
                name="one_external_result_per_pair_and_board",
                violation_error_message="The board has an external result of this pair. Withdraw it first.",
            ),
            models.CheckConstraint(
                name="withdrawn_result_has_a_reason",
                condition=Q(withdrawn_at__isnull=True, withdrawal_reason="")
                | (Q(withdrawn_at__isnull=False) & ~Q(withdrawal_reason="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.attack} on {self.target_model}, from elsewhere"
