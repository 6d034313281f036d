"""Whether the ratings of a participation count, decided by a person.

A decision changes nothing but that: the outcome, the completion code that was shown and the pay due stay as they are.
Exclusion frees the place in dataset and study. Inclusion takes one, beyond the plan if need be, for it is explicit.
"""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from studies.models import Decision, Participation, StudyStatus, Verdict
from studies.selectors.counting import counts
from studies.selectors.quality import (
    OUTCOMES_WITH_ALL_ANSWERS,
    decisions_about,
    quality_findings,
    same_person,
    standing_decision,
)
from studies.services.allocation import lock_study
from studies.services.pointer import announce_changed_ratings, record
from studies.services.quality_policy import as_stored

LONGEST_REASON = 2000


class DecisionRefused(Exception):
    """This cannot be decided now; the message is for people."""


def decide(participation_id: int, verdict: str, *, reason: str, author: User, seen: int | None) -> Decision:
    """Exclude or include a participation, or undo the decision that stands (Verdict). The caller checks permission.

    ``seen`` is the id of the newest decision that the author knew of, None for none: nobody decides without knowing
    what somebody else has just decided. Raises DecisionRefused, and then nothing has changed.
    """
    reason = reason.strip()
    if not reason:
        raise DecisionRefused("Say why: every decision has a reason.")
    if len(reason) > LONGEST_REASON:
        raise DecisionRefused(f"A reason has at most {LONGEST_REASON} characters.")
    with transaction.atomic():
        participation = _locked(participation_id)
        decisions = decisions_about(participation)
        if seen != (decisions[-1].pk if decisions else None):
            raise DecisionRefused(f"Nothing was done, for meanwhile something else was decided: {_told(decisions)}")
        if obstacle := why_not_decidable(participation):
            raise DecisionRefused(obstacle)
        standing = standing_decision(decisions)
        is_to_count = _validity_after(verdict, participation, standing)
        if is_to_count:
            _refuse_if_person_counts(participation)
        decision = Decision.objects.create(
            participation=participation,
            verdict=verdict,
            undoes=standing if verdict == Verdict.UNDO else None,
            reason=reason,
            author=author,
            counted_before=participation.is_valid,
            counts_after=is_to_count,
            findings=as_stored(quality_findings(participation)),
        )
        record(participation, "decided", verdict=verdict, ratings_count=is_to_count)
        _set_validity(participation, is_to_count)
    return decision


def exclude_each(
    seen: Mapping[int, int | None], *, reason: str, author: User
) -> tuple[list[Decision], dict[int, DecisionRefused]]:
    """Exclude several participations for one reason: each on its own, so that one that is refused keeps no other back.

    ``seen``: for each participation's id what ``decide`` calls so. Gives the decisions, and by id what was refused.
    """
    made, refused = [], {}
    for participation_id, newest in seen.items():
        try:
            made.append(decide(participation_id, Verdict.EXCLUDE, reason=reason, author=author, seen=newest))
        except DecisionRefused as error:
            refused[participation_id] = error
    return made, refused


def _locked(participation_id: int) -> Participation:
    """The participation, locked with its study and with the other participations of the same person.

    So two decisions, or a decision and an end, cannot both make the same person count. The study comes first, as
    wherever both are locked.
    """
    participation = Participation.objects.select_related("identity").get(pk=participation_id)
    lock_study(participation.study_id)
    of_person = [participation.pk, *same_person(participation).values_list("pk", flat=True)]
    locked = Participation.objects.select_for_update(of=("self",), no_key=True).select_related("study", "dataset")
    return {each.pk: each for each in locked.filter(pk__in=of_person).order_by("pk")}[participation_id]


def why_not_decidable(participation: Participation) -> str:
    """What stands in the way of any decision about it, for people; empty if nothing does."""
    if not counts(participation):
        return "Test runs and previews never count: there is nothing to decide."
    if participation.study.status == StudyStatus.ARCHIVED:
        return "The study is archived: nothing about it is decided any more."
    if not participation.outcome:
        return "The participant has not finished yet. Decide when they have."
    if participation.outcome not in OUTCOMES_WITH_ALL_ANSWERS or participation.trials.filter(rating=None).exists():
        return "The participant left answers out, so the ratings cannot count: there is nothing to decide."
    return ""


def _validity_after(verdict: str, participation: Participation, standing: Decision | None) -> bool:
    """Whether the ratings count after the verdict."""
    if verdict == Verdict.UNDO:
        if standing is None:
            raise DecisionRefused("There is no decision to undo.")
        return standing.counted_before
    if verdict not in Verdict.values:
        raise DecisionRefused(f"There is no decision {verdict!r}.")
    is_to_count = verdict == Verdict.INCLUDE
    if is_to_count == participation.is_valid:
        raise DecisionRefused(f"The ratings {'count' if is_to_count else 'do not count'} already: nothing to decide.")
    return is_to_count


def _refuse_if_person_counts(participation: Participation) -> None:
    other = same_person(participation).filter(is_valid=True).first()
    if other is not None:
        raise DecisionRefused(
            f"The same person counts already, by {other}, and each person counts once. Exclude that one first."
        )


def _set_validity(participation: Participation, is_valid: bool) -> None:
    participation.is_valid = is_valid
    participation.validity_changed_at = timezone.now()
    participation.save(update_fields=["is_valid", "validity_changed_at"])
    announce_changed_ratings(participation)


def _told(decisions: list[Decision]) -> str:
    if not decisions:
        return "there is no such decision any more."
    newest = decisions[-1]
    who = newest.author.get_username() if newest.author else "the study's policy"
    return f"{newest.get_verdict_display().lower()} by {who}, because “{newest.reason}”. Look at it again."
