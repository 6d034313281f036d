"""The end of participations that their participant has left: for good, for a later session, or back to the panel."""

from contextlib import suppress
from datetime import datetime

from django.db import transaction

from studies import flow
from studies.flow import Outcome, Step
from studies.models import Participation
from studies.selectors import unfinished_participations
from studies.services.pointer import locked_participation, move, record


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


def return_participation(participation_id: int) -> Participation:
    """End a participation whose submission was returned on the panel, and free its place.

    Its ratings are kept and do not count. May be called twice. One that has ended already stays as it ended, as its
    participant has been shown that and its code; that the submission was returned afterwards is put on record, for a
    person to decide about.
    """
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.END:
            move(participation, flow.Returned())
            participation.save()
        elif participation.outcome != Outcome.RETURNED:
            record(participation, "returned_after_the_end")
    return participation


def replace_participation(participation_id: int) -> Participation:
    """End a participation whose participant came in a later session. Nothing happens to one that has ended.

    At the feedback page every rating has been given: it ends as complete, and there is nothing to replace.
    """
    with transaction.atomic():
        participation = locked_participation(participation_id)
        if participation.step != Step.END:
            move(participation, flow.CameInLaterSession(attention_failures=participation.attention_failures))
            participation.save()
    return participation


def close_all_timed_out(not_seen_since: datetime) -> None:
    """End every participation, but for previews, that has not been seen since then."""
    for participation_id in unfinished_participations(not_seen_since).values_list("id", flat=True):
        with suppress(Participation.DoesNotExist):  # deleted meanwhile, as test data are by a new build
            close_timed_out(participation_id, not_seen_since)
