"""The life of a study: draft -> ready -> running <-> paused -> closed -> archived.

Each function locks the study's row and checks its state. Asking for the state a study is already in does nothing.
"""

import secrets
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from imagedb.models import Attack, TargetModel
from scooter_site.common.tasks import enqueue
from studies import tasks
from studies.flow import Outcome
from studies.models import CompletionCode, Study, StudyStatus, StudyText
from studies.protocols import protocol
from studies.selectors import ReadinessLine, newest_texts, readiness, study_text
from studies.services.materials import build_materials, delete_materials

__all__ = [
    "StudyStateError",
    "archive",
    "build_materials",
    "change_settings",
    "close",
    "copy_study",
    "create_study_from_preset",
    "launch",
    "pause",
    "request_materials",
    "resume",
    "update_text",
]

# No letters and digits that are easily confused when a code is typed.
CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 8
LARGEST_SEED = 2**31 - 1

BEFORE_LAUNCH = (StudyStatus.DRAFT, StudyStatus.READY)

# What a copy does not take over: identity, life, what belongs to the old study on the panel, and being a demonstration:
# a researcher's copy of one is a study of their own, whose test data do not count and which is never removed.
NOT_COPIED = {
    "id",
    "title",
    "slug",
    "status",
    "is_demo",
    "prolific_study_id",
    "copied_from",
    "created_by",
    "created_at",
    "materials_requested_at",
    "materials_error",
    "materials_built_at",
    "launched_at",
    "closed_at",
    "extra_places",
}
# What the materials are drawn and made by: another value makes those there are useless.
MATERIAL_SETTINGS = {
    "attack",
    "target_model",
    "dataset_count",
    "clean_per_dataset",
    "modified_per_dataset",
    "plate_count",
    "comprehension_pair_count",
    "corrupted_check_count",
    "seed",
}
# What may change at any time, as no answer depends on it.
NEVER_FROZEN = {"title", "contact_email", "prolific_study_id", "return_url"}


class StudyStateError(Exception):
    """The study is in a state in which this cannot be done; the message is for people."""


# --- Making studies -------------------------------------------------------------------------------------------


def create_study_from_preset(
    *,
    preset: str,
    title: str,
    slug: str,
    attack: Attack,
    target_model: TargetModel,
    created_by: User | None = None,
    **overrides: Any,
) -> Study:
    """A draft with the preset's settings (``overrides``: any fields of Study), texts and fresh completion codes.

    Raises KeyError for an unknown preset and Django's ValidationError for settings that do not fit together.
    """
    chosen = protocol(preset).preset
    fields = {"seed": secrets.randbelow(LARGEST_SEED), **chosen.settings, **overrides}
    study = Study(
        title=title,
        slug=slug,
        preset=preset,
        attack=attack,
        target_model=target_model,
        created_by=created_by,
        **fields,
    )
    study.full_clean()
    with transaction.atomic():
        study.save()
        _add_texts(study, chosen.texts.items())
        _add_codes(study)
    return study


def copy_study(study: Study, created_by: User | None = None) -> Study:
    """A new draft with the same settings, seed and newest texts, and with fresh completion codes."""
    settings = {
        field.attname: getattr(study, field.attname)
        for field in Study._meta.concrete_fields
        if field.name not in NOT_COPIED
    }
    texts = [(text.kind, text.body) for text in newest_texts(study)]
    with transaction.atomic():
        copy = Study.objects.create(
            title=f"Copy of {study.title}"[:200],
            slug=_free_slug(study.slug),
            copied_from=study,
            created_by=created_by,
            **settings,
        )
        _add_texts(copy, texts)
        _add_codes(copy)
    return copy


def _free_slug(slug: str) -> str:
    number = 2
    while Study.objects.filter(slug=f"{slug[:90]}-{number}").exists():
        number += 1
    return f"{slug[:90]}-{number}"


def _add_texts(study: Study, texts: Iterable[tuple[str, str]]) -> None:
    StudyText.objects.bulk_create(StudyText(study=study, kind=kind, version=1, body=body) for kind, body in texts)


def _add_codes(study: Study) -> None:
    codes: set[str] = set()
    outcomes = [outcome for outcome in Outcome if outcome.has_code]
    while len(codes) < len(outcomes):
        codes.add("".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH)))
    CompletionCode.objects.bulk_create(
        CompletionCode(study=study, outcome=outcome, code=code) for outcome, code in zip(outcomes, codes, strict=True)
    )


# --- Changing a study -----------------------------------------------------------------------------------------


def change_settings(study: Study, **changes: Any) -> Study:
    """Change settings (fields of Study) of a study; once launched, they are frozen but for those in NEVER_FROZEN.

    A change that the materials depend on deletes them, with the test data that used them, and makes the study a draft
    again; a build that is under way will throw its work away.
    Raises StudyStateError, or Django's ValidationError for settings that do not fit together.
    """
    with transaction.atomic():
        locked = _locked(study)
        if locked.status not in BEFORE_LAUNCH and (frozen := sorted(set(changes) - NEVER_FROZEN)):
            raise StudyStateError(
                f"{locked} has been launched, so its settings are frozen ({', '.join(frozen)}). Copy it to change them."
            )
        outdated = {name for name, value in changes.items() if getattr(locked, name) != value} & MATERIAL_SETTINGS
        for name, value in changes.items():
            setattr(locked, name, value)
        if outdated:
            _discard_materials(locked)
        locked.full_clean()
        locked.save()
    return _refreshed(study)


