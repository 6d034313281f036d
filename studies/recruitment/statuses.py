"""What Prolific calls the states of studies and submissions, in one spelling each.

The service writes "AWAITING REVIEW" in answers and "AWAITING_REVIEW" in filters, "TIMED-OUT" in both, and may add
states at any time. What it wrote is kept beside what we read in it.
"""

import re
from enum import StrEnum


class PanelStudyStatus(StrEnum):
    """State of a study on the panel."""

    UNPUBLISHED = "unpublished"
    SCHEDULED = "scheduled"
    PUBLISHING = "publishing"
    ACTIVE = "active"
    PAUSED = "paused"
    AWAITING_REVIEW = "awaiting_review"
    COMPLETED = "completed"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        return {
            PanelStudyStatus.UNPUBLISHED: "Draft",
            PanelStudyStatus.SCHEDULED: "Scheduled",
            PanelStudyStatus.PUBLISHING: "Being published",
            PanelStudyStatus.ACTIVE: "Recruiting",
            PanelStudyStatus.PAUSED: "Paused",
            PanelStudyStatus.AWAITING_REVIEW: "All places taken, awaiting review",
            PanelStudyStatus.COMPLETED: "Completed",
            PanelStudyStatus.UNKNOWN: "Unknown state",
        }[self]


class SubmissionStatus(StrEnum):
    """State of one person's submission on the panel."""

    RESERVED = "reserved"
    ACTIVE = "active"
    AWAITING_REVIEW = "awaiting_review"
    APPROVED = "approved"
    PARTIALLY_APPROVED = "partially_approved"
    REJECTED = "rejected"
    RETURNED = "returned"
    TIMED_OUT = "timed_out"
    SCREENED_OUT = "screened_out"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ").capitalize()


NO_CODE = "NOCODE"  # what stands in place of a completion code where somebody submitted without one


def study_status(raw: str) -> PanelStudyStatus:
    """The state that the service's word means; UNKNOWN for a word that is not known."""
    try:
        return PanelStudyStatus(_one_spelling(raw))
    except ValueError:
        return PanelStudyStatus.UNKNOWN


def submission_status(raw: str) -> SubmissionStatus:
    """The state that the service's word means; UNKNOWN for a word that is not known."""
    try:
        return SubmissionStatus(_one_spelling(raw))
    except ValueError:
        return SubmissionStatus.UNKNOWN


def _one_spelling(raw: str) -> str:
    return re.sub(r"[\s_-]+", "_", raw.strip()).lower()
