"""Ways through a study by the services that the pages call: for tests that need a participant somewhere."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F

from studies import selectors
from studies.flow import Step
from studies.models import Participation, ParticipationKind, PlateTrial, Study, Trial, TrialKind
from studies.selectors.items import unanswered_items
from studies.services.participations import (
    Device,
    Session,
    Timings,
    accept_consent,
    answer_item,
    answer_pair,
    answer_plate,
    enter_study,
    finish_instructions,
    give_feedback,
)

DEVICE = Device(viewport_width=1280, viewport_height=800, device_pixel_ratio=2.0)
TIMINGS = Timings(response_ms=1500, first_interaction_ms=700, last_interaction_ms=1200, focus_losses=0)


def enter(study: Study, kind: str = ParticipationKind.REAL, **ids: str) -> Participation:
    return enter_study(study, kind=kind, **ids)


def consent(participation: Participation) -> Participation:
    return accept_consent(participation.pk, DEVICE)


def right_plate_answer(plate_trial: PlateTrial) -> str:
    return "none" if plate_trial.plate.digit is None else str(plate_trial.plate.digit)


def answer_plates(participation: Participation, *, wrong: int = 0) -> Participation:
    """Answer all plates, the first ``wrong`` of them wrongly."""
    number = 0
    while (trial := selectors.current_plate(participation)) is not None:
        right = right_plate_answer(trial)
        answer = right if number >= wrong else ("none" if right != "none" else "7")
        participation = answer_plate(participation.pk, trial.token, answer)
        number += 1
    return participation


def answer_pairs(participation: Participation, *, wrong: int = 0) -> Participation:
    """Read the instructions and answer all pairs of one attempt, the first ``wrong`` of them wrongly."""
    participation = finish_instructions(participation.pk)
    for number in range(selectors.progress(participation).total):
        trial = selectors.current_pair(participation)
        other = "left" if trial.modified_side == "right" else "right"
        participation = answer_pair(participation.pk, trial.token, other if number < wrong else trial.modified_side)
    return participation


def right_value(trial: Trial) -> int:
    """What an attentive person who is always right answers, at the ends of the scale."""
    study = trial.participation.study
    scale = study.rating_scale
    if trial.kind == TrialKind.INSTRUCTED:
        return trial.instructed_value
    says_modified = trial.kind == TrialKind.CORRUPTED or trial.image.kind == "modified"
    return scale.maximum if says_modified == scale.higher_is_modified else scale.minimum


def wrong_value(trial: Trial) -> int:
    """A failed check, or the wrong end of the scale."""
    scale = trial.participation.study.rating_scale
    return scale.minimum + scale.maximum - right_value(trial)


def current_trial(participation: Participation) -> Trial | None:
    """The trial of the item that the page shows; None outside the main study."""
    items = unanswered_items(participation.pk) if participation.step == Step.MAIN else []
    return Trial.objects.get(pk=items[0].trial_id) if items else None


def answer(participation: Participation, token: UUID, value: int, timings: Timings = TIMINGS, **how: Any):
    """Answer an item as the page does; gives where the participant is then."""
    session = Session(participation.public_id, participation.study.slug)
    return answer_item(session, token, value, timings, **how).participation


def rate(participation: Participation, value: int | None = None) -> Participation:
    """Rate the current item, rightly unless ``value`` is given."""
    trial = current_trial(participation)
    return answer(participation, trial.token, right_value(trial) if value is None else value)


def rate_all(participation: Participation, *, failed_checks: int = 0) -> Participation:
    """Rate everything rightly, but for the first ``failed_checks`` attention checks."""
    # The walk takes no time; as if it had begun earlier, the times that it claims (TIMINGS) can be true.
    participation.trials.filter(position=1).update(first_shown_at=F("first_shown_at") - timedelta(minutes=10))
    while participation.step == Step.MAIN:
        trial = current_trial(participation)
        fails = trial.kind != TrialKind.IMAGE and failed_checks > 0
        failed_checks -= fails
        participation = rate(participation, wrong_value(trial) if fails else None)
    return participation


def to_main(study: Study, kind: str = ParticipationKind.REAL, **ids: str) -> Participation:
    """A participant who has passed everything before the main study."""
    return answer_pairs(answer_plates(consent(enter(study, kind, **ids))))


def complete(study: Study, kind: str = ParticipationKind.REAL, *, failed_checks: int = 0, **ids: str) -> Participation:
    """A participant who has gone the whole way."""
    participation = rate_all(to_main(study, kind, **ids), failed_checks=failed_checks)
    return give_feedback(participation.pk, {"comment": "Fine"})
