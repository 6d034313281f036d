"""The server's pointer to where a participant is: locked, moved, and everything on the way recorded."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from scooter_site.common.prepared import PreparedQuery, Write, change, insertion, read, write
from studies import flow
from studies.flow import Outcome, Step
from studies.models import CompletionCode, Participation, ParticipationEvent, Study, Verdict
from studies.selectors.counting import counts
from studies.selectors.quality import OUTCOMES_WITH_ALL_ANSWERS, same_person
from studies.services.allocation import extend_lease
from studies.services.quality_policy import exclude_beyond_plan, exclude_by_policy
from studies.signals import valid_ratings_changed

LARGEST_SMALL_NUMBER = 2**15 - 1

STEPS = list(Step)


class InvalidAnswer(ValueError):
    """An answer that is not taken, and changed nothing; the message says why."""


class OutOfTurn(InvalidAnswer):
    """A well-formed answer that is not due: to what has not been shown yet, or to what can no longer be changed."""


def locked_participation(participation_id: int) -> Participation:
    participation = _LOCKED.first(participation_id)
    if participation is None:
        raise Participation.DoesNotExist
    return participation


def _locked(participation_id: int) -> QuerySet[Participation]:
    locked = Participation.objects.select_for_update(of=("self",), no_key=True).select_related("study")
    return locked.filter(pk=participation_id).order_by()


_LOCKED = PreparedQuery(_locked, 2**40)


def locked_with(participation_id: int, query: PreparedQuery) -> tuple[Participation, list[Any]]:
    """The participation, and the objects of a query for its id as they are once it is locked; in one exchange."""
    found, rows = read((_LOCKED, (participation_id,)), (query, (participation_id,)))
    if not found:
        raise Participation.DoesNotExist
    [participation] = _LOCKED.objects_of(found)
    return participation, query.objects_of(rows)


def save_seen(participation: Participation) -> None:
    """Save where the participant is, and that they were seen."""
    if participation.step == Step.END:
        participation.last_seen_at = timezone.now()
    else:
        extend_lease(participation, participation.study)
    write(change(Participation, participation.pk, {name: getattr(participation, name) for name in _POINTER}))


_POINTER = (
    "step", "outcome", "is_valid", "validity_changed_at", "finished_at", "completion_code_id", "attention_failures",
    "comprehension_attempt", "last_seen_at", "lease_expires_at",
)  # fmt: skip


def seen(participation: Participation) -> Write:
    """``save_seen`` for an answer that moves the participant to no other step: most of all requests."""
    extend_lease(participation, participation.study)
    times = {"last_seen_at": participation.last_seen_at, "lease_expires_at": participation.lease_expires_at}
    return change(Participation, participation.pk, times)


def record(participation: Participation, name: str, **detail: object) -> None:
    """Add to the participation's timeline."""
    write(event(participation, name, **detail))


def event(participation: Participation, name: str, **detail: object) -> Write:
    """``record`` as a statement, to be sent with others."""
    values = {"participation_id": participation.pk, "at": timezone.now(), "name": name, "detail": detail}
    return insertion(ParticipationEvent, values)


def is_at(participation: Participation, step: Step) -> bool:
    """Whether the participant is at ``step``; False if that is past, InvalidAnswer if it is still ahead."""
    if participation.step == step:
        return True
    if STEPS.index(Step(participation.step)) < STEPS.index(step):
        raise InvalidAnswer(f"The step {step.value} has not been reached.")
    return False


def move(participation: Participation, happening: flow.Happening) -> None:
    """Move the pointer, without saving; at the end fix outcome, code and validity."""
    position = flow.next_step(Step(participation.step), happening, participation.study.rules)
    if position.step == Step.MAIN != participation.step:
        mark_shown(participation, position=1)
    participation.step = position.step
    if position.outcome is not None:
        end_participation(participation, position.outcome)


def mark_shown(participation: Participation, position: int) -> None:
    """Note when an item became the current one: from then on the participant's page shows it."""
    participation.trials.filter(position=position).update(first_shown_at=timezone.now())


def end_participation(participation: Participation, outcome: Outcome) -> None:
    """Fix, without saving, how it ended, and free the place unless the ratings count."""
    study = participation.study
    participation.step = Step.END
    participation.outcome = outcome
    participation.finished_at = timezone.now()
    participation.lease_expires_at = None
    participation.completion_code = CompletionCode.objects.filter(study=study, outcome=outcome).first()
    participation.is_valid = (
        _has_all_answers(participation) and not _came_before(participation) and not _excluded_by_policy(participation)
    )
    participation.validity_changed_at = participation.finished_at if participation.is_valid else None
    record(participation, "ended", outcome=outcome)
    if participation.is_valid:
        announce_changed_ratings(participation)


def announce_changed_ratings(participation: Participation) -> None:
    """Tell those above, once it is committed, that the ratings of this participation count or cease to."""
    if not counts(participation):
        return
    study = participation.study
    # Robust: whatever listens must not cost the participant the end page.
    transaction.on_commit(
        lambda: valid_ratings_changed.send(
            sender=Study, attack_id=study.attack_id, target_model_id=study.target_model_id
        ),
        robust=True,
    )


def _has_all_answers(participation: Participation) -> bool:
    """Who failed the attention checks may have been let through to the end, or stopped before."""
    if participation.outcome == Outcome.ATTENTION_FAILED:
        return not participation.trials.filter(rating=None).exists()
    return participation.outcome == Outcome.COMPLETED


def _came_before(participation: Participation) -> bool:
    """Whether the same person has done all of it before: each counts once, and who was excluded gets no second go."""
    return same_person(participation).filter(outcome__in=OUTCOMES_WITH_ALL_ANSWERS).exists()


def _excluded_by_policy(participation: Participation) -> bool:
    if not (exclude_by_policy(participation) or exclude_beyond_plan(participation)):
        return False
    record(participation, "decided", verdict=Verdict.EXCLUDE, ratings_count=False, by="policy")
    return True


def small_number(value: int | None) -> int | None:
    """A browser's number that fits the column, else None: a strange measurement must not cost an answer."""
    return value if type(value) is int and 0 <= value <= LARGEST_SMALL_NUMBER else None
