"""Staying in step with Prolific: what its webhooks and a slow poll tell us to read, and what follows from it here.

An event only says what to read again, so that events may come late, twice, and in any order.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from scooter_site.common.as_seen import digest_of
from studies.flow import Outcome, Step
from studies.models import PanelStudy, ParticipantIdentity, Participation, Submission, WebhookEvent
from studies.recruitment.answers import PanelStudyState, SubmissionState
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import Ambiguous, NotAllowed, NotFound, ProlificError, TooManyRequests, Unavailable
from studies.recruitment.review import ABSENT, Meaning, Offer, Reason, meaning
from studies.recruitment.statuses import SubmissionStatus
from studies.selectors.payments import bonuses_so_far, with_participations
from studies.selectors.recruitment import here, waiting_events
from studies.services.pointer import locked_participation, record
from studies.services.recruitment import RecruitmentError, client_of, store
from studies.services.time_out import return_participation

logger = logging.getLogger(__name__)

RETURN_TAKES = timedelta(days=7)
EVENTS_ARE_KEPT = timedelta(days=30)
# As long as the service itself tries to deliver one; the poll has read what it is about many times by then.
EVENTS_ARE_TRIED_FOR = timedelta(days=1)
NOTED_AFTER_PAY = {Reason.PAID_ELSEWHERE, Reason.PAID_TWICE, Reason.OTHER_PERSON}
# What a person's decision is made of.
DECISION = ["settled_reason", "settled_with", "settled_by", "settled_at", "review_reason"]


# --- One submission -------------------------------------------------------------------------------------------


def apply(panel_study: PanelStudy, state: SubmissionState, asked_at: datetime) -> Submission:
    """Store what the service said about a submission when it was asked, and do here what follows.

    May be called twice and by several workers: an answer to an earlier question than the stored one changes nothing.
    """
    study = panel_study.study
    with transaction.atomic():
        submission, created = Submission.objects.get_or_create(
            submission_id=state.id,
            defaults={"study": study, "participant_id": state.participant_id, "read_at": asked_at},
        )
        submission = Submission.objects.select_for_update(of=("self",)).get(pk=submission.pk)
        if not created and submission.read_at > asked_at:
            return submission
        participation = _participation_of(submission, state)
        submission.participation = participation
        submission.participant_id = state.participant_id or submission.participant_id
        submission.status, submission.raw_status = state.status, state.raw_status[:50]
        submission.entered_code = state.entered_code[:100]
        submission.return_requested = state.return_requested
        submission.started_at, submission.completed_at = state.started_at, state.completed_at
        if state.bonuses_minor is not None:
            submission.bonuses_minor = list(state.bonuses_minor)
        submission.read_at = asked_at
        if participation is not None:
            _follow(participation, state.status)
            participation.refresh_from_db()
        read = read_meaning(submission)
        submission.review_reason = _open_reason(submission, read)
        submission.save()
    return submission


def read_meaning(submission: Submission) -> Meaning:
    status = SubmissionStatus(submission.status)
    return meaning(status, submission.entered_code, here(submission), bonuses_so_far(submission))


def _open_reason(submission: Submission, read: Meaning) -> str:
    """Why a person has to look; empty when nobody has to, or somebody has."""
    if read.reason is None:
        return ""
    is_settled = read.is_settled(submission.settled_reason, submission.settled_with)
    if is_settled and not _return_is_overdue(submission):
        return ""
    if read.reason in NOTED_AFTER_PAY and submission.settled_with == Offer.APPROVE:
        return ""  # paid in full because a person said so
    return read.reason


def _return_is_overdue(submission: Submission) -> bool:
    """People need not return when they are asked; after a week it is somebody's turn again."""
    asked = submission.settled_with == Offer.REQUEST_RETURN and submission.settled_at is not None
    return asked and timezone.now() - submission.settled_at > RETURN_TAKES  # type: ignore[operator]


def _participation_of(submission: Submission, state: SubmissionState) -> Participation | None:
    identity = ParticipantIdentity.objects.filter(study_id=submission.study_id, session_id=state.id).first()
    return identity.participation if identity else None


def _follow(participation: Participation, status: SubmissionStatus) -> None:
    """What the state there does to a participation here that has not ended."""
    if status == SubmissionStatus.RETURNED:
        if not (participation.step == Step.END and _returned_on_record(participation)):
            return_participation(participation.pk)
    elif status in {SubmissionStatus.TIMED_OUT, SubmissionStatus.REJECTED}:
        _free_place(participation.pk, f"{status}_on_the_panel")


def _returned_on_record(participation: Participation) -> bool:
    if participation.outcome == Outcome.RETURNED:
        return True
    return participation.events.filter(name="returned_after_the_end").exists()


