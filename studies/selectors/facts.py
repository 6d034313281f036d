"""What a reader of a result wants to know of the studies behind it, and cannot see in the ratings."""

from collections import Counter
from typing import Any

from django.db.models import Max, Min

from studies.models import Participation, Rating, Study, TrialKind
from studies.selectors.counting import countable
from studies.selectors.ratings import of_demonstration


def pair_facts(
    attack_id: int, target_model_id: int, *, scale_minimum: int, scale_maximum: int, is_demo: bool, protocol: str = ""
) -> dict[str, Any]:
    """Of all studies of a pair on one scale (of one protocol), as it can be kept as JSON:

    - ``protocols``: the presets that the studies were made from;
    - ``outcomes``: how many countable participations ended how;
    - ``checks``: of the attention checks of valid participations by kind, [passed, given];
    - ``first_rated``, ``last_rated``: days when valid participations ended.

    Four queries.
    """
    of_protocol = {"preset": protocol} if protocol else {}
    studies = {
        study.pk: study
        for study in Study.objects.annotate(shows_demo=of_demonstration()).filter(
            attack_id=attack_id,
            target_model_id=target_model_id,
            scale_minimum=scale_minimum,
            scale_maximum=scale_maximum,
            shows_demo=is_demo,
            **of_protocol,
        )
    }
    countables = Participation.objects.filter(countable(), study__in=studies)
    outcomes = Counter(countables.exclude(outcome="").order_by().values_list("outcome", flat=True))
    valid = countables.filter(is_valid=True)
    days = valid.aggregate(first=Min("finished_at"), last=Max("finished_at"))
    checks: dict[str, list[int]] = {}
    given = Rating.objects.filter(
        trial__participation__in=valid, trial__kind__in=[TrialKind.CORRUPTED, TrialKind.INSTRUCTED]
    )
    for rating in given.select_related("trial__participation"):
        study, trial = studies[rating.trial.participation.study_id], rating.trial
        counts = checks.setdefault(trial.kind, [0, 0])
        counts[0] += study.protocol.check_passed(trial, rating.value, study.setup)
        counts[1] += 1
    return {
        "protocols": sorted({study.preset for study in studies.values()}),
        "outcomes": dict(sorted(outcomes.items())),
        "checks": dict(sorted(checks.items())),
        "first_rated": days["first"].date().isoformat() if days["first"] else None,
        "last_rated": days["last"].date().isoformat() if days["last"] else None,
    }
