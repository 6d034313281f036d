"""What is known about a study's participants, in groups that are large enough to hide everybody in them."""

from studies.models import Demographics, Study
from studies.recruitment.demographics import Summary, summarise


def known_people(study: Study) -> int:
    return Demographics.objects.filter(submission__study=study).count()


def summary(study: Study) -> list[Summary]:
    """Of the participants whose ratings count."""
    people = Demographics.objects.filter(submission__study=study, submission__participation__is_valid=True)
    return summarise(people.order_by("id").values_list("answers", flat=True))
