"""What the leaderboard does when something happens below it."""

from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from imagedb.models import AttackEvaluation
from leaderboard.services.requests import delay_seconds, request_recomputation
from leaderboard.tasks import recompute_pair
from scooter_site.common.tasks import enqueue
from studies.signals import valid_ratings_changed


@receiver(valid_ratings_changed)
def recompute_changed_pair(sender: object, attack_id: int, target_model_id: int, **kwargs: Any) -> None:
    """Have a worker recompute the pair in a few seconds; what else changes until then comes with it."""
    if request_recomputation(attack_id, target_model_id):
        enqueue(recompute_pair, attack_id, target_model_id, countdown=delay_seconds())


@receiver([post_save, post_delete], sender=AttackEvaluation)
def recompute_evaluated_pair(sender: object, instance: AttackEvaluation, **kwargs: Any) -> None:
    """The pair's entries count the attempts that are stated."""
    recompute_changed_pair(sender, instance.attack_id, instance.target_model_id)
