from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """A key of the API, one of several of an account. Only its digest is kept: the key itself is shown once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="Where it is used, for example 'laptop'.")
    prefix = models.CharField(max_length=12, help_text="The key's first characters, to tell keys apart.")
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the key.")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
