"""Asking for a pair to be computed anew: however often and by whomever, it is done a few times only.

A request is a time in the pair's row of ``Recomputation``. While one waits, further ones change nothing; the worker
that takes it marks it as taken before it reads any rating, so that whatever changes later makes a new one. A request
goes when its results are stored, and not before: a worker that dies leaves it, and beat finds it. No clock is compared
with another.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from leaderboard.models import Board, Entry, ExternalResult, Recomputation
from leaderboard.selectors import outdated_pairs
from studies.selectors import pair_states

Pair = tuple[int, int]

# A request that has waited for so long has no message (any more), or a dead worker.
LOST_AFTER = timedelta(minutes=3)
# After so many runs in a row that failed beat no longer tries; the next change of ratings, or a person, does.
MOST_FAILURES = 5

_IS_TAKEN = Q(taken__isnull=False, taken=F("requested_at"))


def request_recomputation(attack_id: int, target_model_id: int) -> bool:
    """Note that the pair must be computed anew; False if a request waits already.

    Within a transaction the row stays locked until it ends, even if a request waits: a worker that took this one
    before then would read what was there before the transaction, and nobody would ask again.
    """
    of_pair = Recomputation.objects.filter(attack_id=attack_id, target_model_id=target_model_id)
    if not transaction.get_connection().in_atomic_block and _waiting(of_pair).exists():
        return False
    with transaction.atomic():
        row, _ = Recomputation.objects.get_or_create(attack_id=attack_id, target_model_id=target_model_id)
        # The lock makes one of two who ask at once wait, and find the other's request.
        row = Recomputation.objects.select_for_update(no_key=True).get(pk=row.pk)
        if row.requested_at is not None and row.requested_at != row.taken:
            return False
        row.requested_at, row.failures = timezone.now(), 0
        row.save(update_fields=["requested_at", "failures"])
    return True


def lost_requests() -> list[Pair]:
    """Pairs that wait although their message must be lost, or their worker dead; and those that nobody asked for."""
    lost = Recomputation.objects.filter(
        requested_at__lt=timezone.now() - LOST_AFTER, failures__lt=MOST_FAILURES
    ).values_list("attack_id", "target_model_id")
    given_up = set(
        Recomputation.objects.filter(failures__gte=MOST_FAILURES).values_list("attack_id", "target_model_id")
    )
    missed = [pair for pair in outdated_pairs() if pair not in given_up and request_recomputation(*pair)]
    return sorted({*lost, *missed})


def all_pairs() -> list[Pair]:
    """Every pair that was ever computed."""
    return sorted(Recomputation.objects.values_list("attack_id", "target_model_id"))


def pairs_of_board(board: Board) -> list[Pair]:
    """Pairs that may have results on a board: with ratings on its scale, external results, or entries in its draft."""
    scale = (board.scale_minimum, board.scale_maximum)
    rated = {
        (state.attack_id, state.target_model_id)
        for state in pair_states()
        if (state.scale_minimum, state.scale_maximum) == scale and state.is_demo == board.is_demo
    }
    external = ExternalResult.objects.filter(board=board).values_list("attack_id", "target_model_id")
    stored = Entry.objects.filter(snapshot__board=board, snapshot__status="draft")
    return sorted({*rated, *external, *stored.values_list("attack_id", "target_model_id")})


def delay_seconds() -> int:
    """How long a request waits for others to come, before a worker takes it."""
    return int(settings.RECOMPUTE_DELAY_SECONDS)


def _waiting(rows: QuerySet[Recomputation]) -> QuerySet[Recomputation]:
    return rows.filter(requested_at__isnull=False).exclude(_IS_TAKEN)
