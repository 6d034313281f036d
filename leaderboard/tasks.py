"""Background work of the leaderboard."""

from leaderboard.models import Board, PublicationPolicy, Recomputation
from leaderboard.services import publication, recompute, requests
from scooter_site.common.tasks import RETRYABLE, enqueue, task


@task
def recompute_pair(attack_id: int, target_model_id: int) -> None:
    """Recompute the results of one pair, if somebody asked for it; publish them where the board does so at once."""
    waits = Recomputation.objects.filter(
        attack_id=attack_id, target_model_id=target_model_id, requested_at__isnull=False
    )
    if not waits.exists():
        return  # delivered twice, or another worker was faster
    try:
        changed = recompute.recompute_pair(attack_id, target_model_id)
    except RETRYABLE:
        raise  # tried again, a few times
    except Exception as error:
        recompute.note_failure(attack_id, target_model_id, error)
        raise
    for board in changed:
        publication.publish_by_policy(board, PublicationPolicy.AT_ONCE)


@task
def recompute_outdated_entries() -> None:
    """Find pairs whose results miss a change, as after a lost message or worker, and have them recomputed."""
    for pair in requests.lost_requests():
        enqueue(recompute_pair, *pair)
    for board in Board.objects.filter(publication_policy=PublicationPolicy.AT_ONCE):
        publication.publish_by_policy(board, PublicationPolicy.AT_ONCE)


@task
def refresh_entries() -> None:
    """Once a day all pairs are looked at again: what the catalogue knows of images may have changed, or the program."""
    for pair in requests.all_pairs():
        if requests.request_recomputation(*pair):
            enqueue(recompute_pair, *pair)


@task
def publish_daily() -> None:
    """Publish the boards whose policy says so, if anything has changed."""
    for board in Board.objects.filter(publication_policy=PublicationPolicy.DAILY):
        publication.publish_by_policy(board, PublicationPolicy.DAILY)
