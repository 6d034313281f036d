"""What the leaderboard does when something happens below it."""

from typing import Any

from django.dispatch import receiver

from leaderboard.tasks import recompute_entry
from scooter_site.common.tasks import enqueue
from studies.signals import valid_ratings_changed


@receiver(valid_ratings_changed)
def recompute_changed_pair(sender: object, attack_id: int, target_model_id: int, **kwargs: Any) -> None:
    enqueue(recompute_entry, attack_id, target_model_id)
