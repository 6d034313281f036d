"""The public pages. They read stored rows and compute no statistics."""

from leaderboard.views.attacks import attack, attacks
from leaderboard.views.board import home, leaderboard
from leaderboard.views.target_models import target_model, target_models

__all__ = ["attack", "attacks", "home", "leaderboard", "target_model", "target_models"]
