from django.db import models

from studies.models.recruitment import Submission


class Demographics(models.Model):
    """What a panel says about a person: personal data, in a table of its own and never beside ratings."""

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="demographics")
    answers = models.JSONField(help_text="By the column's header in the panel's file; what was withdrawn is missing.")
    imported_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "demographics"
        default_permissions = ("add", "view", "delete")

    def __str__(self) -> str:
        return f"demographics of {self.submission}"
