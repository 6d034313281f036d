"""What the study's stated policy about quality does when a participation ends."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from studies.models import Decision, Participation, Verdict
from studies.quality import Finding, excluding, in_words
from studies.selectors.quality import quality_findings


def exclude_by_policy(participation: Participation) -> bool:
    """Whether the policy excludes this participation, which would count without it. If so, that becomes a decision.

    Called in the transaction that ends the participation; sets nothing in it.
    """
    findings = quality_findings(participation)
    reasons = excluding(findings, participation.study.quality_policy)
    if not reasons:
        return False
    Decision.objects.create(
        participation=participation,
        verdict=Verdict.EXCLUDE,
        reason="; ".join(in_words(finding) for finding in reasons),
        counted_before=True,
        counts_after=False,
        findings=as_stored(findings),
    )
    return True


def as_stored(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as a decision keeps them: the evidence of that moment."""
    return [asdict(finding) for finding in findings]