def _free_place(participation_id: int, event: str) -> None:
    """Let somebody else have the dataset. Who comes back all the same goes on, and nothing of theirs is lost."""
    participation = locked_participation(participation_id)
    now = timezone.now()
    if participation.step != Step.END and participation.lease_expires_at and participation.lease_expires_at > now:
        participation.lease_expires_at = now
        participation.save(update_fields=["lease_expires_at"])
        record(participation, event)


def fingerprint(submission: Submission) -> str:
    """Changes with anything that a person reads before deciding about a submission."""
    return digest_of(
        submission.review_reason,
        submission.raw_status,
        submission.entered_code,
        submission.return_requested,
        submission.bonuses_minor or [],
        here(submission),
    )


def settle(submission_pk: int, offer: Offer, settled_by: str, *, seen: str) -> Submission:
    """Record what a person decided about a submission. Asking to return is done at once; paying is for payment runs.

    ``seen`` is the ``fingerprint`` of what the person had before them: the same button means something else once
    somebody has been paid. So of two people who decide at the same time, the first one's decision stands. Raises
    RecruitmentError or ProlificError, and then nothing is decided.
    """
    with transaction.atomic():
        locked = Submission.objects.select_for_update(of=("self",)).get(pk=submission_pk)
        read = read_meaning(locked)
        is_as_seen = locked.review_reason and seen == fingerprint(locked)
        if not is_as_seen or read.reason is None or offer not in read.offers:
            raise RecruitmentError("The submission has changed meanwhile: look at it again.")
        before = {name: getattr(locked, name) for name in DECISION}
        locked.settled_reason, locked.settled_with = read.reason, offer
        locked.settled_by, locked.settled_at = settled_by, timezone.now()
        locked.review_reason = ""
        locked.save(update_fields=DECISION)
        if locked.participation:
            record(locked.participation, "submission_settled", reason=read.reason, decision=offer, by=settled_by)
    # Decided before the call, which is a message to somebody: whoever decides a moment later sends no second one.
    if offer == Offer.REQUEST_RETURN:
        try:
            _request_return(locked, read.reason)
        except (ProlificError, RecruitmentError):
            _undo(locked, before)
            raise
    return locked


def _undo(submission: Submission, before: dict[str, Any]) -> None:
    with transaction.atomic():
        is_last = Submission.objects.filter(pk=submission.pk, settled_at=submission.settled_at)
        if is_last.update(**before) and submission.participation:
            record(submission.participation, "submission_unsettled", decision=submission.settled_with)


def _request_return(submission: Submission, reason: Reason) -> None:
    panel_study = PanelStudy.objects.select_related("workspace").get(study=submission.study_id)
    with client_of(panel_study.workspace) as client:
        try:
            client.request_return(submission.submission_id, [_return_reason(reason)])
        except Ambiguous:
            if not client.submission(submission.submission_id).return_requested:
                raise


def _return_reason(reason: Reason) -> str:
    return {
        Reason.NEVER_ARRIVED: "We did not see you in the study, so there is nothing that we could approve.",
        Reason.SUBMITTED_AFTER_BONUS: "You were paid by a bonus already. Please return your submission.",
        Reason.OTHER_PERSON: "Our link was opened with another Prolific ID than yours, so we cannot tell what you did.",
        Reason.UNFINISHED_HERE: "You did not reach the end of the study, so your answers are not complete.",
    }.get(reason, "The study ended early for you. Please return your submission; time that is due is paid as a bonus.")


# --- The poll -------------------------------------------------------------------------------------------------


def read_panel_study(panel_study_id: int) -> None:
    """For the poll, which comes again: as ``read_now``, but that a failure is only noted."""
    try:
        read_now(panel_study_id)
    except (ProlificError, RecruitmentError) as error:
        logger.warning("A study on Prolific could not be read: %s", error)


def read_now(panel_study_id: int) -> None:
    """Read how a study and all its submissions stand. Raises ProlificError or RecruitmentError, noted on the study."""
    panel_study = PanelStudy.objects.select_related("study", "workspace").get(pk=panel_study_id)
    if not panel_study.panel_id:
        return
    try:
        with client_of(panel_study.workspace) as client:
            asked_at = timezone.now()
            state = client.study(panel_study.panel_id)
            rows = list(client.submissions(panel_study.panel_id))
    except (ProlificError, RecruitmentError) as error:
        text = error.text if isinstance(error, ProlificError) else str(error)
        PanelStudy.objects.filter(pk=panel_study_id).update(sync_error=text)
        raise
    failures = _apply_changed(panel_study, rows, asked_at)
    store(panel_study, state, asked_at)
    if failures:
        text = (
            f"{failures} of the submissions could not be taken over for an unexpected reason, which the log describes."
        )
        PanelStudy.objects.filter(pk=panel_study_id).update(sync_error=text)
        raise RecruitmentError(text)


