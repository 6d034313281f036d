"""The answers of the main study: each stored at once and once, in order, and answered with what comes next.

Everything is decided while the participation's row is locked, and what comes next is read in the same transaction:
so of two requests at the same moment both are told the state after both, never a stale one.
"""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from scooter_site.common.prepared import PreparedQuery, change, insertion, read, write
from studies import flow
from studies.flow import Step
from studies.models import Participation, Rating, RatingChange, Study, Trial
from studies.selectors.items import (
    LOOK_AHEAD,
    UNANSWERED_OF_SESSION,
    Item,
    item_of_token,
    items_from,
    unanswered_items,
)
from studies.services.pointer import (
    InvalidAnswer,
    OutOfTurn,
    locked_participation,
    move,
    save_seen,
    seen,
    small_number,
)

LARGEST_MILLISECONDS = 2**31 - 1


# All that most requests need of the two rows: reading the other seventy columns costs more than the answer itself.
_COLUMNS = (
    "kind", "step", "dataset", "attention_failures", "lease_expires_at", "study__slug", "study__preset",
    "study__scale_widget", "study__scale_minimum", "study__scale_maximum", "study__scale_direction",
    "study__clean_per_dataset", "study__modified_per_dataset", "study__corrupted_check_count",
    "study__instructed_check_count", "study__instructed_tolerance", "study__lease_minutes", "study__may_go_back",
)  # fmt: skip


@dataclass(frozen=True)
class Session:
    """What a participant's browser says who it is: the participation's public id, and the study's slug."""

    public_id: UUID
    slug: str


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


def answer_item(
    session: Session,
    token: UUID,
    value: int,
    timings: Timings,
    *,
    start_position: int | None = None,
    revises: bool = False,
) -> Turn:
    """Rate the current item; ``value`` is a whole number on the study's scale, and 0 is an answer.

    ``start_position``: where the scale stood before it was touched; None when it showed no position.
    Raises Participation.DoesNotExist when there is no such session.

    An answer to an item that is not current yet raises OutOfTurn. To an item that has its answer, a repeat changes
    nothing, whatever it says; unless it ``revises`` the answer, which the study must allow (else OutOfTurn): then the
    new answer stands, and the item after it is shown next.

    One short transaction of five statements, which PostgreSQL is sent in two parts (reading, writing), and a few more
    where a check was failed or the ratings are over.
    """
    with transaction.atomic():
        participation, items = _locked_with_items(session)
        if participation.step == Step.END:
            return Turn(participation, [], came_late=True)
        if items and items[0].token == token:
            answer = _checked(participation.study, value, timings, start_position)
            return _take_answer(participation, items, answer)
        answered = _answered_item(participation, token)
        if not revises:
            return Turn(participation, items[: 1 + LOOK_AHEAD])
        _refuse_going_back(participation)
        if answered.answer == value:
            return Turn(participation, items_from(participation.pk, answered.position + 1))
        answer = _checked(participation.study, value, timings, start_position)
        return _revise_answer(participation, answered, answer)


def go_back(session: Session, token: UUID) -> Turn:
    """Show the item before the one with this token, which is on the participant's screen. Stores nothing."""
    with transaction.atomic():
        participation = _locked(session)
        if participation.step == Step.END:
            return Turn(participation, [], came_late=True)
        _refuse_going_back(participation)
        current = unanswered_items(participation.pk)[0]
        on_screen = item_of_token(participation.pk, token)
        if on_screen is None or on_screen.position > current.position:
            raise OutOfTurn("This item has not been shown yet.")
        if on_screen.position == 1:
            raise OutOfTurn("There is no item before the first one.")
        return Turn(participation, items_from(participation.pk, on_screen.position - 1))


def keep_place(session: Session) -> bool:
    """Note that the participant is still there; False when the participation has ended."""
    with transaction.atomic():
        participation = _locked(session)
        if participation.step == Step.END:
            return False
        write(seen(participation))
    return True


