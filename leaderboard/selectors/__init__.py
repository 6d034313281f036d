"""What is read from the leaderboard's tables: for pages and API, published snapshots of public boards alone."""

from leaderboard.selectors.boards import public_boards, published_snapshot, published_snapshots, snapshots_of
from leaderboard.selectors.changes import Change, changes_between
from leaderboard.selectors.entries import (
    entries_of_attack,
    entries_of_target_model,
    entry_details,
    input_files,
    published_entries,
    published_rows,
    visible_entries,
)
from leaderboard.selectors.freshness import outdated_pairs

__all__ = [
    "Change",
    "changes_between",
    "entries_of_attack",
    "entries_of_target_model",
    "entry_details",
    "input_files",
    "outdated_pairs",
    "public_boards",
    "published_entries",
    "published_rows",
    "published_snapshot",
    "published_snapshots",
    "snapshots_of",
    "visible_entries",
]
