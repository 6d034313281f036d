"""A participant's way through a study: every answer, saved at once, each at most once.

Each function locks the participation's row, checks that it is where it should be, and may be called twice: what is
past is left as it is and the participation is returned. What lies ahead is refused with InvalidAnswer.
"""

import math
import random
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from studies import checks, flow, order
from studies.flow import Outcome, Step
from studies.models import (
    ColourPlate,
    CompletionCode,
    FeedbackAnswer,
    PairTrial,
    ParticipantIdentity,
    Participation,
    ParticipationEvent,
    ParticipationKind,
    PlateTrial,
    Rating,
    Stimulus,
    StimulusPurpose,
    Study,
    StudyStatus,
    TextKind,
    Trial,
    TrialKind,
)
from studies.selectors import places_left, study_text, unanswered_trials
from studies.services.allocation import StudyFull, allocate_dataset, extend_lease
from studies.signals import valid_ratings_changed

__all__ = [
    "AlreadyTookPart",
    "Device",
    "InvalidAnswer",
    "StudyFull",
    "StudyNotOpen",
    "Timings",
    "accept_consent",
    "answer_pair",
    "answer_plate",
    "answer_trial",
    "close_timed_out",
    "decline_consent",
    "enter_study",
    "finish_instructions",
    "give_feedback",
]

LARGEST_MILLISECONDS = 2**31 - 1
LARGEST_SMALL_NUMBER = 2**15 - 1
LONGEST_FEEDBACK_ANSWER = 5_000
MOST_FEEDBACK_ITEMS = 40
LONGEST_ID = 64

STEPS = list(Step)
Item = TypeVar("Item", PlateTrial, PairTrial)


