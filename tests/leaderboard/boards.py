"""Boards with published snapshots for tests, made fast: rows as computing and publishing leave them, without ratings.

Nothing is computed, so what is made here says nothing about right values; ``tests.leaderboard.rows`` has ratings.
"""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.utils import timezone

from imagedb.models import Attack, TargetModel
from imagedb.models.attacks import AttackFamily
from leaderboard.inputs import InputRating, Inputs
from leaderboard.models import Board, Entry, Snapshot
from leaderboard.results import Rules, code_version
from leaderboard.services.boards import draft_of
from leaderboard.services.publication import publish
from tests import factories

_numbers = itertools.count(1)


def board(**fields: Any) -> Board:
    """A public board of the paper's scale."""
    number = next(_numbers)
    return Board.objects.create(
        **{"name": f"Board {number}", "slug": f"board-{number}", "scale_minimum": -100, "scale_maximum": 100, **fields}
    )


def add_entry(snapshot: Snapshot, *, difference: float | None = 4.0, **fields: Any) -> Entry:
    """An entry of a draft, as plausible as its difference; None: not estimable. ``fields`` override anything."""
    return Entry.objects.create(**entry_fields(snapshot, difference=difference, **fields))


def published(entries: int = 3, *, of: Board | None = None, **board_fields: Any) -> Snapshot:
    """A snapshot of ``entries`` entries with differences from −5 upwards, of as many attacks on up to 8 models."""
    on = of or board(**board_fields)
    draft = draft_of(on)
    models = [factories.target_model() for _ in range(min(8, max(1, entries // 3)))]
    families = list(AttackFamily)
    rows = []
    for number in range(entries):
        attack = factories.attack(family=families[number % len(families)], year=2018 + number % 8)
        difference = -5 + 60 * number / max(1, entries - 1)
        rows.append(
            Entry(
                **entry_fields(
                    draft, attack=attack, target_model=models[number % len(models)], difference=round(difference, 6)
                )
            )
        )
    Entry.objects.bulk_create(rows)
    return publish(on)


def publish_entries(on: Board, rows: Sequence[dict[str, Any]]) -> Snapshot:
    """A snapshot whose entries are exactly these, each given as the fields of ``add_entry``."""
    draft = draft_of(on)
    draft.entries.all().delete()
    for fields in rows:
        add_entry(draft, **fields)
    return publish(on)


def entry_fields(
    snapshot: Snapshot,
    *,
    attack: Attack | None = None,
    target_model: TargetModel | None = None,
    difference: float | None = 4.0,
    error: float = 2.0,
    **fields: Any,
) -> dict[str, Any]:
    """Values for an entry that belong together."""
    attack = attack or factories.attack()
    target_model = target_model or factories.target_model()
    bound = snapshot.board.bound
    values: dict[str, Any] = {
        "snapshot": snapshot,
        "attack": attack,
        "target_model": target_model,
        "participants": 30,
        "ratings": 3000,
        "ratings_modified": 1500,
        "ratings_clean": 1500,
        "images_modified": 120,
        "images_clean": 130,
        "mean_modified": None if difference is None else difference - 10,
        "sd_modified": 30.0,
        "mean_clean": -10.0,
        "sd_clean": 20.0,
        "mean_difference": difference,
        "auc": 0.55,
        "auc_low": 0.5,
        "auc_high": 0.6,
        "accuracy_modified": 0.55,
        "accuracy_clean": 0.6,
        "d_prime": 0.2,
        "icc_single": 0.2,
        "icc_mean": 0.8,
        "krippendorff_alpha": 0.2,
        "split_half": 0.7,
        "attack_success_rate": 1.0,
        "fools_unnoticed": 0.4,
        "code_version": code_version(),
        "data_cutoff": timezone.now(),
        "computed_at": timezone.now(),
        "details": details(),
    }
    if difference is not None:
        low, high = difference - 1.7 * error, difference + 1.7 * error
        verdict = "imperceptible" if -bound < low and high < bound else "inconclusive"
        values |= {
            "difference": difference,
            "standard_error": error,
            "degrees_of_freedom": 29.0,
            "ci90_low": low,
            "ci90_high": high,
            "ci95_low": difference - 2.05 * error,
            "ci95_high": difference + 2.05 * error,
            "p_lower": 0.001,
            "p_upper": 0.02 if verdict == "imperceptible" else 0.4,
            "supported_bound": max(abs(low), abs(high)),
            "verdict": "perceptible" if low > bound or high < -bound else verdict,
        }
    merged = {**values, **_stored_inputs(attack, target_model), **fields}
    board = snapshot.board
    origin = {"rules": asdict(Rules.of(board.rules)), "seed": snapshot.seed, "selection": board.selection}
    merged["details"] = {**origin, **merged["details"]}
    return merged


def details() -> dict[str, Any]:
    """What ``leaderboard.results.compute`` and ``studies.selectors.pair_facts`` leave in an entry, in small.

    Without what it was computed by, which ``entry_fields`` takes from the board.
    """
    image = {"source": "", "misleads": True, "ratings": 12, "standard_error": 5.0}
    return {
        "distributions": {
            "modified": [[-100, 200], [-50, 300], [0, 100], [50, 500], [100, 400]],
            "clean": [[-100, 400], [-50, 500], [0, 100], [50, 300], [100, 200]],
        },
        "detection": {"criterion": 0.1, "mean_confidence": 55.0},
        "repeated_answers": 0,
        "not_estimable": "",
        "model": {
            "intercept_modified": -6.0,
            "intercept_clean": -10.0,
            "reml_criterion": 30000.0,
            "variance_components": {
                "participant_intercept": 300.0,
                "participant_slope": 290.0,
                "participant_covariance": -200.0,
                "image_modified": 100.0,
                "image_clean": 60.0,
                "residual": 600.0,
            },
            "boundary": [],
        },
        "robustness": {
            "participant_means": {
                "count": 30,
                "difference": 4.0,
                "standard_error": 2.0,
                "degrees_of_freedom": 29.0,
                "ci90": [0.6, 7.4],
                "p_lower": 0.001,
                "p_upper": 0.02,
                "verdict": "imperceptible",
            },
            "order_of_answers": {"participants": 30, "probability": 0.55, "ci95": [0.5, 0.6], "p_value": 0.06},
            "disagreements": [],
        },
        "couples": None,
        "reliability": {
            name: {
                "icc_single": 0.2,
                "icc_mean": 0.8,
                "raters_per_image": 12.0,
                "krippendorff_alpha": 0.2,
                "split_half": 0.7,
            }
            for name in ("all_images", "modified_images", "clean_images")
        },
        "participants": {
            "mean_differences": np.linspace(-20, 30, 30).tolist(),
            "ratings_each": [100, 100],
        },
        "images": {
            kind: {
                "count": 4,
                "quantiles": np.linspace(-20, 20, 21).tolist(),
                "images": [{"image": f"{kind}:{number}", "mean": 10.0 * number, **image} for number in range(4)],
            }
            for kind in ("modified", "clean")
        },
        "studies": {
            "protocols": ["paper"],
            "outcomes": {"attention_failed": 2, "completed": 30},
            "checks": {"corrupted": [88, 90], "instructed": [90, 90]},
            "first_rated": "2026-01-05",
            "last_rated": "2026-02-07",
        },
    }


def _stored_inputs(attack: Attack, target_model: TargetModel) -> dict[str, Any]:
    """A file of two ratings, for what sends files."""
    inputs = Inputs.of(
        attack.slug,
        target_model.slug,
        [InputRating("0" * 32, f"image-{kind}", kind, 10.0, "", None) for kind in (True, False)],
    )
    content = inputs.as_gzip()
    name = storages["private"].save(f"results/test/{attack.slug}-{target_model.slug}.gz", ContentFile(content))
    return {
        "inputs": name,
        "inputs_sha256": hashlib.sha256(content).hexdigest(),
        "inputs_bytes": len(content),
        "input_digest": inputs.digest,
    }
