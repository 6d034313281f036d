"""Which questions of participants are there, and which wait for an answer."""

from django.db.models import Count, Q, QuerySet

from studies.models import ParticipantMessage, ParticipationKind, Study

# Neither answered nor put aside. What was written in a preview is the researcher's own.
WAITING = Q(answered_at=None, done_at=None) & ~Q(participation__kind=ParticipationKind.PREVIEW)


def waiting_messages(study: Study | None = None) -> QuerySet[ParticipantMessage]:
    """Messages that nobody has answered or put aside, of all studies or of one."""
    messages = ParticipantMessage.objects.filter(WAITING)
    return messages if study is None else messages.filter(participation__study=study)


def message_counts(study: Study) -> tuple[int, int]:
    """How many messages a study has, and how many of them wait; one query."""
    counts = (
        ParticipantMessage.objects.filter(participation__study=study)
        .exclude(participation__kind=ParticipationKind.PREVIEW)
        .aggregate(all=Count("id"), waiting=Count("id", filter=Q(answered_at=None, done_at=None)))
    )
    return counts["all"], counts["waiting"]
