"""What the leaderboard does when something happens below it."""

from typing import Any

from django.dispatch import receiver

from leaderboard.services.requests import delay_seconds, request_recomputation
from leaderboard.tasks import recompute_pair
from scooter_site.common.tasks import enqueue
from studies.signals import valid_ratings_changed


@receiver(valid_ratings_changed)
def recompute_changed_pair(sender: object, attack_id: int, target_model_id: int, **kwargs: Any) -> None:
    """Have a worker recompute the pair in a few seconds; what else changes until then comes with it."""
    if request_recomputation(attack_id, target_model_id):
        enqueue(recompute_pair, attack_id, target_model_id, countdown=delay_seconds())
