"""The rules of ``database_rules``, and what ``derived_columns`` keeps true, in the database."""

from imagedb.database_rules import CHECKS, LOCKS
from imagedb.derived_columns import EFFECTS
from scooter_site.common.triggers import Triggers

TRIGGERS = Triggers("imagedb", CHECKS, EFFECTS, LOCKS)
broken_rule = TRIGGERS.broken_rule
