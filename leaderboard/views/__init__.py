"""The public pages. They read stored rows and compute no statistics."""

from leaderboard.views.attacks import attack, attacks
from leaderboard.views.board_files import board_inputs, board_plot_file, board_table_file
from leaderboard.views.boards import board, board_plot, leaderboard
from leaderboard.views.entries import entry, entry_badge, entry_plot_file
from leaderboard.views.home import home
from leaderboard.views.snapshots import snapshots
from leaderboard.views.target_models import target_model, target_models

__all__ = [
    "attack",
    "attacks",
    "board",
    "board_inputs",
    "board_plot",
    "board_plot_file",
    "board_table_file",
    "entry",
    "entry_badge",
    "entry_plot_file",
    "home",
    "leaderboard",
    "snapshots",
    "target_model",
    "target_models",
]
