"""Which stored results miss something."""

from collections.abc import Iterable
from typing import Any

from leaderboard.models import Recomputation
from studies.selectors import PairState, pair_states


def outdated_pairs() -> list[tuple[int, int]]:
    """The (attack id, target model id) whose results do not follow from the valid participations there are now.

    Two queries, whatever the number of ratings: a valid participation never changes its ratings, so their number, and
    the last time that one of them became valid or ceased to be, tell whether something was missed.
    """
    covered = {
        (row.attack_id, row.target_model_id): row.covered
        for row in Recomputation.objects.only("attack_id", "target_model_id", "covered")
    }
    now: dict[tuple[int, int], list[PairState]] = {}
    for state in pair_states():
        now.setdefault((state.attack_id, state.target_model_id), []).append(state)
    pairs = now.keys() | covered.keys()
    return sorted(pair for pair in pairs if as_covered(now.get(pair, [])) != covered.get(pair, []))


def as_covered(states: Iterable[PairState]) -> list[list[Any]]:
    """The states of a pair as ``Recomputation.covered`` keeps them."""
    return [
        [
            state.scale_minimum,
            state.scale_maximum,
            state.protocol,
            state.is_demo,
            state.participations,
            state.changed_at.isoformat(),
        ]
        for state in states
    ]
