"""How recruitment stands: submissions beside participations, what waits for a person, what is to be read again."""

from datetime import datetime
from decimal import Decimal

from django.db.models import Count, Q, QuerySet

from studies.flow import Outcome
from studies.models import PanelStudy, Study, Submission, WebhookEvent
from studies.pay import amount_due
from studies.recruitment.review import ABSENT, Here
from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus


def here(submission: Submission) -> Here:
    """What the person of a submission did here, and whether it is the person whom the panel names."""
    participation = submission.participation
    if participation is None:
        return ABSENT
    code = participation.completion_code
    identity = getattr(participation, "identity", None)
    named = {submission.participant_id, identity.participant_id if identity else ""} - {""}
    return Here(
        arrived=True,
        outcome=Outcome(participation.outcome) if participation.outcome else None,
        code=code.code if code else "",
        is_other_person=len(named) > 1,
    )


def screen_outs(study: Study) -> dict[Outcome, Decimal]:
    """What is due to who fails a check before the main study, for the checks that the study has."""
    checks = {
        Outcome.COLOUR_CHECK_FAILED: study.plate_count,
        Outcome.COMPREHENSION_FAILED: study.comprehension_pair_count,
    }
    return {outcome: amount_due(outcome, study.rates) for outcome, count in checks.items() if count}


def submissions_to_review() -> QuerySet[Submission]:
    """Those that a person has to decide about."""
    return Submission.objects.exclude(review_reason="")


def submission_counts(panel_study: PanelStudy) -> dict[str, int]:
    """Submissions of a study by status."""
    rows = Submission.objects.filter(study=panel_study.study_id).order_by().values_list("status")
    return dict(rows.annotate(Count("id")))


def is_out_of_slots(panel_study: PanelStudy) -> bool:
    """Whether Prolific has paused the study because every fixed screen-out is used: raise the slots, then resume."""
    if panel_study.status != PanelStudyStatus.PAUSED or panel_study.slots_there is None:
        return False
    screened_out = Submission.objects.filter(study=panel_study.study_id, status=SubmissionStatus.SCREENED_OUT)
    return screened_out.count() >= panel_study.slots_there


def studies_to_read(finished_not_since: datetime) -> QuerySet[PanelStudy]:
    """Studies on the panel that may have changed: all but finished ones that were read since then.

    Drafts too: one may have been published there, or from here by a call whose answer was lost.
    """
    there = PanelStudy.objects.exclude(study__prolific_study_id="")
    return there.exclude(Q(status=PanelStudyStatus.COMPLETED) & Q(read_at__gte=finished_not_since))


def waiting_events(received_before: datetime) -> QuerySet[WebhookEvent]:
    """Events whose task was lost or could not reach the service."""
    return WebhookEvent.objects.filter(processed_at__isnull=True, received_at__lt=received_before)