def update_text(study: Study, kind: str, body: str) -> StudyText:
    """Give the study a new version of a text (TextKind); nothing new if the body is unchanged. Frozen at launch.

    Raises StudyStateError, or Django's ValidationError for unknown placeholders and for feedback questions that cannot
    be read.
    """
    with transaction.atomic():
        locked = _locked(study)
        newest = study_text(locked, kind)
        if newest is not None and newest.body == body:
            return newest
        if locked.status not in BEFORE_LAUNCH:
            raise StudyStateError(f"{locked} has been launched, so its texts are frozen. Copy it to change them.")
        text = StudyText(study=locked, kind=kind, version=newest.version + 1 if newest else 1, body=body)
        text.clean()
        text.save()
        return text


def request_materials(study: Study) -> Study:
    """Have datasets and check images built by a worker, anew if there are some. Test data of the study are deleted."""
    with transaction.atomic():
        locked = _locked(study)
        if locked.status not in BEFORE_LAUNCH:
            raise StudyStateError(f"{locked} has been launched: its materials cannot be built again. Copy it instead.")
        _discard_materials(locked)
        locked.materials_requested_at = timezone.now()
        locked.save(update_fields=["status", "materials_requested_at", "materials_built_at", "materials_error"])
        enqueue(tasks.build_materials, locked.pk)
    return _refreshed(study)


def _discard_materials(study: Study) -> None:
    """Delete the materials and set, without saving, that there are none and none were asked for."""
    delete_materials(study)
    study.status = StudyStatus.DRAFT
    study.materials_requested_at = None
    study.materials_built_at = None
    study.materials_error = ""


# --- States ---------------------------------------------------------------------------------------------------


def launch(study: Study) -> Study:
    """Let participants in; from now on the settings are frozen. Raises StudyStateError with every failing line.

    Readiness is judged while the study is locked, so that what was judged is what is launched. Looking for the files
    may take seconds; only changes of this very study, which nobody takes part in yet, wait for that.
    """
    with transaction.atomic():
        locked = _locked(study)
        if locked.status == StudyStatus.RUNNING:
            return _refreshed(study)
        if locked.status not in BEFORE_LAUNCH:
            raise StudyStateError(f"{locked} is {locked.get_status_display().lower()}: it was launched before.")
        failing = [line for line in readiness(locked, look_for_files=True) if not line.ok]
        if locked.status == StudyStatus.DRAFT:
            raise StudyStateError(f"{locked} is a draft: build its materials first. {_said(failing)}".strip())
        if failing:
            raise StudyStateError(f"{locked} is not ready. {_said(failing)}")
        locked.status = StudyStatus.RUNNING
        locked.launched_at = timezone.now()
        locked.save(update_fields=["status", "launched_at"])
    return _refreshed(study)


def _said(failing: list[ReadinessLine]) -> str:
    return " ".join(f"{line.label}: {line.detail}" for line in failing)


def pause(study: Study) -> Study:
    """Let nobody new in for a while; who is in can finish."""
    return _move(study, StudyStatus.PAUSED, {StudyStatus.RUNNING}, "Only a running study can be paused.")


def resume(study: Study) -> Study:
    """Let participants in again."""
    return _move(study, StudyStatus.RUNNING, {StudyStatus.PAUSED}, "Only a paused study can be resumed.")


def close(study: Study) -> Study:
    """Let nobody new in any more; who is in can finish."""
    return _move(
        study,
        StudyStatus.CLOSED,
        {StudyStatus.RUNNING, StudyStatus.PAUSED},
        "Only a running or paused study can be closed.",
    )


def archive(study: Study) -> Study:
    """Put a closed study away."""
    return _move(study, StudyStatus.ARCHIVED, {StudyStatus.CLOSED}, "Close the study before archiving it.")


def _move(study: Study, target: StudyStatus, allowed: set[StudyStatus], otherwise: str) -> Study:
    with transaction.atomic():
        locked = _locked(study)
        if locked.status != target:
            if locked.status not in allowed:
                raise StudyStateError(f"{locked} is {locked.get_status_display().lower()}. {otherwise}")
            locked.status = target
            if target == StudyStatus.CLOSED:
                locked.closed_at = timezone.now()
            locked.save(update_fields=["status", "closed_at"])
    return _refreshed(study)


def _locked(study: Study) -> Study:
    return Study.objects.select_for_update().get(pk=study.pk)


def _refreshed(study: Study) -> Study:
    """The caller's own object with what is now in the database, so that it can go on with it."""
    study.refresh_from_db()
    return study
