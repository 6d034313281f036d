from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from studies.models.participation import Participation


class Verdict(models.TextChoices):
    EXCLUDE = "exclude", "Excluded"
    INCLUDE = "include", "Included"
    UNDO = "undo", "Undone"


class Decision(models.Model):
    """Whether the ratings of a participation count: by whom, when and why. Rows are only ever added.

    A decision is taken back by a further row that names it (``undoes``). The one that stands is the newest that is
    neither an undoing nor undone; without one, the outcome of the participation decides.
    """

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="decisions")
    verdict = models.CharField(max_length=10, choices=Verdict)
    undoes = models.OneToOneField("self", on_delete=models.CASCADE, null=True, blank=True, related_name="undone_by")
    reason = models.TextField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: the study's stated policy.",
    )
    counted_before = models.BooleanField(help_text="Whether the ratings would have counted without it.")
    counts_after = models.BooleanField(help_text="Whether the ratings counted after it.")
    findings = models.JSONField(default=list, help_text="What the rules said then: rule, value, threshold, flagged.")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        permissions = [("decide_participation", "Can exclude and include participations")]
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(name="decision_has_a_reason", condition=~Q(reason="")),
            models.CheckConstraint(
                name="only_an_undoing_names_what_it_undoes",
                condition=Q(verdict="undo", undoes__isnull=False) | (~Q(verdict="undo") & Q(undoes__isnull=True)),
            ),
            models.CheckConstraint(
                name="policy_only_excludes", condition=Q(author__isnull=False) | Q(verdict="exclude")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_verdict_display().lower()}: {self.participation}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise ValueError("A decision is never changed: add one that undoes it.")
        super().save(*args, **kwargs)
