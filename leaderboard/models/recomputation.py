from django.db import models

from imagedb.models import Attack, TargetModel


class Recomputation(models.Model):
    """Whether the results of a pair wait to be computed anew, and what they last followed from. One row per pair.

    Requests coalesce here: while one waits, further ones change nothing.
    """

    attack = models.ForeignKey(Attack, on_delete=models.CASCADE, related_name="+")
    target_model = models.ForeignKey(TargetModel, on_delete=models.CASCADE, related_name="+")
    requested_at = models.DateTimeField(null=True, help_text="Since when it waits; empty: nothing does.")
    taken = models.DateTimeField(
        null=True, help_text="The request that a worker last began with; a later one is another, and waits."
    )
    failures = models.PositiveSmallIntegerField(default=0, help_text="Runs in a row that failed.")
    problem = models.TextField(blank=True, help_text="Why the last run failed.")
    covered = models.JSONField(
        default=list, help_text="The state of the valid participations that the stored results follow from."
    )
    runs = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["attack", "target_model"], name="one_recomputation_per_pair"),
        ]

    def __str__(self) -> str:
        return f"{self.attack} on {self.target_model}"
