"""What is read from the leaderboard's tables."""

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import QuerySet

from leaderboard.models import Entry
from leaderboard.statistics.ranking import rank
from studies.selectors import pair_states


def entries() -> QuerySet[Entry]:
    """All stored results with what names them, in one query."""
    return Entry.objects.select_related("board", "attack", "target_model").order_by("id")


def leagues(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The entries that are compared with one another: of one board, demonstration data apart from real data."""
    found: dict[tuple[int, bool], list[Entry]] = defaultdict(list)
    for entry in entries:
        found[entry.board_id, entry.is_demo].append(entry)
    return list(found.values())


def ranks(entries: Iterable[Entry]) -> dict[int, int | None]:
    """Each entry's rank in its league, by entry id; give it all entries, for page and API to show the same."""
    return {
        entry.pk: place
        for league in leagues(entries)
        for entry, place in zip(league, rank([entry.difference for entry in league]), strict=True)
    }


def outdated_pairs() -> list[tuple[int, int]]:
    """The (attack id, target model id) whose stored results do not match the valid participations there are now.

    Two grouped queries, whatever the number of ratings: a valid participation never changes its ratings, so their
    number, and the last time that one of them became valid or ceased to be, tell whether something was missed.
    """
    stored = {
        (entry.attack_id, entry.target_model_id, entry.board.scale_minimum, entry.board.scale_maximum): entry
        for entry in entries()
    }
    outdated = set()
    for state in pair_states():
        entry = stored.pop((state.attack_id, state.target_model_id, state.scale_minimum, state.scale_maximum), None)
        is_current = (
            state.participations == 0
            if entry is None
            else entry.participants == state.participations and entry.computed_at >= state.changed_at
        )
        if not is_current:
            outdated.add((state.attack_id, state.target_model_id))
    # What is left has no valid participation any more.
    outdated.update((attack_id, target_model_id) for attack_id, target_model_id, _, _ in stored)
    return sorted(outdated)
