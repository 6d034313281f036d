"""How far participants of a study got."""

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q

from studies.flow import Outcome
from studies.models import ParticipationEvent, Rating, Study
from studies.selectors.ratings import countable_participations


@dataclass(frozen=True)
class Stage:
    """How many participants reached this point, and how many of those before it did not."""

    label: str
    reached: int
    lost: int


def dropout(study: Study) -> list[Stage]:
    """Stages in order, each with how many got there; one aggregate query."""
    read = ParticipationEvent.objects.filter(participation=OuterRef("pk"), name="instructions_read")
    rated = Rating.objects.filter(trial__participation=OuterRef("pk"))
    finished = Q(outcome__in=[Outcome.COMPLETED, Outcome.ATTENTION_FAILED])
    counts = (
        countable_participations(study)
        .annotate(has_read=Exists(read), has_rated=Exists(rated))
        .aggregate(
            arrived=Count("id"),
            consented=Count("id", filter=Q(consented_at__isnull=False)),
            read=Count("id", filter=Q(has_read=True)),
            rated=Count("id", filter=Q(has_rated=True)),
            finished=Count("id", filter=finished),
            valid=Count("id", filter=Q(is_valid=True)),
        )
    )
    labels = {
        "arrived": "Arrived",
        "consented": "Consented",
        "read": "Read the instructions",
        "rated": "Rated an image",
        "finished": "Finished",
        "valid": "Valid",
    }
    stages, before = [], counts["arrived"]
    for name, label in labels.items():
        stages.append(Stage(label=label, reached=counts[name], lost=before - counts[name]))
        before = counts[name]
    return stages
