"""Take the demonstration out again: all of it, and nothing else."""

from typing import Any

from django.db import transaction
from django.db.models import ProtectedError, Q, QuerySet

from imagedb.models import (
    Attack,
    AttackEvaluation,
    Collection,
    CollectionVersion,
    Image,
    ImageKind,
    ImportBatch,
    TargetModel,
)
from leaderboard.models import Board, Entry, Snapshot
from scooter_site.demo.content import STUDIES
from studies.models import ColourPlate, Participation, ParticipationKind, PlateTrial, Study

EXAMPLES_NAMED = 3


class StillInUse(Exception):
    """Something that is not of the demonstration uses its images, attacks or target model; the message names it."""


def remove() -> dict[str, int]:
    """Remove the demonstration. Returns how many rows of each kind went. Raises StillInUse, with nothing removed."""
    try:
        with transaction.atomic():
            return _remove()
    except ProtectedError as error:
        users = sorted({f"{user._meta.verbose_name} “{user}”" for user in error.protected_objects})
        raise StillInUse(
            f"Nothing was removed, because {len(users)} of your own things use the demonstration: "
            f"{', '.join(users[:EXAMPLES_NAMED])}{' ...' if len(users) > EXAMPLES_NAMED else ''}. Delete them first."
        ) from error


def _remove() -> dict[str, int]:
    studies = Study.objects.filter(is_demo=True)
    _refuse_answers_of_people(studies)
    images = Image.objects.filter(is_demo=True)
    batches = list(images.order_by().values_list("import_batch", flat=True).distinct())
    removed = {
        "participations": _delete(Participation.objects.filter(study__in=studies)),
        "studies": _delete(studies),
        "leaderboard entries": _delete(Entry.objects.filter(snapshot__board__is_demo=True)),
        "boards": _delete_boards(Board.objects.filter(is_demo=True)),
        "versions of collections": _delete(CollectionVersion.objects.filter(collection__is_demo=True)),
        "collections": _delete(Collection.objects.filter(is_demo=True)),
        "modified images": _delete(images.filter(kind=ImageKind.MODIFIED)),
        "clean images": _delete(images.filter(kind=ImageKind.CLEAN)),
        "imports": _delete(ImportBatch.objects.filter(pk__in=batches, images=None)),
        "attack evaluations": _delete(
            AttackEvaluation.objects.filter(Q(attack__is_demo=True) | Q(target_model__is_demo=True))
        ),
        "attacks": _delete(Attack.objects.filter(is_demo=True)),
        "target models": _delete(TargetModel.objects.filter(is_demo=True)),
    }
    removed["colour plates"] = _delete(_plates_nobody_needs())
    return removed


def _refuse_answers_of_people(studies: QuerySet[Study]) -> None:
    """Keep the answers of real participants of a study that is marked as demonstration but was not loaded as one."""
    others = studies.exclude(slug__in=[study.slug for study in STUDIES])
    if study := others.filter(participations__kind=ParticipationKind.REAL).first():
        raise StillInUse(
            f"Nothing was removed, because the study “{study}” ({study.slug}) is marked as a demonstration, was not "
            "loaded with it, and has answers of real participants. To make it a study of your own, run in "
            f"“manage.py shell”: Study.objects.filter(slug='{study.slug}').update(is_demo=False)"
        )


def _plates_nobody_needs() -> QuerySet[ColourPlate]:
    """The pool is common to all studies: while another study has its materials, every plate may still be shown."""
    if Study.objects.filter(materials_built_at__isnull=False).exists():
        return ColourPlate.objects.none()
    return ColourPlate.objects.exclude(pk__in=PlateTrial.objects.values("plate"))


def _delete_boards(boards: QuerySet[Board]) -> int:
    Snapshot.objects.filter(board__in=boards).delete()
    return _delete(boards)


def _delete(rows: QuerySet[Any]) -> int:
    """Delete, and count the rows themselves, without what goes with them."""
    return rows.delete()[1].get(rows.model._meta.label, 0)
