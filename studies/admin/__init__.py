"""The studies' pages for researchers."""

from studies.admin.messages import ParticipantMessageAdmin
from studies.admin.participation import ParticipationAdmin
from studies.admin.study import StudyAdmin

__all__ = ["ParticipantMessageAdmin", "ParticipationAdmin", "StudyAdmin"]
