"""What the demonstration consists of, and how it is loaded and removed.

Loading goes the same ways as a researcher's own material: the import, the presets, the services of a study's life,
and simulated participants over HTTP. It can be interrupted and run again; what is there already is left alone.
"""

import csv
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagedb.models import Attack, Image, ImportBatch, TargetModel, Visibility
from imagedb.models.attacks import AttackFamily
from imagedb.models.imports import ImportStatus
from imagedb.services.importing import import_manifest
from leaderboard.models import PublicationPolicy
from leaderboard.services.publication import publish_by_policy
from leaderboard.services.recompute import recompute_pair
from scooter_site.demo import OPEN_STUDY_SLUG, collection
from scooter_site.demo.photographs import PHOTOGRAPHS, Photograph, crops
from scooter_site.demo.stand_in_attacks import STRONG, SUBTLE, strong_recolouring, subtle_recolouring
from studies.bots import Behaviour, simulate
from studies.flow import Outcome
from studies.models import Participation, Study, StudyStatus
from studies.services.life import build_materials, close, create_study_from_preset, launch

Report = Callable[[str], None]

NOT_VERIFIED = (
    "A stand-in that only recolours photographs, so that there is something to look at before the first real import. "
    "It is no published attack, and no classifier was asked: the images are not verified against a victim."
)
TARGET_MODEL_SLUG = "demo-no-model"
TARGET_MODEL = {
    "name": "Demo: no model (unverified)",
    "description": "Stands where a classifier would: an image that was modified against a model names the model. No "
    "classifier was asked what it sees in the demonstration’s images.",
    "architecture": "No classifier",
    "training": "None",
    "dataset": "None",
    "preprocessing": "None: the images are 224 pixels square, as most ImageNet classifiers take them.",
}
ATTACKS: dict[str, dict[str, Any]] = {
    "demo-strong-recolouring": {
        "name": "Demo: strong recolouring",
        "description": f"Turns hues by up to half a circle: people see it at once. {NOT_VERIFIED}",
        "parameters": STRONG,
    },
    "demo-subtle-recolouring": {
        "name": "Demo: subtle recolouring",
        "description": f"A slight drift of colour that is hard to see without the original. {NOT_VERIFIED}",
        "parameters": SUBTLE,
    },
}
MODIFY = {"demo-strong-recolouring": strong_recolouring, "demo-subtle-recolouring": subtle_recolouring}


@dataclass(frozen=True)
class DemoStudy:
    """A study of the demonstration; ``bots`` have been in the closed ones."""

    slug: str
    title: str
    attack_slug: str
    numbers: dict[str, Any]
    bots: tuple[Behaviour, ...] = ()


SMALL = {
    "dataset_count": 2,
    "clean_per_dataset": 10,
    "modified_per_dataset": 10,
    "participants_per_dataset": 2,
    "buffer_percent": 100,
}
OUTCOMES_BESIDE_COMPLETED = tuple(
    Behaviour(outcome=outcome)
    for outcome in (Outcome.COLOUR_CHECK_FAILED, Outcome.COMPREHENSION_FAILED, Outcome.ATTENTION_FAILED)
)
STUDIES = [
    DemoStudy(
        OPEN_STUDY_SLUG,
        "Demo: strong recolouring, open to everybody",
        "demo-strong-recolouring",
        {"dataset_count": 2},
    ),
    DemoStudy(
        "demo-a",
        "Demo: strong recolouring, closed",
        "demo-strong-recolouring",
        SMALL,
        (*[Behaviour(ability=ability) for ability in (0.95, 0.85, 0.75, 0.65)], *OUTCOMES_BESIDE_COMPLETED),
    ),
    DemoStudy(
        "demo-b",
        "Demo: subtle recolouring, closed",
        "demo-subtle-recolouring",
        SMALL,
        (*[Behaviour(ability=ability) for ability in (0.2, 0.1, 0.05, 0)], *OUTCOMES_BESIDE_COMPLETED),
    ),
]


class DemoImpossible(Exception):
    """The demonstration cannot be loaded or removed; the message says what stands in the way."""


def is_loaded() -> bool:
    """Whether nothing is left to load."""
    ends = {study.slug: StudyStatus.CLOSED if study.bots else StudyStatus.RUNNING for study in STUDIES}
    found = dict(Study.objects.filter(is_demo=True, slug__in=ends).values_list("slug", "status"))
    return found == ends and collection.is_loaded()


