"""Background work of the leaderboard."""

from leaderboard import selectors, services
from scooter_site.common.tasks import enqueue, task


@task
def recompute_entry(attack_id: int, target_model_id: int) -> None:
    """Recompute the stored results of one pair."""
    services.recompute_entry(attack_id, target_model_id)


@task
def recompute_outdated_entries() -> None:
    """Find pairs whose stored results miss a change, as after a lost message, and have them recomputed."""
    for attack_id, target_model_id in selectors.outdated_pairs():
        enqueue(recompute_entry, attack_id, target_model_id)
