"""The studies' pages for researchers."""

from studies.admin.messages import ParticipantMessageAdmin
from studies.admin.participation import ParticipationAdmin
from studies.admin.study import StudyAdmin
from studies.admin.submissions import SubmissionAdmin
from studies.admin.workspace import WorkspaceAdmin

__all__ = ["ParticipantMessageAdmin", "ParticipationAdmin", "StudyAdmin", "SubmissionAdmin", "WorkspaceAdmin"]
