from django.conf import settings
from django.db import models
from django.db.models import Q

from leaderboard.models.board import Board


class SnapshotStatus(models.TextChoices):
    DRAFT = "draft", "Draft"
    PUBLISHED = "published", "Published"
    RETRACTED = "retracted", "Retracted"


class Snapshot(models.Model):
    """The entries of a board at one time.

    Each board has one draft, which follows the ratings. Publishing copies it to a snapshot with a number, which never
    changes again (leaderboard/database_rules.py); it can be retracted, with a reason, and stays readable.
    """

    board = models.ForeignKey(Board, on_delete=models.PROTECT, related_name="snapshots")
    number = models.PositiveIntegerField(null=True, blank=True, help_text="1, 2, ... on its board; a draft has none.")
    status = models.CharField(max_length=10, choices=SnapshotStatus, default=SnapshotStatus.DRAFT)
    # What its entries follow from
    rules = models.JSONField(default=dict, help_text="The board's rules as they were; of a draft those of now apply.")
    seed = models.PositiveIntegerField(default=0, help_text="Of everything that is drawn at random.")
    data_cutoff = models.DateTimeField(
        null=True, blank=True, help_text="The newest change of what counts that is in it; later ones are not."
    )
    code_version = models.CharField(max_length=64, blank=True, help_text="Of the program that computed the entries.")
    input_digest = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 over the digests of its entries' inputs, and the rules."
    )
    entry_count = models.PositiveIntegerField(default=0, editable=False, help_text="Once published.")
    # Life
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: the board's policy.",
    )
    note = models.TextField(blank=True, help_text="What a person said of it when publishing.")
    retracted_at = models.DateTimeField(null=True, blank=True)
    retracted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    retraction_reason = models.TextField(blank=True)

    class Meta:
        ordering = ["board", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["board"], condition=Q(status="draft"), name="one_draft_snapshot_per_board"),
            models.UniqueConstraint(fields=["board", "number"], name="snapshot_number_once_per_board"),
            models.CheckConstraint(
                name="snapshot_has_a_number_once_published",
                condition=Q(status="draft", number__isnull=True, published_at__isnull=True)
                | (
                    Q(status__in=["published", "retracted"], number__gte=1, published_at__isnull=False)
                    & ~Q(input_digest="")
                ),
            ),
            models.CheckConstraint(
                name="retracted_snapshot_has_a_reason",
                condition=(Q(status="retracted", retracted_at__isnull=False) & ~Q(retraction_reason=""))
                | (~Q(status="retracted") & Q(retracted_at__isnull=True, retraction_reason="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.board}, {'draft' if self.number is None else f'snapshot {self.number}'}"

    @property
    def is_draft(self) -> bool:
        return self.status == SnapshotStatus.DRAFT

    @property
    def is_retracted(self) -> bool:
        return self.status == SnapshotStatus.RETRACTED

    @property
    def label(self) -> str:
        """Its number, and whether it still counts: whatever tells of a snapshot says both."""
        return f"snapshot {self.number}{' (retracted)' if self.is_retracted else ''}"

    @property
    def bound(self) -> float:
        """The equivalence bound in points that its entries were tested against."""
        return float(self.rules["equivalence_bound"]) if self.rules else self.board.bound

    @property
    def alpha(self) -> float:
        """The level of each of the two one-sided tests that its verdicts follow from."""
        return float(self.rules["alpha"]) if self.rules else self.board.alpha