class StudyNotOpen(Exception):
    """Nobody new may enter now. ``reason``: "not_started", "paused", "closed" or "already_took_part"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AlreadyTookPart(StudyNotOpen):
    """This panel participant has already finished this study, in another session."""

    def __init__(self) -> None:
        super().__init__("already_took_part")


class InvalidAnswer(ValueError):
    """A malformed answer, or one to something that has not been shown yet."""


@dataclass(frozen=True)
class Device:
    """The browser window, in CSS pixels, as it says itself; None where unknown."""

    viewport_width: int | None
    viewport_height: int | None
    device_pixel_ratio: float | None


@dataclass(frozen=True)
class Timings:
    """What the browser measured about one rating, in milliseconds since the image was shown; None where unknown."""

    response_ms: int | None
    first_interaction_ms: int | None
    last_interaction_ms: int | None
    focus_losses: int | None


# --- Entering -------------------------------------------------------------------------------------------------


def enter_study(study: Study, *, kind: str, participant_id: str = "", session_id: str = "") -> Participation:
    """The participation of this session: the one there is, or a new one.

    ``kind`` is a ParticipationKind. ``session_id`` is the panel's; empty for a link without one, and then a random
    one is made. A known session may always come back, whatever the state of the study. A new one needs a running
    study (a test or preview session: one that is ready, running or paused) with a free place, else StudyNotOpen or
    StudyFull is raised.

    A participant of a panel may come with a new session as long as none of the earlier ones came to a result
    (returned and taken again); who has completed the study or failed one of its checks may not: AlreadyTookPart.
    """
    if len(participant_id) > LONGEST_ID or len(session_id) > LONGEST_ID:
        raise InvalidAnswer(f"Participant and session ids have at most {LONGEST_ID} characters.")
    session_id = session_id or secrets.token_hex(16)
    if existing := _of_session(study, session_id):
        return _welcome_back(existing)
    _refuse_unless_open(study, kind)
    if kind == ParticipationKind.REAL and participant_id and _has_result(study, participant_id):
        raise AlreadyTookPart
    if kind != ParticipationKind.PREVIEW and places_left(study, kind) <= 0:
        raise StudyFull
    try:
        with transaction.atomic():
            participation = Participation.objects.create(study=study, kind=kind)
            ParticipantIdentity.objects.create(
                participation=participation, study=study, participant_id=participant_id, session_id=session_id
            )
            _record(participation, "entered")
    except IntegrityError:
        # The same session arrived twice at the same moment; the other one was faster.
        existing = _of_session(study, session_id)
        if existing is None:
            raise
        return existing
    return participation


def _of_session(study: Study, session_id: str) -> Participation | None:
    return (
        Participation.objects.select_related("study").filter(identity__study=study, identity__session_id=session_id)
    ).first()


def _welcome_back(participation: Participation) -> Participation:
    with transaction.atomic():
        participation = locked_participation(participation.pk)
        if participation.step != Step.END:
            _save_seen(participation)
            _record(participation, "came_back", step=participation.step)
    return participation


def _refuse_unless_open(study: Study, kind: str) -> None:
    status = study.status
    open_states = {StudyStatus.RUNNING}
    if kind != ParticipationKind.REAL:
        open_states |= {StudyStatus.READY, StudyStatus.PAUSED}
    if status in open_states:
        return
    if status in {StudyStatus.CLOSED, StudyStatus.ARCHIVED}:
        raise StudyNotOpen("closed")
    raise StudyNotOpen("paused" if status == StudyStatus.PAUSED else "not_started")


def _has_result(study: Study, participant_id: str) -> bool:
    return (
        ParticipantIdentity.objects.filter(
            study=study,
            participant_id=participant_id,
            participation__kind=ParticipationKind.REAL,
            participation__step=Step.END,
        )
        .exclude(participation__outcome__in=[Outcome.DECLINED, Outcome.TIMED_OUT])
        .exists()
    )


# --- Consent --------------------------------------------------------------------------------------------------


def accept_consent(participation_id: int, device: Device) -> Participation:
    """Store the consent, give the participant a dataset, and fix everything they will be shown.

    Raises StudyFull, and changes nothing, when the last place went to someone else meanwhile.
    """
    # Two transactions, so that the study's row, which all arrivals wait for, is locked for as short as possible.
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.CONSENT:
            return participation
        allocate_dataset(participation)
        participation.save(update_fields=["dataset", "lease_expires_at", "last_seen_at"])
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.CONSENT:
            return participation
        participation.viewport_width = _small_number(device.viewport_width)
        participation.viewport_height = _small_number(device.viewport_height)
        participation.device_pixel_ratio = _ratio(device.device_pixel_ratio)
        participation.consent_text = study_text(participation.study, TextKind.CONSENT)
        participation.consented_at = timezone.now()
        make_trials(participation)
        _record(participation, "consented")
        _move(participation, flow.Consented())
        participation.save()
    return participation


def decline_consent(participation_id: int) -> Participation:
    """End the participation before it began."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.CONSENT:
            return participation
        _record(participation, "declined")
        _move(participation, flow.Declined())
        participation.save()
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
    planned = order.order_trials(
        image_ids=list(participation.dataset.dataset_images.values_list("image_id", flat=True)),
        corrupted_ids=list(
            Stimulus.objects.filter(study=study, purpose=StimulusPurpose.ATTENTION).values_list("id", flat=True)
        ),
        instructed_values=order.draw_instructed_values(
            study.rating_scale.instructable_values(), study.instructed_check_count, rng
        ),
        rng=rng,
    )
    Trial.objects.bulk_create(
        Trial(
            participation=participation,
            position=position,
            kind=trial.kind,
            image_id=trial.image_id,
            stimulus_id=trial.stimulus_id,
            instructed_value=trial.instructed_value,
        )
        for position, trial in enumerate(planned, start=1)
    )


# --- Checks before the main study -----------------------------------------------------------------------------


def answer_plate(participation_id: int, token: UUID, answer: str) -> Participation:
    """Answer a colour plate with "0" to "9" or "none". After the last one the check is judged."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        plates = list(participation.plate_trials.select_related("plate").order_by("position"))
        current = _current_or_past(participation, Step.COLOUR_CHECK, plates, token)
        if current is None:
            return participation
        if answer not in checks.PLATE_ANSWERS:
            raise InvalidAnswer("A colour plate is answered with a digit from 0 to 9, or none.")
        current.answer, current.answered_at = answer, timezone.now()
        current.save(update_fields=["answer", "answered_at"])
        _record(participation, "plate_answered", position=current.position)
        if current is plates[-1]:
            right = checks.count_right_plates((plate.plate.digit, plate.answer) for plate in plates)
            _record(participation, "colour_check_judged", right=right, of=len(plates))
            _move(participation, flow.PlatesAnswered(correct=right))
        _save_seen(participation)
    return participation


def finish_instructions(participation_id: int) -> Participation:
    """Go on from the instructions, to a new set of comprehension pairs or, in a study without, the main study."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if not _is_at(participation, Step.INSTRUCTIONS):
            return participation
        _record(participation, "instructions_read")
        _move(participation, flow.InstructionsRead())
        if participation.step == Step.COMPREHENSION:
            make_pairs(participation)
        _save_seen(participation)
    return participation


