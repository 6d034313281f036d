"""What was published before: one pair through the snapshots of its board, and all of them."""

from django.db.models import QuerySet

from leaderboard.models import Entry, SnapshotStatus
from leaderboard.selectors.entries import HEAVY_FIELDS
from leaderboard.selectors.rows import Row, is_hidden


def history_of(entry: Row) -> list[Entry]:
    """The entries of the same pair in all snapshots that were ever published, newest first. One query.

    Each is asked whether it may be seen: an earlier one may follow from an external result that was withdrawn. Ranks
    are those of the time of publication.
    """
    return list(
        Entry.objects.filter(
            snapshot__board=entry.snapshot.board_id, attack=entry.attack_id, target_model=entry.target_model_id
        )
        .exclude(snapshot__status=SnapshotStatus.DRAFT)
        .exclude(is_hidden())
        .select_related("snapshot")
        .defer(*HEAVY_FIELDS)
        .order_by("-snapshot__number")
    )


def rows_of_all_snapshots() -> QuerySet[Entry]:
    """The rows of everything that was ever published on a public board and may be seen now, as they are stored."""
    rows = Entry.objects.filter(snapshot__board__is_public=True).exclude(snapshot__status=SnapshotStatus.DRAFT)
    return (
        rows.exclude(is_hidden())
        .select_related("snapshot__board", "attack", "target_model", "external_result")
        .defer(*HEAVY_FIELDS)
    )