def _session(public_id: UUID, slug: str) -> QuerySet[Participation]:
    locked = Participation.objects.select_for_update(of=("self",), no_key=True).select_related("study")
    return locked.only(*_COLUMNS).filter(public_id=public_id, study__slug=slug)


_SESSION = PreparedQuery(_session, UUID(int=1), "slug")


def _locked(session: Session) -> Participation:
    """The participation and its study in one statement, looked up and locked at once; without seldom used columns."""
    participation = _SESSION.first(session.public_id, session.slug)
    if participation is None:
        raise Participation.DoesNotExist
    return participation


def _locked_with_items(session: Session) -> tuple[Participation, list[Item]]:
    """As ``_locked``, and what the participant is to answer then, in the main study."""
    found, items = read((_SESSION, (session.public_id, session.slug)), (UNANSWERED_OF_SESSION, (session.public_id,)))
    if not found:
        raise Participation.DoesNotExist
    [participation] = _SESSION.objects_of(found)
    return participation, [Item(*row) for row in items] if participation.step == Step.MAIN else []


def _checked(study: Study, value: int, timings: Timings, start_position: int | None) -> dict[str, Any]:
    """The columns of the rating. Raises InvalidAnswer for what is none."""
    scale = study.rating_scale
    on_scale = f"a whole number from {scale.minimum} to {scale.maximum}"
    if type(value) is not int or not scale.contains(value):
        raise InvalidAnswer(f"value must be {on_scale}, not {value!r}.")
    if start_position is not None and not scale.contains(start_position):
        raise InvalidAnswer(f"start_position must be {on_scale}, not {start_position!r}.")
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


def _take_answer(participation: Participation, items: list[Item], answer: dict[str, Any]) -> Turn:
    """Store the first answer to the first of ``items``."""
    current, following = items[0], items[1:]
    writes = [insertion(Rating, {"trial_id": current.trial_id, **answer})]
    study, value = participation.study, answer["value"]
    failures = 0 if study.protocol.check_passed(current, value, study.setup) else 1
    if following:
        shown: dict[str, Any] = {"first_shown_at": answer["answered_at"]}
        parameters = study.protocol.adapt(current, value, following[0])
        if parameters is not None:
            shown["parameters"] = dict(parameters)
            following[0] = replace(following[0], parameters=parameters)
        writes.append(change(Trial, following[0].trial_id, shown))
    if following and not failures:
        write(*writes, seen(participation))
        return Turn(participation, following)
    write(*writes)
    moved = _move(participation, failures, is_last=not following)
    return Turn(moved, following if moved.step == Step.MAIN else [])


def _move(participation: Participation, failures: int, *, is_last: bool) -> Participation:
    """Count ``failures`` more of attention checks and let the flow decide where that leads; gives the whole row."""
    participation = locked_participation(participation.pk)
    participation.attention_failures += failures
    move(participation, flow.TrialAnswered(is_last=is_last, attention_failures=participation.attention_failures))
    save_seen(participation)
    return participation


def _revise_answer(participation: Participation, item: Item, answer: dict[str, Any]) -> Turn:
    """Replace an earlier answer and keep it as history."""
    study, rating = participation.study, Rating.objects.get(pk=item.trial_id)
    RatingChange.objects.create(
        rating=rating,
        value=rating.value,
        answered_at=rating.answered_at,
        response_ms=rating.response_ms,
        changed_at=answer["answered_at"],
    )
    passed = [study.protocol.check_passed(item, value, study.setup) for value in (rating.value, answer["value"])]
    Rating.objects.filter(pk=rating.pk).update(**answer)
    moved = _move(participation, passed[0] - passed[1], is_last=False)
    return Turn(moved, items_from(participation.pk, item.position + 1) if moved.step == Step.MAIN else [])


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


def _milliseconds(value: int | None) -> int | None:
    """A browser's number that fits the column, else None: a strange measurement must not cost an answer."""
    return value if type(value) is int and 0 <= value <= LARGEST_MILLISECONDS else None
