from django.conf import settings
from django.db import models


class TermsAcceptance(models.Model):
    """An account's word that it keeps the terms under which ImageNet images are passed on."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="terms_acceptances")
    version = models.CharField(max_length=20, help_text="Of the terms (imagedb/terms.py).")
    accepted_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-accepted_at"]
        constraints = [
            models.UniqueConstraint(fields=["user", "version"], name="terms_accepted_once_per_version"),
        ]

    def __str__(self) -> str:
        return f"Terms {self.version}, accepted {self.accepted_at:%Y-%m-%d %H:%M} UTC"
