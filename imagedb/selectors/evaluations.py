"""How often attacks fooled target models, as far as anybody may know."""

from django.db.models import QuerySet

from imagedb.models import AttackEvaluation
from imagedb.selectors.visibility import is_private_pair


def public_evaluations() -> QuerySet[AttackEvaluation]:
    """All but those of pairs that are private; by name, with their target models."""
    return AttackEvaluation.objects.exclude(is_private_pair()).select_related("target_model")
