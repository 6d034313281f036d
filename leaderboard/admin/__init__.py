"""Boards, snapshots, entries and results from elsewhere in the admin."""

from leaderboard.admin.board import BoardAdmin
from leaderboard.admin.entry import EntryAdmin
from leaderboard.admin.external import ExternalResultAdmin
from leaderboard.admin.recomputation import RecomputationAdmin
from leaderboard.admin.snapshot import SnapshotAdmin

__all__ = ["BoardAdmin", "EntryAdmin", "ExternalResultAdmin", "RecomputationAdmin", "SnapshotAdmin"]
