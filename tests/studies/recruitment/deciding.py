"""Somebody who opens a submission's page and decides at once."""

from studies.models import Submission
from studies.recruitment.review import Offer
from studies.services import recruitment_sync


def decide(submission: Submission, offer: Offer, by: str = "ada") -> Submission:
    return recruitment_sync.settle(submission.pk, offer, by, seen=recruitment_sync.fingerprint(submission))
