"""What the study's stated policy decides when a participation ends: about quality, and about the plan.

Each is called in the transaction that ends the participation, about one that would count without it, and sets nothing
in it: if the policy excludes it, that becomes a decision, which a person may undo.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from studies.models import Dataset, Decision, Participation, ParticipationKind, Verdict
from studies.quality import Finding, excluding, in_words
from studies.selectors.places import is_beyond_plan, rated_before
from studies.selectors.quality import quality_findings


def exclude_by_policy(participation: Participation) -> bool:
    """Whether a quality rule excludes it."""
    findings = quality_findings(participation)
    reasons = excluding(findings, participation.study.quality_policy)
    if reasons:
        _exclude(participation, "; ".join(in_words(finding) for finding in reasons), findings)
    return bool(reasons)


def exclude_beyond_plan(participation: Participation) -> bool:
    """Whether it is one more than the plan has places for, so that counts end exactly as planned.

    That happens to somebody who was away for so long that their place was passed on, or to who got that place: the
    one who has given all ratings first counts, and both are paid. Whoever sends the feedback page first makes no
    difference: at it, complete ratings hold their place until they are counted.
    """
    if participation.kind == ParticipationKind.PREVIEW or participation.dataset is None:
        return False
    lock_datasets(participation.study_id)
    policy = participation.study.quality_policy
    waiting = [other for other in rated_before(participation) if not excluding(quality_findings(other), policy)]
    if not is_beyond_plan(participation, waiting):
        return False
    reason = (
        f"Beyond the plan: when this participant had rated everything, others had filled all places of set "
        f"{participation.dataset.number}, or of the study. A place is passed on while its participant is away."
    )
    _exclude(participation, reason, quality_findings(participation))
    return True


def lock_datasets(study_id: int) -> None:
    """Have those who end at the same moment counted one after the other, until the transaction ends.

    Not by the study's row: that is locked before participations wherever both are, and who ends is locked already.
    """
    list(Dataset.objects.select_for_update(no_key=True).filter(study=study_id).order_by("pk").values_list("pk"))


def _exclude(participation: Participation, reason: str, findings: Sequence[Finding]) -> None:
    Decision.objects.create(
        participation=participation,
        verdict=Verdict.EXCLUDE,
        reason=reason,
        counted_before=True,
        counts_after=False,
        findings=as_stored(findings),
    )


def as_stored(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as a decision keeps them: the evidence of that moment."""
    return [asdict(finding) for finding in findings]
