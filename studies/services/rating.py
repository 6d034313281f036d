"""The answers of the main study: each stored at once and once, in order, and answered with what comes next.

Everything is decided while the participation's row is locked, and what comes next is read in the same transaction:
so of two requests at the same moment both are told the state after both, never a stale one.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from studies import checks, flow
from studies.flow import Step
from studies.models import Participation, Rating, RatingChange, Study, Trial, TrialKind
from studies.selectors.items import LOOK_AHEAD, Item, item_of_token, items_from, unanswered_items
from studies.services.allocation import extend_lease
from studies.services.pointer import InvalidAnswer, OutOfTurn, move, save_seen, small_number

LARGEST_MILLISECONDS = 2**31 - 1


@dataclass(frozen=True)
class Timings:
    """What the browser measured about one answer; None where unknown.

    All but ``client_ms``, which is the browser's monotonic clock itself, count from when the item was shown.
    ``first_interaction_ms`` is never unknown: without it the scale was not touched, and there is no rating.
    ``shown_width`` and ``shown_height``: of the image, in pixels of the device.
    """

    response_ms: int | None
    first_interaction_ms: int
    last_interaction_ms: int | None
    focus_losses: int | None
    visible_ms: int | None = None
    shown_width: int | None = None
    shown_height: int | None = None
    client_ms: int | None = None


@dataclass(frozen=True)
class Turn:
    """What the page of the main study shows next: the first of ``items``, the others after it; none when it is over.

    ``came_late``: the participation had ended before, and nothing was done.
    """

    participation: Participation
    items: list[Item]
    came_late: bool = False


def answer_trial(
    participation_id: int,
    token: UUID,
    value: int,
    timings: Timings,
    *,
    start_position: int | None = None,
    revises: bool = False,
) -> Participation:
    """``answer_item`` for a participation of this id; gives where the participant is then."""
    return answer_item(
        token, value, timings, start_position=start_position, revises=revises, pk=participation_id
    ).participation


def answer_item(
    token: UUID,
    value: int,
    timings: Timings,
    *,
    start_position: int | None = None,
    revises: bool = False,
    **whose: Any,
) -> Turn:
    """Rate the current item; ``value`` is a whole number on the study's scale, and 0 is an answer.

    ``start_position``: where the scale stood before it was touched; None when it showed no position.
    ``whose``: lookups that name the participation; Participation.DoesNotExist when there is none.

    An answer to an item that is not current yet raises OutOfTurn. To an item that has its answer, a repeat changes
    nothing, whatever it says; unless it ``revises`` the answer, which the study must allow (else OutOfTurn): then the
    new answer stands, and the item after it is shown next.

    One short transaction of five statements.
    """
    with transaction.atomic():
        participation = _locked(**whose)
        if participation.step == Step.END:
            return Turn(participation, [], came_late=True)
        items = []
        if participation.step == Step.MAIN:
            items = unanswered_items(participation.pk, limit=2 + LOOK_AHEAD)
        if items and items[0].token == token:
            answer = _checked(participation.study, value, timings, start_position)
            return Turn(participation, _take_answer(participation, items, answer))
        answered = _answered_item(participation, token)
        if not revises:
            return Turn(participation, items[: 1 + LOOK_AHEAD])
        _refuse_going_back(participation)
        if answered.answer == value:
            return Turn(participation, items_from(participation.pk, answered.position + 1))
        answer = _checked(participation.study, value, timings, start_position)
        return Turn(participation, _revise_answer(participation, answered, answer))


def go_back(token: UUID, **whose: Any) -> Turn:
    """Show the item before the one with this token, which is on the participant's screen. Stores nothing."""
    with transaction.atomic():
        participation = _locked(**whose)
        if participation.step == Step.END:
            return Turn(participation, [], came_late=True)
        _refuse_going_back(participation)
        (current,) = unanswered_items(participation.pk, limit=1)
        on_screen = item_of_token(participation.pk, token)
        if on_screen is None or on_screen.position > current.position:
            raise OutOfTurn("This item has not been shown yet.")
        if on_screen.position == 1:
            raise OutOfTurn("There is no item before the first one.")
        return Turn(participation, items_from(participation.pk, on_screen.position - 1))


def keep_place(**whose: Any) -> bool:
    """Note that the participant is still there; False when the participation has ended."""
    with transaction.atomic():
        participation = _locked(**whose)
        if participation.step == Step.END:
            return False
        _save_seen_in_main(participation)
    return True


