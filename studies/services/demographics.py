"""Importing what the panel says about people."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from studies.models import Demographics, Study, Submission
from studies.recruitment.demographics import read_export


@dataclass(frozen=True)
class Imported:
    """``unknown``: rows of the file whose submission is not among those of the study."""

    people: int
    unknown: int


def import_demographics(study: Study, content: bytes) -> Imported:
    """Take over an export; what was imported before about the same submissions is replaced.

    So a later export, in which people have taken answers back, removes them here too. Raises UnreadableExport, and
    then nothing has changed.
    """
    rows = {row.submission_id: row.answers for row in read_export(content)}
    with transaction.atomic():
        submissions = Submission.objects.filter(study=study, submission_id__in=rows)
        known = dict(submissions.values_list("submission_id", "id"))
        Demographics.objects.filter(submission__in=known.values()).delete()
        now = timezone.now()
        Demographics.objects.bulk_create(
            Demographics(submission_id=known[submission_id], answers=answers, imported_at=now)
            for submission_id, answers in rows.items()
            if submission_id in known
        )
    return Imported(len(known), len(rows) - len(known))


def delete_demographics(study: Study) -> int:
    """Forget all of a study, as when its retention ends; of how many people."""
    count, _ = Demographics.objects.filter(submission__study=study).delete()
    return count
