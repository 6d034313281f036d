"""What the quality rules say about participations, computed when asked, and what was decided about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Max, Min, Prefetch, Q, QuerySet

from imagedb.models import ImageKind
from studies.flow import Outcome
from studies.models import Decision, Participation, ParticipationKind, Rating, Study, Trial, TrialKind, Verdict
from studies.quality import Answer, Answers, Finding, judge
from studies.selectors.counting import countable

# With these outcomes a participant may have given every answer; others left before.
OUTCOMES_WITH_ALL_ANSWERS = (Outcome.COMPLETED, Outcome.ATTENTION_FAILED)


@dataclass(frozen=True)
class ParticipationQuality:
    """What the rules say about one participation, and the decision that stands (None: its outcome decides)."""

    participation: Participation
    findings: list[Finding]
    decision: Decision | None

    @property
    def flagged(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_flagged]


def study_quality(study: Study) -> list[ParticipationQuality]:
    """Every participation of the study that counts and has a dataset, in the order of arrival. Four queries."""
    participations = list(
        Participation.objects.filter(countable(), study=study, dataset__isnull=False)
        .select_related("dataset")
        .prefetch_related(Prefetch("decisions", queryset=_decisions_with_people()))
        .order_by("id")
    )
    answers = _answers(Q(countable("trial__participation__"), trial__participation__study=study))
    seconds = _seconds_in_all(Q(countable("participation__"), participation__study=study))
    return [
        ParticipationQuality(
            participation=participation,
            findings=_judged(participation, study, answers, seconds),
            decision=standing_decision(participation.decisions.all()),
        )
        for participation in participations
    ]


def participation_quality(participation: Participation) -> ParticipationQuality:
    """The same for one participation, of whatever kind. Three queries."""
    decisions = decisions_about(participation)
    return ParticipationQuality(
        participation=participation,
        findings=quality_findings(participation),
        decision=standing_decision(decisions),
    )


def quality_findings(participation: Participation) -> list[Finding]:
    """What the rules of its study say about a participation now. Two queries."""
    answers = _answers(Q(trial__participation=participation))
    return _judged(participation, participation.study, answers, _seconds_in_all(Q(participation=participation)))


def decisions_about(participation: Participation) -> list[Decision]:
    """All decisions about a participation, oldest first."""
    return list(_decisions_with_people().filter(participation=participation))


def standing_decision(decisions: Iterable[Decision]) -> Decision | None:
    """Of all decisions about one participation, the newest that is neither an undoing nor undone."""
    decisions = list(decisions)
    undone = {decision.undoes_id for decision in decisions if decision.verdict == Verdict.UNDO}
    standing = [decision for decision in decisions if decision.verdict != Verdict.UNDO and decision.pk not in undone]
    return max(standing, key=lambda decision: decision.pk, default=None)


def same_person(participation: Participation) -> QuerySet[Participation]:
    """Other real participations of the same person in the same study, as far as the panel's id tells."""
    nobody = Participation.objects.none()
    if participation.kind != ParticipationKind.REAL:
        return nobody
    identity = getattr(participation, "identity", None)
    if identity is None or not identity.participant_id:
        return nobody
    return Participation.objects.filter(
        kind=ParticipationKind.REAL,
        identity__study=participation.study_id,
        identity__participant_id=identity.participant_id,
    ).exclude(pk=participation.pk)


def _decisions_with_people() -> QuerySet[Decision]:
    return Decision.objects.select_related("author").order_by("id")


def _judged(
    participation: Participation, study: Study, answers: Mapping[int, list[Answer]], seconds: Mapping[int, float]
) -> list[Finding]:
    # Simulated participants, which are in a hurry, make up their times: nothing is said about those.
    is_simulated = participation.kind == ParticipationKind.TEST
    given = Answers(
        items=answers.get(participation.pk, []),
        image_count=study.clean_per_dataset + study.modified_per_dataset,
        attention_failures=participation.attention_failures,
        seconds_in_all=None if is_simulated else seconds.get(participation.pk),
    )
    return judge(given, study.rating_scale, study.quality_policy)


def _answers(ratings: Q) -> dict[int, list[Answer]]:
    """Answers by participation, in the order shown. One query."""
    rows = (
        Rating.objects.filter(ratings)
        .order_by("trial__participation_id", "trial__position")
        .values_list(
            "trial__participation_id", "trial__kind", "trial__image__kind", "value", "response_ms", "focus_losses"
        )
    )
    answers: dict[int, list[Answer]] = {}
    for participation_id, kind, image_kind, value, response_ms, focus_losses in rows.iterator(chunk_size=5000):
        is_modified = image_kind == ImageKind.MODIFIED if kind == TrialKind.IMAGE else None
        answers.setdefault(participation_id, []).append(Answer(is_modified, value, response_ms, focus_losses))
    return answers


def _seconds_in_all(participations: Q) -> dict[int, float]:
    """From when the first item was shown until the last answer came, by participation. One query."""
    times = (
        Trial.objects.filter(participations)
        .order_by()
        .values_list("participation_id")
        .annotate(began=Min("first_shown_at"), ended=Max("rating__answered_at"))
    )
    return {
        participation_id: (ended - began).total_seconds() for participation_id, began, ended in times if began and ended
    }
