"""The rules of ``database_rules`` in the database."""

from leaderboard.database_rules import CHECKS
from scooter_site.common.triggers import Triggers

TRIGGERS = Triggers("leaderboard", CHECKS)
