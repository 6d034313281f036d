"""The studies' pages for researchers."""

from studies.admin.demographics import DemographicsAdmin
from studies.admin.messages import ParticipantMessageAdmin
from studies.admin.participation import ParticipationAdmin
from studies.admin.payments import PaymentRunAdmin
from studies.admin.study import StudyAdmin
from studies.admin.submissions import SubmissionAdmin
from studies.admin.workspace import WorkspaceAdmin

__all__ = [
    "DemographicsAdmin",
    "ParticipantMessageAdmin",
    "ParticipationAdmin",
    "PaymentRunAdmin",
    "StudyAdmin",
    "SubmissionAdmin",
    "WorkspaceAdmin",
]
