"""What is read from the leaderboard's tables."""

from collections import defaultdict

from django.db.models import QuerySet

from leaderboard.models import Entry
from leaderboard.statistics.ranking import rank


def entries() -> QuerySet[Entry]:
    """All stored results with what names them, in one query."""
    return Entry.objects.select_related("board", "attack", "target_model").order_by("id")


def ranks() -> dict[int, int | None]:
    """Each entry's rank, by entry id: among the entries of its board, demonstration data apart from real data."""
    leagues: dict[tuple[int, bool], list[tuple[int, float | None]]] = defaultdict(list)
    for entry_id, board_id, is_demo, difference in Entry.objects.values_list(
        "id", "board_id", "is_demo", "difference"
    ):
        leagues[board_id, is_demo].append((entry_id, difference))
    return {
        entry_id: place
        for league in leagues.values()
        for (entry_id, _), place in zip(league, rank([difference for _, difference in league]), strict=True)
    }