def make_pairs(participation: Participation) -> None:
    """Fix order and sides of the comprehension pairs for the current attempt."""
    rng = random.SystemRandom()
    sides: dict[int, dict[bool, Stimulus]] = {}
    for stimulus in Stimulus.objects.filter(study=participation.study, purpose=StimulusPurpose.COMPREHENSION):
        is_modified = stimulus.modification == stimulus.pair_modification
        sides.setdefault(stimulus.number, {})[is_modified] = stimulus
    pairs = list(sides.values())
    rng.shuffle(pairs)
    modified_sides = order.draw_modified_sides(len(pairs), rng)
    PairTrial.objects.bulk_create(
        PairTrial(
            participation=participation,
            attempt=participation.comprehension_attempt,
            position=position,
            clean_stimulus=pair[False],
            modified_stimulus=pair[True],
            modified_side=side,
        )
        for position, (pair, side) in enumerate(zip(pairs, modified_sides, strict=True), start=1)
    )


def answer_pair(participation_id: int, token: UUID, answer: str) -> Participation:
    """Answer a comprehension pair with "left" or "right". After the last one of an attempt the check is judged."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        all_pairs = list(participation.pair_trials.order_by("attempt", "position"))
        current = _current_or_past(participation, Step.COMPREHENSION, all_pairs, token)
        if current is None:
            return participation
        if answer not in checks.PAIR_ANSWERS:
            raise InvalidAnswer("A pair is answered with left or right.")
        current.answer, current.answered_at = answer, timezone.now()
        current.save(update_fields=["answer", "answered_at"])
        _record(participation, "pair_answered", attempt=current.attempt, position=current.position)
        pairs = [pair for pair in all_pairs if pair.attempt == current.attempt]
        if current is pairs[-1]:
            right = checks.count_right_pairs((pair.modified_side, pair.answer) for pair in pairs)
            _record(participation, "comprehension_judged", attempt=current.attempt, right=right, of=len(pairs))
            _move(participation, flow.PairsAnswered(correct=right, attempt=current.attempt))
            if participation.step == Step.INSTRUCTIONS:
                participation.comprehension_attempt += 1
        _save_seen(participation)
    return participation


# --- Main study -----------------------------------------------------------------------------------------------


def answer_trial(participation_id: int, token: UUID, value: int, timings: Timings) -> Participation:
    """Rate the current item; ``value`` is a whole number on the study's scale, and 0 is an answer.

    The first answer to an item stands: repeats are ignored. One short transaction of five statements.
    """
    with transaction.atomic():
        participation = locked_participation(participation_id)
        trials = unanswered_trials(participation, limit=2) if participation.step == Step.MAIN else []
        if not trials or trials[0].token != token:
            _refuse_unless_answered(participation, token)
            return participation
        current, following = trials[0], trials[1:]
        study = participation.study
        if type(value) is not int or not study.rating_scale.contains(value):
            raise InvalidAnswer(
                f"A rating is a whole number from {study.scale_minimum} to {study.scale_maximum}, not {value!r}."
            )
        Rating.objects.create(
            trial=current,
            value=value,
            response_ms=_milliseconds(timings.response_ms),
            first_interaction_ms=_milliseconds(timings.first_interaction_ms),
            last_interaction_ms=_milliseconds(timings.last_interaction_ms),
            focus_losses=_small_number(timings.focus_losses),
        )
        if not _check_passed(current, value, study):
            participation.attention_failures += 1
        _move(
            participation,
            flow.TrialAnswered(is_last=not following, attention_failures=participation.attention_failures),
        )
        if participation.step == Step.MAIN:
            _mark_shown(participation, position=following[0].position)
        _save_seen(participation)
    return participation


def _refuse_unless_answered(participation: Participation, token: UUID) -> None:
    if participation.step == Step.END:
        return
    if not Rating.objects.filter(trial__participation=participation, trial__token=token).exists():
        raise InvalidAnswer("This rating belongs to an item that has not been shown yet.")


def _check_passed(trial: Trial, value: int, study: Study) -> bool:
    if trial.kind == TrialKind.CORRUPTED:
        return checks.corrupted_check_passed(value, study.rating_scale)
    if trial.instructed_value is not None:
        return checks.instructed_check_passed(value, trial.instructed_value, study.instructed_tolerance)
    return True


def give_feedback(participation_id: int, answers: Mapping[str, str]) -> Participation:
    """Store the optional answers (item -> text; empty ones are left out) and end the participation."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if not _is_at(participation, Step.FEEDBACK):
            return participation
        given = {item: answer.strip() for item, answer in answers.items() if answer.strip()}
        if len(given) > MOST_FEEDBACK_ITEMS or any(len(item) > 40 for item in given):
            raise InvalidAnswer("The feedback has items that this study did not ask for.")
        if any(len(answer) > LONGEST_FEEDBACK_ANSWER for answer in given.values()):
            raise InvalidAnswer(f"An answer has at most {LONGEST_FEEDBACK_ANSWER} characters: please shorten it.")
        FeedbackAnswer.objects.bulk_create(
            FeedbackAnswer(participation=participation, item=item, answer=answer) for item, answer in given.items()
        )
        _record(participation, "feedback_given", items=len(given))
        _move(participation, flow.FeedbackGiven(attention_failures=participation.attention_failures))
        _save_seen(participation)
    return participation


