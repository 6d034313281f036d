from django.db import models
from django.db.models import Q

from imagedb.models import Attack, TargetModel


class Board(models.Model):
    """What is compared with what: results on one rating scale. Every value is stored "higher = more modified"."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True)
    scale_minimum = models.IntegerField()
    scale_maximum = models.IntegerField()
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["scale_minimum", "scale_maximum"], name="one_board_per_scale"),
            models.CheckConstraint(
                condition=Q(scale_minimum__lt=models.F("scale_maximum")), name="board_scale_is_not_empty"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Entry(models.Model):
    """The stored result of one (attack, target model) pair on one board.

    Pages and API read these rows and compute nothing. A value is null where it is not defined (no ratings of a
    kind, a standard deviation of one rating), never NaN.
    """

    board = models.ForeignKey(Board, on_delete=models.PROTECT, related_name="entries")
    attack = models.ForeignKey(Attack, on_delete=models.PROTECT, related_name="entries")
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="entries")
    participants = models.PositiveIntegerField()
    ratings = models.PositiveIntegerField()
    images_modified = models.PositiveIntegerField("modified images")
    images_clean = models.PositiveIntegerField("clean images")
    ratings_modified = models.PositiveIntegerField("ratings of modified images")
    ratings_clean = models.PositiveIntegerField("ratings of clean images")
    mean_modified = models.FloatField(null=True)
    sd_modified = models.FloatField("SD modified", null=True)
    mean_clean = models.FloatField(null=True)
    sd_clean = models.FloatField("SD clean", null=True)
    difference = models.FloatField(
        null=True, help_text="Mean of modified minus mean of clean: above zero, people notice the modification."
    )
    is_demo = models.BooleanField("demonstration data", default=False)
    input_digest = models.CharField(
        max_length=64, help_text="SHA-256 over the ratings that went in: equal digests, equal results."
    )
    computed_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "entries"
        constraints = [
            models.UniqueConstraint(fields=["board", "attack", "target_model"], name="one_entry_per_pair_and_board"),
        ]

    def __str__(self) -> str:
        return f"{self.attack} on {self.target_model}"
