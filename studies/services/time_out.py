"""The end of participations whose participant has left and not come back."""

from datetime import datetime

from django.db import transaction

from studies import flow
from studies.flow import Step
from studies.selectors import unfinished_participations
from studies.services.pointer import locked_participation, move


def close_timed_out(participation_id: int, not_seen_since: datetime) -> None:
    """End a participation that has not been seen since then.

    Its ratings are kept. Before the feedback page it timed out and its place is free; from there on it is complete.
    """
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step == Step.END or participation.last_seen_at >= not_seen_since:
            return
        move(participation, flow.NotSeenForLong(attention_failures=participation.attention_failures))
        participation.save()


def close_all_timed_out(not_seen_since: datetime) -> None:
    """End every participation, but for previews, that has not been seen since then."""
    for participation_id in unfinished_participations(not_seen_since).values_list("id", flat=True):
        close_timed_out(participation_id, not_seen_since)
