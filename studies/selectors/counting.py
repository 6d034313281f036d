"""Which participations count: the one place that decides it."""

from django.db.models import Q

from studies.models import Participation, ParticipationKind


def countable(path: str = "") -> Q:
    """Real participations and, in a demonstration study, its test ones (bots); whatever their outcome.

    ``path`` leads from the model that is filtered to Participation, such as "participations__" from Study.
    """
    real = Q(**{f"{path}kind": ParticipationKind.REAL})
    bots = Q(**{f"{path}kind": ParticipationKind.TEST, f"{path}study__is_demo": True})
    return real | bots


def counts(participation: Participation) -> bool:
    """``countable`` of one participation; its ratings count once it is valid, too."""
    if participation.kind == ParticipationKind.TEST:
        return participation.study.is_demo
    return participation.kind == ParticipationKind.REAL
