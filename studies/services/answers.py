"""What a participant answers before and after the main study: saved at once, each answer at most once.

Each function locks the participation's row, checks that it is where it should be, and may be called twice: what is
past is left as it is and the participation is returned. What lies ahead is refused with InvalidAnswer.
"""

import random
from collections.abc import Mapping
from typing import TypeVar
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from scooter_site.common.prepared import PreparedQuery, Write, change, write
from studies import checks, flow, order
from studies.feedback import FeedbackError, checked_answers, parse_items
from studies.flow import Step
from studies.models import (
    FeedbackAnswer,
    PairTrial,
    Participation,
    PlateTrial,
    Stimulus,
    StimulusPurpose,
    TextKind,
)
from studies.selectors import study_text
from studies.services.pointer import (
    InvalidAnswer,
    event,
    is_at,
    locked_participation,
    locked_with,
    move,
    record,
    save_seen,
    seen,
)

Item = TypeVar("Item", PlateTrial, PairTrial)


def answer_plate(participation_id: int, token: UUID, answer: str) -> Participation:
    """Answer a colour plate with "0" to "9" or "none". After the last one the check is judged."""
    with transaction.atomic():
        participation, plates = locked_with(participation_id, _PLATES)
        current = _current_or_past(participation, Step.COLOUR_CHECK, plates, token)
        if current is None:
            return participation
        if answer not in checks.PLATE_ANSWERS:
            raise InvalidAnswer("A colour plate is answered with a digit from 0 to 9, or none.")
        answered = _answered(current, answer)
        happened = event(participation, "plate_answered", position=current.position)
        if current is not plates[-1]:
            write(answered, happened, seen(participation))
        else:
            write(answered, happened)
            right = checks.count_right_plates((plate.plate.digit, plate.answer) for plate in plates)
            record(participation, "colour_check_judged", right=right, of=len(plates))
            move(participation, flow.PlatesAnswered(correct=right))
            save_seen(participation)
    return participation


_PLATES = PreparedQuery(
    lambda participation_id: (
        PlateTrial.objects.filter(participation=participation_id).select_related("plate").order_by("position")
    ),
    2**40,
)


def finish_instructions(participation_id: int) -> Participation:
    """Go on from the instructions, to a new set of comprehension pairs or, in a study without, the main study."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if not is_at(participation, Step.INSTRUCTIONS):
            return participation
        record(participation, "instructions_read")
        move(participation, flow.InstructionsRead())
        if participation.step == Step.COMPREHENSION:
            make_pairs(participation)
        save_seen(participation)
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
        participation, all_pairs = locked_with(participation_id, _PAIRS)
        current = _current_or_past(participation, Step.COMPREHENSION, all_pairs, token)
        if current is None:
            return participation
        if answer not in checks.PAIR_ANSWERS:
            raise InvalidAnswer("A pair is answered with left or right.")
        answered = _answered(current, answer)
        happened = event(participation, "pair_answered", attempt=current.attempt, position=current.position)
        pairs = [pair for pair in all_pairs if pair.attempt == current.attempt]
        if current is not pairs[-1]:
            write(answered, happened, seen(participation))
        else:
            write(answered, happened)
            right = checks.count_right_pairs((pair.modified_side, pair.answer) for pair in pairs)
            record(participation, "comprehension_judged", attempt=current.attempt, right=right, of=len(pairs))
            move(participation, flow.PairsAnswered(correct=right, attempt=current.attempt))
            if participation.step == Step.INSTRUCTIONS:
                participation.comprehension_attempt += 1
            save_seen(participation)
    return participation


_PAIRS = PreparedQuery(
    lambda participation_id: PairTrial.objects.filter(participation=participation_id).order_by("attempt", "position"),
    2**40,
)


def give_feedback(participation_id: int, answers: Mapping[str, str]) -> Participation:
    """Store the optional answers (by the names of the questions; empty ones are left out) and end the participation."""
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if not is_at(participation, Step.FEEDBACK):
            return participation
        text = study_text(participation.study, TextKind.FEEDBACK)
        assert text is not None  # noqa: S101 - for the type checker; no study is launched without
        try:
            given = checked_answers(parse_items(text.body), answers)
        except FeedbackError as error:
            raise InvalidAnswer(str(error)) from error
        FeedbackAnswer.objects.bulk_create(
            FeedbackAnswer(participation=participation, text=text, item=item, answer=answer)
            for item, answer in given.items()
        )
        record(participation, "feedback_given", items=len(given))
        move(participation, flow.FeedbackGiven(attention_failures=participation.attention_failures))
        save_seen(participation)
    return participation


def _current_or_past(participation: Participation, step: Step, items: list[Item], token: UUID) -> Item | None:
    """The current item if ``token`` is its token; None if the token's item is past; else InvalidAnswer."""
    unanswered = [item for item in items if item.answered_at is None]
    if participation.step == step and unanswered and unanswered[0].token == token:
        return unanswered[0]
    if participation.step == Step.END or any(item.token == token for item in items if item.answered_at):
        return None
    raise InvalidAnswer("This answer belongs to something that has not been shown yet.")


def _answered(item: PlateTrial | PairTrial, answer: str) -> Write:
    """Answer the item now: the object at once, its row with this statement."""
    item.answer, item.answered_at = answer, timezone.now()
    return change(type(item), item.pk, {"answer": answer, "answered_at": item.answered_at})
