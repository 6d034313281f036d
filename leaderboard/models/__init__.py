"""Boards, their snapshots, the entries of these, what was measured elsewhere, and what waits to be computed."""

from leaderboard.models.board import Board, PublicationPolicy
from leaderboard.models.entry import Entry, EntryVerdict, Flag
from leaderboard.models.external import ExternalResult
from leaderboard.models.recomputation import Recomputation
from leaderboard.models.snapshot import Snapshot, SnapshotStatus

__all__ = [
    "Board",
    "Entry",
    "EntryVerdict",
    "ExternalResult",
    "Flag",
    "PublicationPolicy",
    "Recomputation",
    "Snapshot",
    "SnapshotStatus",
]
