"""How a participation begins: the session that arrives, and the consent that gives it a place."""

import math
import random
import secrets
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from imagedb.models import ImageKind
from scooter_site.common.prepared import PreparedQuery, insertion, write
from studies import flow, order
from studies.flow import Outcome, Step
from studies.models import (
    ColourPlate,
    ParticipantIdentity,
    Participation,
    ParticipationKind,
    PlateTrial,
    Stimulus,
    StimulusPurpose,
    Study,
    TextKind,
    Trial,
)
from studies.models.study import new_token
from studies.protocols import Material
from studies.selectors import may_begin_again, places_left, study_text
from studies.services.admission import (
    AlreadyTookPart,
    SessionOfAnother,
    SessionOfOtherKind,
    StudyFull,
    refuse_unless_open,
)
from studies.services.allocation import allocate_dataset, extend_lease, lock_study
from studies.services.pointer import InvalidAnswer, locked_participation, move, record, save_seen, small_number
from studies.services.time_out import replace_participation

LONGEST_ID = 64
WITHOUT_RESULT = {Outcome.DECLINED, Outcome.TIMED_OUT, Outcome.REPLACED, Outcome.RETURNED}


@dataclass(frozen=True)
class Device:
    """The browser window, in CSS pixels, as it says itself; None where unknown."""

    viewport_width: int | None
    viewport_height: int | None
    device_pixel_ratio: float | None


class DeviceNotSuitable(Exception):
    """The images cannot be judged in this window. ``reason``: "not_measured" or "window_too_small"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def enter_study(study: Study, *, kind: str, participant_id: str = "", session_id: str = "") -> Participation:
    """The participation of this session: the one there is, or a new one.

    ``kind`` is a ParticipationKind. ``session_id`` is the panel's; empty for a link without one, and then a random
    one is made. A known session may always come back, whatever the state of the study. A new one needs a running
    study (a test or preview session: one that is ready, running or paused) with a free place, else StudyNotOpen or
    StudyFull is raised. One that is known as of another kind, or as somebody else's, is refused: SessionOfOtherKind,
    SessionOfAnother.

    Who came by a direct link and ended before the consent (declined, or timed out) begins again, if somebody new could.

    A participant of a panel may come with a new session as long as none of the earlier ones came to a result
    (returned and taken again), and those that are unfinished end as replaced; who has completed the study or failed
    one of its checks may not: AlreadyTookPart. Nor may who has given every rating and lacks nothing but the optional
    feedback: that session ends as complete, so that no later one costs the ratings.
    """
    if len(participant_id) > LONGEST_ID or len(session_id) > LONGEST_ID:
        raise InvalidAnswer(f"Participant and session ids have at most {LONGEST_ID} characters.")
    session_id = session_id or secrets.token_hex(16)
    if existing := _of_session(study, session_id, participant_id, kind):
        return _welcome_back(existing)
    try:
        entered = _enter_anew(study, kind, participant_id, session_id)
    except IntegrityError:
        # The same session arrived twice at the same moment; the other one was faster.
        if existing := _of_session(study, session_id, participant_id, kind):
            return existing
        raise
    if entered is None:
        raise AlreadyTookPart
    return entered


def _enter_anew(study: Study, kind: str, participant_id: str, session_id: str) -> Participation | None:
    """None: the person's earlier session has just ended with a result, which is to be kept."""
    with transaction.atomic():
        if kind == ParticipationKind.REAL and participant_id:
            # One arrival at a time, so that two sessions of one person cannot both find no other.
            study = lock_study(study.pk)
            if existing := _of_session(study, session_id, participant_id, kind):
                return existing
            refuse_unless_open(study, kind)
            if _end_earlier_sessions(study, participant_id):
                return None
        refuse_newcomers(study, kind)
        participation = Participation.objects.create(study=study, kind=kind)
        ParticipantIdentity.objects.create(
            participation=participation, study=study, participant_id=participant_id, session_id=session_id
        )
        record(participation, "entered")
    return participation


def refuse_newcomers(study: Study, kind: str) -> None:
    """Raise StudyNotOpen or StudyFull where somebody new is not let in now."""
    refuse_unless_open(study, kind)
    if kind != ParticipationKind.PREVIEW and places_left(study, kind) <= 0:
        raise StudyFull


def _of_session(study: Study, session_id: str, participant_id: str, kind: str) -> Participation | None:
    """The participation of the session, if there is one. It is given to nobody but the person who began it."""
    found: Participation | None = _OF_SESSION.first(study.pk, session_id)
    if found is not None and found.kind != kind:
        raise SessionOfOtherKind
    if found is not None and found.identity.participant_id != participant_id:
        raise SessionOfAnother
    return found


_OF_SESSION = PreparedQuery(
    lambda study_id, session_id: (
        Participation.objects.select_related("study", "identity")
        .filter(identity__study=study_id, identity__session_id=session_id)
        .order_by()
    ),
    2**40,
    "a session",
)


def _welcome_back(participation: Participation) -> Participation:
    with transaction.atomic():
        participation = locked_participation(participation.pk)
        if may_begin_again(participation):
            _begin_again(participation)
        elif participation.step != Step.END:
            save_seen(participation)
            record(participation, "came_back", step=participation.step)
    return participation


