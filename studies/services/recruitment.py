"""Our studies on Prolific: made there, published, paused, resumed, stopped, enlarged. Each asks first and writes after.

No database transaction is open while the service is asked. What it answers is stored as its state; after an answer that
was lost, its state is read instead of asking again.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from html import escape
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from scooter_site.common.encryption import CannotDecrypt
from studies.flow import Outcome
from studies.models import PanelStudy, Study, StudyStatus, Workspace
from studies.pay import amount_due
from studies.recruitment import payloads
from studies.recruitment.answers import PanelStudyState
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import Ambiguous, NotAllowed, ProlificError, Refused
from studies.recruitment.filters import Candidate, candidates, in_words, selection
from studies.recruitment.money import to_major, to_minor
from studies.recruitment.payloads import ScreenOutPay, StudyPlan
from studies.recruitment.statuses import PanelStudyStatus
from studies.selectors.recruitment import screen_outs
from studies.services.places import PlacesRefused, put_back, refuse_unless_launched
from studies.services.places import raise_places as raise_places_here

logger = logging.getLogger(__name__)

# A request that creates takes seconds; one that was begun this long ago has ended one way or another.
CREATION_TAKES = timedelta(minutes=2)


class RecruitmentError(Exception):
    """This cannot be done; the message is for people and says what to do."""


def client_of(workspace: Workspace) -> ProlificClient:
    """Access to the workspace; use as a context manager. Raises RecruitmentError where there is no usable token."""
    try:
        token = workspace.token
    except CannotDecrypt:
        raise RecruitmentError(
            f"The token of {workspace} was stored under another SECRET_KEY: enter it again."
        ) from None
    if not token:
        raise RecruitmentError(f"{workspace} has no token: enter one.")
    return ProlificClient(token, base_url=settings.PROLIFIC_API_URL)


# --- What is asked for ----------------------------------------------------------------------------------------


def suggested(study: Study) -> dict[str, Any]:
    """Fields of a PanelStudy to begin with."""
    return {
        "name": study.public_title,
        "description": (
            f"You will look at {study.trial_count} images, one after the other, and rate each of them.\n\n"
            "You need a computer with a mouse or touchpad, and a bright screen without a colour filter. There is a "
            "short check first; if you do not pass it, the study ends there and you are paid for your time."
        ),
        "places": study.place_count,
        "minutes": max(1, int(study.minutes_complete.to_integral_value())),
        "reward_minor": to_minor(amount_due(Outcome.COMPLETED, study.rates)),
        "screen_out_slots": failures_reckoned_with(study.place_count),
        "screen_out_pay": ScreenOutPay.FIXED,
    }


def plan_of(panel_study: PanelStudy, landing_url: str) -> StudyPlan:
    study = panel_study.study
    codes = {Outcome(code.outcome): code.code for code in study.completion_codes.all()}
    return StudyPlan(
        name=panel_study.name,
        internal_name=internal_name(panel_study),
        description=as_html(panel_study.description),
        landing_url=landing_url,
        places=panel_study.places,
        minutes=panel_study.minutes,
        reward_major=to_major(panel_study.reward_minor),
        codes=codes,
        screen_out_pay=ScreenOutPay(panel_study.screen_out_pay),
        screen_out_major=screen_outs(study),
        screen_out_slots=panel_study.screen_out_slots,
        most_at_once=panel_study.most_at_once,
        reference=f"scooter {panel_study.reference.hex}",
        project_id=panel_study.workspace.project_id,
        filters=panel_study.filters,
    )


def internal_name(panel_study: PanelStudy) -> str:
    return f"{panel_study.study.title[:80]} {_mark(panel_study)}"


def _mark(panel_study: PanelStudy) -> str:
    """By which the study is found again; its title may have changed since."""
    return f"({panel_study.reference.hex[:12]})"


def as_html(text: str) -> str:
    """Paragraphs, in the few tags that Prolific keeps."""
    paragraphs = [part.strip() for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]
    return "".join(f"<p>{escape(part)}</p>" for part in paragraphs)


# --- Filters and cost -----------------------------------------------------------------------------------------


def filter_candidates(workspace: Workspace) -> list[Candidate]:
    """Prescreeners of the workspace that ask for colour vision and English. Raises ProlificError."""
    with client_of(workspace) as client:
        return candidates(client.filters(workspace.workspace_id))


def confirm_filters(panel_study: PanelStudy, chosen: list[tuple[Candidate, list[str]]], confirmed_by: str) -> int:
    """Store what a person has read and confirmed, and give how many people it lets in (0: fewer than 25)."""
    _refuse_if_published(panel_study)
    filters = [selection(candidate, keys) for candidate, keys in chosen if keys]
    with client_of(panel_study.workspace) as client:
        count = client.eligible_count(filters, panel_study.workspace.workspace_id)
    panel_study.filters = filters
    panel_study.filters_in_words = [in_words(candidate, keys) for candidate, keys in chosen if keys]
    panel_study.filters_confirmed_by = confirmed_by
    panel_study.filters_confirmed_at = timezone.now()
    panel_study.save(update_fields=["filters", "filters_in_words", "filters_confirmed_by", "filters_confirmed_at"])
    return count


def estimate_cost(panel_study: PanelStudy) -> int:
    """The service's own estimate in minor units, fees and taxes included: places, screen-out slots and bonuses.

    It calculates places; the others bear the same fees, so their share is added in proportion, rounded up.
    """
    reward, places = panel_study.reward_minor, panel_study.places
    with client_of(panel_study.workspace) as client:
        total = client.cost_minor(reward, places)
    others = screen_out_minor(panel_study) + bonuses_minor(panel_study)
    total += -(-others * total // (reward * places))
    panel_study.estimated_cost_minor = total
    panel_study.estimated_at = timezone.now()
    panel_study.save(update_fields=["estimated_cost_minor", "estimated_at"])
    return total


def screen_out_minor(panel_study: PanelStudy) -> int:
    """What all fixed screen-out slots together pay to participants; 0 without any."""
    return panel_study.screen_out_slots * slot_minor(panel_study)


def slot_minor(panel_study: PanelStudy) -> int:
    """What one fixed screen-out pays; 0 where there is none."""
    due = screen_outs(panel_study.study)
    fixed = payloads.fixed_screen_out(panel_study.screen_out_pay, due)
    return to_minor(due[fixed]) if fixed else 0


def bonuses_minor(panel_study: PanelStudy) -> int:
    """What bonuses may come to for those who fail a check that the service does not pay for by itself."""
    due = screen_outs(panel_study.study)
    fixed = payloads.fixed_screen_out(panel_study.screen_out_pay, due)
    by_bonus = sum(to_minor(amount) for outcome, amount in due.items() if outcome != fixed)
    return failures_reckoned_with(panel_study.places) * by_bonus


def failures_reckoned_with(places: int) -> int:
    """How many people may fail each check before the main study: a quarter of the places, more than mostly do."""
    return -(-places // 4)


# --- Life there -----------------------------------------------------------------------------------------------


def create_draft(panel_study: PanelStudy, landing_url: str) -> PanelStudy:
    """Make the study on Prolific, or bring its draft there up to date. Nobody sees a draft.

    Called again after an answer that was lost, it finds the study that was made, by the end of its internal name.
    Raises RecruitmentError or ProlificError.
    """
    if panel_study.panel_id:
        _refuse_if_published(panel_study)
        with client_of(panel_study.workspace) as client:
            asked_at = timezone.now()
            payload = payloads.study_payload(plan_of(panel_study, landing_url))
            return store(panel_study, client.update_study(panel_study.panel_id, payload), asked_at)
    asked_at = timezone.now()
    made_before = _claim_creation(panel_study)
    with client_of(panel_study.workspace) as client:
        state = _find_made(client, panel_study) if made_before else None
        if state is None:
            state = _create(client, panel_study, landing_url)
    return store(panel_study, state, asked_at)


def _claim_creation(panel_study: PanelStudy) -> bool:
    """Note, before it is asked for, that the study is being made. True: it may have been made before."""
    now = timezone.now()
    with transaction.atomic():
        locked = PanelStudy.objects.select_for_update(of=("self",)).select_related("study").get(pk=panel_study.pk)
        if locked.panel_id:
            raise RecruitmentError("The study has been made on Prolific meanwhile.")
        if locked.creation_begun_at and now - locked.creation_begun_at < CREATION_TAKES and not locked.sync_error:
            raise RecruitmentError("The study is just being made on Prolific. Look again in two minutes.")
        made_before = locked.creation_begun_at is not None
        locked.creation_begun_at, locked.sync_error = now, ""
        locked.save(update_fields=["creation_begun_at", "sync_error"])
    return made_before


def _create(client: ProlificClient, panel_study: PanelStudy, landing_url: str) -> PanelStudyState:
    try:
        return client.create_study(payloads.study_payload(plan_of(panel_study, landing_url)))
    except Ambiguous as error:
        if found := _find_made(client, panel_study):
            return found
        _note_failure(panel_study, error)
        raise
    except ProlificError as error:
        _note_failure(panel_study, error)
        if isinstance(error, (Refused, NotAllowed)) and panel_study.screen_out_pay == ScreenOutPay.FIXED:
            error.text += (
                " If your workspace has no fixed screen-out payments, choose “Manual review” for who fails a check, "
                "and try again."
            )
        raise


def _find_made(client: ProlificClient, panel_study: PanelStudy) -> PanelStudyState | None:
    listed = client.studies(panel_study.workspace.project_id)
    return next((one for one in listed if one.internal_name.endswith(_mark(panel_study))), None)


def _note_failure(panel_study: PanelStudy, error: ProlificError) -> None:
    panel_study.sync_error = error.text
    panel_study.save(update_fields=["sync_error"])


def read(panel_study: PanelStudy) -> PanelStudy:
    """How it stands there now: the numbers by which a person decides to spend money."""
    with client_of(panel_study.workspace) as client:
        asked_at = timezone.now()
        return store(panel_study, client.study(_panel_id(panel_study)), asked_at)


def publish(panel_study: PanelStudy, landing_url: str) -> PanelStudy:
    """Let people in; from now on only places and slots change, and only up.

    The draft there is brought up to date first, so that what is published is what stands on the page here.
    """
    study = panel_study.study
    if study.status != StudyStatus.RUNNING:
        raise RecruitmentError(
            "Launch the study here first: participants would find it closed and could only return their submission."
        )
    if panel_study.estimated_cost_minor is None:
        raise RecruitmentError("Have the cost estimated first.")
    if panel_study.reward_minor != to_minor(amount_due(Outcome.COMPLETED, study.rates)):
        raise RecruitmentError("The study's pay has changed: save what is asked for again, and estimate the cost.")
    if panel_study.places > study.place_count:
        raise RecruitmentError(
            f"Prolific would send {panel_study.places} people, and there are places for {study.place_count} here: "
            "ask for fewer, or raise the places here."
        )
    if read(panel_study).status == PanelStudyStatus.UNPUBLISHED:
        payload = payloads.study_payload(plan_of(panel_study, landing_url))
        with client_of(panel_study.workspace) as client:
            asked_at = timezone.now()
            state = client.update_study(panel_study.panel_id, payload)
        store(panel_study, state, asked_at)
        _refuse_unless_taken_over(payload, state)
    return _transition(panel_study, "PUBLISH", {PanelStudyStatus.ACTIVE, PanelStudyStatus.PUBLISHING})


def _refuse_unless_taken_over(payload: dict[str, Any], state: PanelStudyState) -> None:
    """Before money is spent, the service must say of the draft what was sent: pay, places and screen-outs."""
    asked = {
        "reward": payload["reward"],
        "places": payload["total_available_places"],
        "screen-out slots": payloads.screen_out_slots(payload["completion_codes"]),
    }
    there = {
        "reward": state.reward_minor,
        "places": state.places,
        "screen-out slots": payloads.screen_out_slots(state.codes),
    }
    if different := [f"{name}: {there[name]} instead of {asked[name]}" for name in asked if there[name] != asked[name]]:
        raise RecruitmentError(
            f"The draft on Prolific does not say what is asked for here ({'; '.join(different)}), so it was not "
            "published. Look at it there."
        )


def pause(panel_study: PanelStudy) -> PanelStudy:
    """Let nobody new in; who is inside can finish."""
    return _transition(panel_study, "PAUSE", {PanelStudyStatus.PAUSED})


def resume(panel_study: PanelStudy) -> PanelStudy:
    """Let people in again, where they find the study open."""
    if panel_study.study.status != StudyStatus.RUNNING:
        raise RecruitmentError("Open the study here first: participants would find it closed.")
    return _transition(panel_study, "START", {PanelStudyStatus.ACTIVE})


def stop(panel_study: PanelStudy) -> PanelStudy:
    """End it there; only more places open it again."""
    return _transition(panel_study, "STOP", {PanelStudyStatus.COMPLETED, PanelStudyStatus.AWAITING_REVIEW})


def raise_places(panel_study: PanelStudy, places: int) -> PanelStudy:
    """Set a higher total of places, which also opens a completed study again.

    Here first: places that only Prolific has would have it send people whom nobody lets in. If it then refuses, here
    they are put back.
    """
    more_places(panel_study, places)
    study, added = panel_study.study, 0
    try:
        refuse_unless_launched(study)
        if places > study.place_count:
            added = raise_places_here(study, places)
    except PlacesRefused as error:
        raise RecruitmentError(str(error)) from None
    try:
        return _change(panel_study, lambda state: {"total_available_places": places}, places=places)
    except (Refused, NotAllowed):
        if added:
            put_back(study, added)
        raise


def raise_slots(panel_study: PanelStudy, slots: int) -> PanelStudy:
    """Set a higher total of fixed screen-outs. A study that Prolific paused for want of slots is then to be resumed."""
    more_slots(panel_study, slots)
    return _change(
        panel_study,
        lambda state: {"completion_codes": payloads.with_slots(state.codes, slots)},
        screen_out_slots=slots,
    )


def more_places(panel_study: PanelStudy, places: int) -> int:
    """How many a new total adds. Raises RecruitmentError where it adds none."""
    now = panel_study.places_there or panel_study.places
    if places <= now:
        raise RecruitmentError(f"There are {now} places: Prolific only takes a larger number.")
    return places - now


def more_slots(panel_study: PanelStudy, slots: int) -> int:
    """How many a new total adds. Raises RecruitmentError where it adds none."""
    now = panel_study.slots_there
    if now is None:
        raise RecruitmentError("No code of this study has a fixed screen-out payment.")
    if slots <= now:
        raise RecruitmentError(f"There are {now} slots: Prolific only takes a larger number.")
    return slots - now


def _transition(panel_study: PanelStudy, action: str, reached: set[PanelStudyStatus]) -> PanelStudy:
    """Ask for it, then read what has become of it: after a lost answer, and where somebody else did it before."""
    panel_id = _panel_id(panel_study)
    with client_of(panel_study.workspace) as client:
        failure: ProlificError | None = None
        try:
            client.transition_study(panel_id, action)
        except (Ambiguous, NotAllowed, Refused) as error:
            failure = error
        asked_at = timezone.now()
        try:
            state = client.study(panel_id)
        except ProlificError as error:
            _note_failure(panel_study, error)
            raise RecruitmentError(
                "Prolific was asked to, but how the study stands now could not be read. It is read again within ten "
                f"minutes; do not ask twice. Prolific: {error.text}"
            ) from error
        store(panel_study, state, asked_at)
    if failure is not None and panel_study.status not in reached:
        raise failure
    return panel_study


def _change(
    panel_study: PanelStudy,
    changes: Callable[[PanelStudyState], dict[str, Any]],
    **fields: int,
) -> PanelStudy:
    panel_id = _panel_id(panel_study)
    with client_of(panel_study.workspace) as client:
        before = client.study(panel_id)
        asked_at = timezone.now()
        state = client.update_study(panel_id, changes(before))
        for name, value in fields.items():
            setattr(panel_study, name, value)
        panel_study.estimated_cost_minor = None  # of what there was before
        panel_study.save(update_fields=[*fields, "estimated_cost_minor"])
        store(panel_study, state, asked_at)
    try:
        estimate_cost(panel_study)
    except ProlificError as error:
        # The change is made all the same; the cost can be asked for again.
        logger.warning("%s has changed, and has no estimate: %s", panel_study, error)
    return panel_study


def store(panel_study: PanelStudy, state: PanelStudyState, asked_at: datetime) -> PanelStudy:
    """Keep how the study stood there when it was asked. The id that it has there becomes that of our study.

    Of several workers' answers, the one to the latest question stays: an earlier one changes nothing.
    """
    said = {
        "status": state.status,
        "raw_status": state.raw_status[:50],
        "places_there": state.places,
        "places_taken": state.places_taken,
        "slots_there": payloads.screen_out_slots(state.codes),
        "read_at": asked_at,
        "sync_error": "",
    }
    with transaction.atomic():
        if not panel_study.panel_id:
            Study.objects.filter(pk=panel_study.study_id, prolific_study_id="").update(prolific_study_id=state.id)
            panel_study.study.prolific_study_id = state.id
        not_later = Q(read_at=None) | Q(read_at__lte=asked_at)
        if not PanelStudy.objects.filter(not_later, pk=panel_study.pk).update(**said):
            panel_study.refresh_from_db(fields=list(said))
            return panel_study
    for name, value in said.items():
        setattr(panel_study, name, value)
    return panel_study


def _panel_id(panel_study: PanelStudy) -> str:
    if not panel_study.panel_id:
        raise RecruitmentError("The study has not been made on Prolific yet.")
    return panel_study.panel_id


def _refuse_if_published(panel_study: PanelStudy) -> None:
    if panel_study.status not in {"", PanelStudyStatus.UNPUBLISHED}:
        raise RecruitmentError("The study has been published on Prolific: only places and slots can still change.")