def _apply_changed(panel_study: PanelStudy, rows: list[SubmissionState], asked_at: datetime) -> int:
    """Apply those that differ from what is stored: mostly few, and each costs several statements.

    Each by itself: one that fails keeps back no other. How many failed.
    """
    stored = {
        one.submission_id: one for one in with_participations(Submission.objects.filter(study=panel_study.study_id))
    }
    failures = 0
    for row in rows:
        try:
            if row.id not in stored or _differs(stored[row.id], row):
                apply(panel_study, row, asked_at)
        except Exception:
            logger.exception("A submission of %s could not be taken over", panel_study)
            failures += 1
    return failures


def _differs(stored: Submission, row: SubmissionState) -> bool:
    if (stored.raw_status, stored.entered_code, stored.return_requested) != (
        row.raw_status[:50],
        row.entered_code[:100],
        row.return_requested,
    ):
        return True
    if row.participant_id not in {"", stored.participant_id}:
        return True
    # They may have arrived, or ended here, since.
    if stored.participation is None:
        return meaning(row.status, row.entered_code, ABSENT).reason is not None
    return _open_reason(stored, read_meaning(stored)) != stored.review_reason


# --- Webhooks -------------------------------------------------------------------------------------------------


def process_event(event_id: int) -> bool:
    """Read anew what an event is about; what cannot be read is left for later.

    False: the service cannot be asked now, about this or anything else of the workspace.
    """
    event = WebhookEvent.objects.select_related("workspace").get(pk=event_id)
    if event.processed_at is not None:
        return True
    asked_at = timezone.now()
    try:
        with client_of(event.workspace) as client:
            result = _read_again(client, event, asked_at)
    except NotFound:
        result = "There is no such thing there."
    except (ProlificError, RecruitmentError) as error:
        logger.warning("A webhook event waits: %s", error)
        return not isinstance(error, (Unavailable, TooManyRequests, NotAllowed, RecruitmentError))
    # One reading answers all that was said about it before.
    WebhookEvent.objects.filter(
        workspace=event.workspace,
        event_type=event.event_type,
        resource_id=event.resource_id,
        received_at__lte=asked_at,
        processed_at__isnull=True,
    ).update(processed_at=timezone.now(), result=result)
    return True


def _read_again(client: ProlificClient, event: WebhookEvent, asked_at: datetime) -> str:
    if event.event_type.startswith("submission."):
        submission = client.submission(event.resource_id)
        panel_study = _ours(event, submission.study_id)
        if panel_study is None:
            return "Not a study of ours."
        apply(panel_study, submission, asked_at)
        return f"Read: {submission.status.label}"
    panel_study = _ours(event, event.resource_id)
    if panel_study is None:
        return "Not a study of ours."
    state: PanelStudyState = client.study(event.resource_id)
    store(panel_study, state, asked_at)
    return f"Read: {state.status.label}"


def _ours(event: WebhookEvent, panel_id: str) -> PanelStudy | None:
    studies = PanelStudy.objects.select_related("study", "workspace")
    return studies.filter(workspace=event.workspace_id, study__prolific_study_id=panel_id).first() if panel_id else None


def keep_event(event: WebhookEvent) -> int | None:
    """Store an event and give its primary key; None if it is known, as from an earlier delivery."""
    with transaction.atomic():
        kept, created = WebhookEvent.objects.get_or_create(
            workspace=event.workspace,
            event_id=event.event_id,
            defaults={"event_type": event.event_type, "resource_id": event.resource_id},
        )
    return kept.pk if created else None


def process_waiting_events(received_before: datetime) -> None:
    """Take up events whose task was lost or met a service away, each by itself: one that fails keeps back no other.

    But where the service cannot be asked about one, the others of its workspace wait too: each would be tried for
    minutes, and hundreds of them would hold this worker, and those that come after it, for hours.
    """
    away: set[int] = set()
    for event_id, workspace_id in waiting_events(received_before).values_list("id", "workspace_id"):
        if workspace_id in away:
            continue
        try:
            if not process_event(event_id):
                away.add(workspace_id)
        except Exception:
            logger.exception("Webhook event %s could not be worked through", event_id)


def give_up_events(before: datetime) -> None:
    """End events that could not be worked through in all that time."""
    WebhookEvent.objects.filter(processed_at__isnull=True, received_at__lt=before).update(
        processed_at=timezone.now(), result="Given up: the poll reads what it is about."
    )


def forget_old_events(before: datetime) -> None:
    """Delete events that were worked through long ago: they hold ids, and nothing reads them any more."""
    WebhookEvent.objects.filter(processed_at__lt=before).delete()