def _begin_again(participation: Participation) -> None:
    """Put a participation that ended before the consent back there, on the terms of somebody new."""
    study = participation.study
    refuse_newcomers(study, participation.kind)
    record(participation, "began_again", after=participation.outcome)
    participation.step, participation.outcome = Step.CONSENT, ""
    participation.finished_at = participation.completion_code = None
    participation.dataset = None
    extend_lease(participation, study)
    participation.save()


def _end_earlier_sessions(study: Study, participant_id: str) -> bool:
    """End what the person has begun in other sessions, so that only one can become valid.

    Gives whether one of them came to a result by that. Raises AlreadyTookPart if one had before. Their rows are locked
    before they are judged: the study is locked already, and whoever locks both locks the study first.
    """
    earlier = _OF_PERSON.objects(study.pk, participant_id)
    if any(each.step == Step.END and each.outcome not in WITHOUT_RESULT for each in earlier):
        raise AlreadyTookPart
    ended = [replace_participation(each.pk) for each in earlier if each.step != Step.END]
    return any(each.outcome not in WITHOUT_RESULT for each in ended)


def _of_person(study_id: int, participant_id: str) -> QuerySet[Participation]:
    locked = Participation.objects.select_for_update(of=("self",), no_key=True).only("step", "outcome")
    return locked.filter(
        kind=ParticipationKind.REAL, identity__study=study_id, identity__participant_id=participant_id
    ).order_by("pk")


_OF_PERSON = PreparedQuery(_of_person, 2**40, "a person")


def accept_consent(participation_id: int, device: Device) -> Participation:
    """Store the consent, give the participant a dataset, and fix everything they will be shown.

    Raises StudyFull or StudyNotOpen, and changes nothing, when the last place went to someone else meanwhile, or the
    study was paused or closed; and DeviceNotSuitable before that, when the window is too small or was not measured.
    """
    # Two transactions, so that the study's row, which all arrivals wait for, is locked for as short as possible. It
    # is locked before the participation's, as in enter_study: in another order two people could wait for each other.
    study_id = Participation.objects.values_list("study_id", flat=True).get(pk=participation_id)
    with transaction.atomic():
        lock_study(study_id)
        participation = locked_participation(participation_id)
        if participation.step != Step.CONSENT:
            return participation
        _refuse_unsuitable(device, participation)
        allocate_dataset(participation)
        participation.save(update_fields=["dataset", "lease_expires_at", "last_seen_at"])
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.CONSENT:
            return participation
        participation.viewport_width = small_number(device.viewport_width)
        participation.viewport_height = small_number(device.viewport_height)
        participation.device_pixel_ratio = _ratio(device.device_pixel_ratio)
        participation.consent_text = study_text(participation.study, TextKind.CONSENT)
        participation.consented_at = timezone.now()
        make_trials(participation)
        record(participation, "consented")
        move(participation, flow.Consented())
        participation.save()
    return participation


def _refuse_unsuitable(device: Device, participation: Participation) -> None:
    """What the page checks too; here also for browsers that did not run its script."""
    if participation.kind == ParticipationKind.PREVIEW:
        return
    study = participation.study
    width, height = small_number(device.viewport_width), small_number(device.viewport_height)
    if width is None or height is None:
        raise DeviceNotSuitable("not_measured")
    # Where phones are welcome their small windows are; that a desktop's is large enough is left to the page, which
    # can tell the two apart.
    if study.phones_allowed:
        return
    if width < study.minimum_viewport_width or height < study.minimum_viewport_height:
        raise DeviceNotSuitable("window_too_small")


def decline_consent(participation_id: int) -> Participation:
    """End the participation before it began."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.CONSENT:
            return participation
        record(participation, "declined")
        move(participation, flow.Declined())
        save_seen(participation)
    return participation


def make_trials(participation: Participation) -> None:
    """Fix plates, images, checks and their order for a participation that has a dataset; once."""
    study = participation.study
    rng = random.SystemRandom()
    if study.plate_count and not participation.plate_trials.exists():
        pool = [order.PlateChoice(*row) for row in ColourPlate.objects.values_list("id", "kind", "digit")]
        PlateTrial.objects.bulk_create(
            PlateTrial(participation=participation, position=position, plate_id=plate.plate_id)
            for position, plate in enumerate(order.order_plates(pool, study.plate_count, rng), start=1)
        )
    if participation.trials.exists():
        return
    assert participation.dataset is not None  # noqa: S101 - for the type checker; callers allocate first
    images = participation.dataset.dataset_images.values_list("image_id", "image__kind")
    corrupted = Stimulus.objects.filter(study=study, purpose=StimulusPurpose.ATTENTION)
    material = Material(
        images=[(image_id, kind == ImageKind.MODIFIED) for image_id, kind in images],
        corrupted_ids=list(corrupted.values_list("id", flat=True)),
    )
    planned = study.protocol.plan(material, study.setup, rng)
    write(
        *(
            insertion(
                Trial,
                {
                    "participation_id": participation.pk,
                    "position": position,
                    "kind": trial.kind,
                    "image_id": trial.image_id,
                    "stimulus_id": trial.stimulus_id,
                    "instructed_value": trial.instructed_value,
                    "parameters": dict(trial.parameters),
                    "token": new_token(),
                },
            )
            for position, trial in enumerate(planned, start=1)
        )
    )


def _ratio(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) and 0 < value < 100 else None
