"""Where participants are. What pictures they may see is in studies.selectors.pictures."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from scooter_site.common.prepared import PreparedQuery
from studies.flow import Outcome, Step
from studies.models import (
    PairTrial,
    Panel,
    ParticipantMessage,
    Participation,
    ParticipationKind,
    PlateTrial,
)


@dataclass(frozen=True)
class Progress:
    """How many items of the current step are answered, of how many."""

    done: int
    total: int


def participation_of(public_id: UUID, slug: str) -> Participation | None:
    """The participation that a browser's session names in the study of this slug, with what every page needs of it.

    That is the study, the identity and the completion code.
    """
    return _OF_SESSION.first(public_id, slug)


def _of_session(public_id: UUID, slug: str) -> QuerySet[Participation]:
    found = Participation.objects.select_related("study", "identity", "completion_code")
    return found.filter(public_id=public_id, study__slug=slug).order_by()


_OF_SESSION = PreparedQuery(_of_session, UUID(int=1), "a slug")


def has_new_answer(participation: Participation) -> bool:
    """Whether the researchers answered a message of this participant who has not seen the answer yet."""
    return bool(_NEW_ANSWERS.rows(participation.pk))


def _new_answers(participation_id: int) -> QuerySet[ParticipantMessage, Any]:
    new = ParticipantMessage.objects.filter(answered_at__isnull=False, answer_read_at__isnull=True)
    return new.filter(participation=participation_id).order_by().values_list("pk")[:1]


_NEW_ANSWERS = PreparedQuery(_new_answers, 2**40)


def current_plate(participation: Participation) -> PlateTrial | None:
    """The colour plate to answer now: the first unanswered one; None outside the colour check."""
    return _PLATE.first(participation.pk) if participation.step == Step.COLOUR_CHECK else None


def _plate(participation_id: int) -> QuerySet[PlateTrial]:
    unanswered = PlateTrial.objects.filter(participation=participation_id, answered_at__isnull=True)
    return unanswered.select_related("plate").order_by("position")[:1]


_PLATE = PreparedQuery(_plate, 2**40)


def current_pair(participation: Participation) -> PairTrial | None:
    """The comprehension pair to answer now: the first unanswered one of this attempt; None outside the check."""
    if participation.step != Step.COMPREHENSION:
        return None
    return _PAIR.first(participation.pk, participation.comprehension_attempt)


def _pair(participation_id: int, attempt: int) -> QuerySet[PairTrial]:
    unanswered = PairTrial.objects.filter(participation=participation_id, attempt=attempt, answered_at__isnull=True)
    return unanswered.select_related("clean_stimulus", "modified_stimulus").order_by("position")[:1]


_PAIR = PreparedQuery(_pair, 2**40, 2**14)


def progress(participation: Participation) -> Progress:
    """How far the participant is in the current step; 0 of 0 in steps without items."""
    if participation.step == Step.COLOUR_CHECK:
        plates = participation.plate_trials
        return Progress(done=plates.filter(answered_at__isnull=False).count(), total=plates.count())
    if participation.step == Step.COMPREHENSION:
        pairs = participation.pair_trials.filter(attempt=participation.comprehension_attempt)
        return Progress(done=pairs.filter(answered_at__isnull=False).count(), total=pairs.count())
    if participation.step == Step.MAIN:
        trials = participation.trials
        return Progress(done=trials.filter(rating__isnull=False).count(), total=trials.count())
    return Progress(done=0, total=0)


def unfinished_participations(not_seen_since: datetime) -> QuerySet[Participation]:
    """Participations, but for previews, that have not ended and whose participant was last seen before then."""
    unfinished = Participation.objects.exclude(step=Step.END).exclude(kind=ParticipationKind.PREVIEW)
    return unfinished.filter(last_seen_at__lt=not_seen_since)


def may_begin_again(participation: Participation) -> bool:
    """Whether somebody with a link of the researcher's own only read the consent text, and so has done nothing yet.

    On a panel each session has an end of its own there: who comes back gets a new one.
    """
    study = participation.study
    return (
        study.panel == Panel.DIRECT
        and not (study.session_parameter or study.return_url)
        and participation.kind == ParticipationKind.REAL
        and participation.consented_at is None
        and participation.outcome in {Outcome.DECLINED, Outcome.TIMED_OUT}
    )
