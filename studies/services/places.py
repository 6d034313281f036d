"""More places than were planned, for people who were excluded in greater number than the buffer foresaw."""

from django.db import transaction

from scooter_site.common.words import there_are
from studies.models import Study, StudyStatus


class PlacesRefused(Exception):
    """The places cannot be raised so; the message is for people."""


def raise_places(study: Study, places: int) -> int:
    """Set a higher total of places. The plan stays as it was: how many must be valid, and of which images.

    The new places are shared out among the datasets like all others. Nobody is sent away by fewer, so there is no way
    down but ``put_back``. How many were added. Raises PlacesRefused.
    """
    with transaction.atomic():
        locked = Study.objects.select_for_update().get(pk=study.pk)
        refuse_unless_launched(locked)
        if places <= locked.place_count:
            raise PlacesRefused(f"{there_are(locked.place_count, 'place')}: give a larger number.")
        added = places - locked.place_count
        locked.extra_places += added
        locked.save(update_fields=["extra_places"])
        study.refresh_from_db()
    return added


def put_back(study: Study, added: int) -> None:
    """Take a raise back that the panel has refused, so that a mistyped number is not for ever.

    Nobody has been sent for those places. Where somebody has raised them again since, they are left as they are.
    """
    as_raised = Study.objects.filter(pk=study.pk, extra_places=study.extra_places)
    as_raised.update(extra_places=study.extra_places - added)
    study.refresh_from_db()


def refuse_unless_launched(study: Study) -> None:
    """Raises PlacesRefused for a study that lets nobody in, before or after its time."""
    if study.status in {StudyStatus.DRAFT, StudyStatus.READY}:
        raise PlacesRefused("The study has not been launched: change its plan instead.")
    if study.status not in {StudyStatus.RUNNING, StudyStatus.PAUSED}:
        raise PlacesRefused("The study is closed here: whoever came would be turned away. Copy it to go on.")