def _locked(**whose: Any) -> Participation:
    """The participation and its study in one statement, looked up and locked at once."""
    locked = Participation.objects.select_for_update(of=("self",), no_key=True)
    return locked.select_related("study").get(**whose)


def _checked(study: Study, value: int, timings: Timings, start_position: int | None) -> dict[str, Any]:
    """The columns of the rating. Raises InvalidAnswer for what is none."""
    scale = study.rating_scale
    if type(value) is not int or not scale.contains(value):
        raise InvalidAnswer(f"A rating is a whole number from {scale.minimum} to {scale.maximum}, not {value!r}.")
    if start_position is not None and not scale.contains(start_position):
        raise InvalidAnswer(f"The scale cannot have started at {start_position!r}, which is not on it.")
    if type(timings.first_interaction_ms) is not int or timings.first_interaction_ms < 0:
        raise InvalidAnswer("first_interaction_ms must say when the scale was touched: untouched, it is no answer.")
    return {
        "value": value,
        "start_position": start_position,
        "answered_at": timezone.now(),
        "client_ms": _milliseconds(timings.client_ms),
        "response_ms": _milliseconds(timings.response_ms),
        "first_interaction_ms": min(timings.first_interaction_ms, LARGEST_MILLISECONDS),
        "last_interaction_ms": _milliseconds(timings.last_interaction_ms),
        "visible_ms": _milliseconds(timings.visible_ms),
        "focus_losses": small_number(timings.focus_losses),
        "shown_width": small_number(timings.shown_width),
        "shown_height": small_number(timings.shown_height),
    }


def _take_answer(participation: Participation, items: list[Item], answer: dict[str, Any]) -> list[Item]:
    """Store the first answer to the first of ``items``; gives those that are left."""
    current, following = items[0], items[1:]
    Rating(trial_id=current.trial_id, **answer).save(force_insert=True)
    if not _check_passed(current, answer["value"], participation.study):
        participation.attention_failures += 1
    move(
        participation,
        flow.TrialAnswered(is_last=not following, attention_failures=participation.attention_failures),
    )
    if participation.step != Step.MAIN:
        save_seen(participation)
        return []
    Trial.objects.filter(pk=following[0].trial_id).update(first_shown_at=answer["answered_at"])
    _save_seen_in_main(participation)
    return following


def _revise_answer(participation: Participation, item: Item, answer: dict[str, Any]) -> list[Item]:
    """Replace an earlier answer and keep it as history; gives the items after it."""
    study, rating = participation.study, Rating.objects.get(pk=item.trial_id)
    RatingChange.objects.create(
        rating=rating,
        value=rating.value,
        answered_at=rating.answered_at,
        response_ms=rating.response_ms,
        changed_at=answer["answered_at"],
    )
    passed = [_check_passed(item, value, study) for value in (rating.value, answer["value"])]
    Rating.objects.filter(pk=rating.pk).update(**answer)
    participation.attention_failures += passed[0] - passed[1]
    move(participation, flow.TrialAnswered(is_last=False, attention_failures=participation.attention_failures))
    save_seen(participation)
    return items_from(participation.pk, item.position + 1) if participation.step == Step.MAIN else []


def _save_seen_in_main(participation: Participation) -> None:
    """``save_seen`` for an answer that moves the participant to no other step: most of all requests."""
    extend_lease(participation, participation.study)
    Participation.objects.filter(pk=participation.pk).update(
        last_seen_at=participation.last_seen_at,
        lease_expires_at=participation.lease_expires_at,
        attention_failures=participation.attention_failures,
    )


def _answered_item(participation: Participation, token: UUID) -> Item:
    """The answered item with this token. Raises OutOfTurn if it is not answered, or none of the participant's."""
    item = item_of_token(participation.pk, token)
    if item is None or item.answer is None:
        raise OutOfTurn("This rating belongs to an item that has not been shown yet.")
    return item


def _refuse_going_back(participation: Participation) -> None:
    if not participation.study.may_go_back:
        raise OutOfTurn("In this study answers cannot be changed.")
    if participation.step != Step.MAIN:
        raise OutOfTurn("The ratings are over.")


def _check_passed(item: Item, value: int, study: Study) -> bool:
    if item.kind == TrialKind.CORRUPTED:
        return checks.corrupted_check_passed(value, study.rating_scale)
    if item.instructed_value is not None:
        return checks.instructed_check_passed(value, item.instructed_value, study.instructed_tolerance)
    return True


def _milliseconds(value: int | None) -> int | None:
    """A browser's number that fits the column, else None: a strange measurement must not cost an answer."""
    return value if type(value) is int and 0 <= value <= LARGEST_MILLISECONDS else None