def load(report: Report) -> None:
    """Load whatever of the demonstration is missing. Raises DemoImpossible or PhotographsMissing."""
    if is_loaded():
        return
    if taken := Study.objects.filter(slug__in=[study.slug for study in STUDIES], is_demo=False).first():
        raise DemoImpossible(f"Your study “{taken}” has the address {taken.slug}, which the demonstration needs.")
    if own := collection.taken():
        raise DemoImpossible(f"Your collection “{own}” ({own.slug}) has the name that the demonstration's needs.")
    report("Cutting photographs and modifying them")
    target_model, attacks = _target_model(), _attacks()
    for photograph in PHOTOGRAPHS:
        _import_photograph(photograph, list(attacks.values()), target_model)
    report("Making a collection")
    collection.load(Image.objects.filter(is_demo=True))
    for demo_study in STUDIES:
        report(f"Making the study “{demo_study.title}”")
        _bring_to_its_end(demo_study, attacks[demo_study.attack_slug], target_model)
    boards = {board.pk: board for attack in attacks.values() for board in recompute_pair(attack.pk, target_model.pk)}
    for board in boards.values():
        publish_by_policy(board, PublicationPolicy.AT_ONCE)


def _target_model() -> TargetModel:
    return TargetModel.objects.get_or_create(slug=TARGET_MODEL_SLUG, defaults={**TARGET_MODEL, "is_demo": True})[0]


def _attacks() -> dict[str, Attack]:
    common = {"family": AttackFamily.COLOUR, "is_demo": True}
    return {
        slug: Attack.objects.get_or_create(slug=slug, defaults={**details, **common})[0]
        for slug, details in ATTACKS.items()
    }


def _import_photograph(photograph: Photograph, attacks: list[Attack], target_model: TargetModel) -> None:
    """Import a photograph's crops and their modified versions, with a manifest like anybody's."""
    source_name = f"demonstration: {photograph.filename}"
    if ImportBatch.objects.filter(source_name=source_name, status=ImportStatus.DONE).exists():
        return
    batch = ImportBatch(
        source_name=source_name,
        visibility=Visibility.PUBLIC,
        licence=photograph.licence,
        attribution=photograph.attribution,
    )
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        rows: list[dict[str, str]] = []
        for number, crop in enumerate(crops(photograph), start=1):
            clean = {"filename": f"{Path(photograph.filename).stem}-{number:02d}.png", "kind": "clean"}
            crop.save(folder / clean["filename"], compress_level=1)
            rows.append({**clean, "synset": photograph.synset})
            for attack in attacks:
                modified = {"filename": f"{attack.slug}-{clean['filename']}", "kind": "modified"}
                MODIFY[attack.slug](crop, number).save(folder / modified["filename"], compress_level=1)
                rows.append(
                    {
                        **modified,
                        "synset": photograph.synset,
                        "source_filename": clean["filename"],
                        "attack": attack.slug,
                        "target_model": target_model.slug,
                    }
                )
        manifest = folder / "manifest.csv"
        with manifest.open("w", newline="", encoding="utf-8") as file:
            columns = ["filename", "kind", "synset", "source_filename", "attack", "target_model"]
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        summary = import_manifest(manifest=manifest, images=folder, batch=batch, is_demo=True)
    if summary.errors:
        raise DemoImpossible(f"{photograph.filename}: {summary.errors[0]}")


def _bring_to_its_end(demo_study: DemoStudy, attack: Attack, target_model: TargetModel) -> None:
    """Create the study, or go on where an interrupted loading stopped."""
    study = Study.objects.filter(slug=demo_study.slug).first()
    if study is None:
        study = create_study_from_preset(
            preset="paper",
            title=demo_study.title,
            slug=demo_study.slug,
            attack=attack,
            target_model=target_model,
            is_demo=True,
            contact_email="demo@example.org",
            **demo_study.numbers,
        )
    if study.status == StudyStatus.DRAFT:
        build_materials(study.pk)
        study.refresh_from_db()
        if study.status == StudyStatus.DRAFT:
            raise DemoImpossible(f"{study.title}: {study.materials_error}")
    if study.status == StudyStatus.READY:
        launch(study)
        study.refresh_from_db()
    if study.status == StudyStatus.RUNNING and demo_study.bots:
        _send_bots(study, demo_study.bots)
        close(study)


def _send_bots(study: Study, bots: tuple[Behaviour, ...]) -> None:
    there = Participation.objects.filter(study=study).count()
    for seed, behaviour in enumerate(bots[there:], start=there):
        for walk in simulate(study, behaviour, count=1, seed=seed):
            if walk.error:
                raise DemoImpossible(f"{study.title}: a simulated participant met an error: {walk.error}")