def close_timed_out(participation_id: int, not_seen_since: datetime) -> None:
    """End a participation that has not been seen since then.

    Its ratings are kept. Before the feedback page it timed out and its place is free; from there on it is complete.
    """
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step == Step.END or participation.last_seen_at >= not_seen_since:
            return
        _move(participation, flow.NotSeenForLong(attention_failures=participation.attention_failures))
        participation.save()


# --- What they share ------------------------------------------------------------------------------------------


def locked_participation(participation_id: int) -> Participation:
    return (
        Participation.objects.select_for_update(of=("self",), no_key=True)
        .select_related("study")
        .get(pk=participation_id)
    )


def _save_seen(participation: Participation) -> None:
    """Save where the participant is, and that they were seen."""
    if participation.step != Step.END:
        extend_lease(participation, participation.study)
    participation.save(
        update_fields=[
            "step",
            "outcome",
            "is_valid",
            "finished_at",
            "completion_code",
            "attention_failures",
            "comprehension_attempt",
            "last_seen_at",
            "lease_expires_at",
        ]
    )


def _record(participation: Participation, name: str, **detail: object) -> None:
    ParticipationEvent.objects.create(participation=participation, name=name, detail=detail)


def _is_at(participation: Participation, step: Step) -> bool:
    """Whether the participant is at ``step``; False if that is past, InvalidAnswer if it is still ahead."""
    if participation.step == step:
        return True
    if STEPS.index(Step(participation.step)) < STEPS.index(step):
        raise InvalidAnswer(f"The step {step.value} has not been reached.")
    return False


def _current_or_past(participation: Participation, step: Step, items: list[Item], token: UUID) -> Item | None:
    """The current item if ``token`` is its token; None if the token's item is past; else InvalidAnswer."""
    unanswered = [item for item in items if item.answered_at is None]
    if participation.step == step and unanswered and unanswered[0].token == token:
        return unanswered[0]
    if participation.step == Step.END or any(item.token == token for item in items if item.answered_at):
        return None
    raise InvalidAnswer("This answer belongs to something that has not been shown yet.")


def _move(participation: Participation, happening: flow.Happening) -> None:
    """Move the pointer, without saving; at the end fix outcome, code and validity."""
    position = flow.next_step(Step(participation.step), happening, participation.study.rules)
    if position.step == Step.MAIN != participation.step:
        _mark_shown(participation, position=1)
    participation.step = position.step
    if position.outcome is not None:
        end_participation(participation, position.outcome)


def _mark_shown(participation: Participation, position: int) -> None:
    """Note when an item became the current one: from then on the participant's page shows it."""
    participation.trials.filter(position=position).update(first_shown_at=timezone.now())


def end_participation(participation: Participation, outcome: Outcome) -> None:
    """Fix, without saving, how it ended, and free the place unless the ratings count."""
    study = participation.study
    participation.step = Step.END
    participation.outcome = outcome
    participation.finished_at = timezone.now()
    participation.last_seen_at = participation.finished_at
    participation.lease_expires_at = None
    participation.completion_code = CompletionCode.objects.filter(study=study, outcome=outcome).first()
    participation.is_valid = outcome == Outcome.COMPLETED
    _record(participation, "ended", outcome=outcome)
    counts = participation.kind == ParticipationKind.REAL or (
        participation.kind == ParticipationKind.TEST and study.is_demo
    )
    if participation.is_valid and counts:
        # Robust: whatever listens must not cost the participant the end page.
        transaction.on_commit(
            lambda: valid_ratings_changed.send(
                sender=Study, attack_id=study.attack_id, target_model_id=study.target_model_id
            ),
            robust=True,
        )


def _small_number(value: int | None) -> int | None:
    """A browser's number that fits the column, else None: a strange measurement must not cost an answer."""
    return value if type(value) is int and 0 <= value <= LARGEST_SMALL_NUMBER else None


def _milliseconds(value: int | None) -> int | None:
    return value if type(value) is int and 0 <= value <= LARGEST_MILLISECONDS else None


def _ratio(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) and 0 < value < 100 else None
