"""The published rating sets beside the project, coded, and simulated ones."""

import csv
from pathlib import Path

import numpy as np

from leaderboard.statistics.ratings import Ratings


def published(shared_data: Path, name: str) -> Ratings:
    with (shared_data / "ratings" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return Ratings.from_columns(
        [float(row["rating"]) for row in rows],
        [row["image_type"] == "modified" for row in rows],
        [row["pid"] for row in rows],
        [row["image_id"] for row in rows],
    )


def simulated(
    participants: int,
    images_per_kind: int,
    rated_per_kind: int,
    seed: int,
    *,
    difference: float = 12.0,
    participant_sd: tuple[float, float] = (18.0, 12.0),
    image_sd: tuple[float, float] = (10.0, 8.0),
    residual_sd: float = 25.0,
) -> Ratings:
    """Ratings of the model itself, not rounded; each participant rates as many random images of each kind."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=(participants, 2)) * participant_sd
    of_images = [rng.normal(0, sd, images_per_kind) for sd in image_sd]
    columns: list[tuple[float, bool, int, int]] = []
    for participant in range(participants):
        for is_modified in (True, False):
            for image in rng.choice(images_per_kind, rated_per_kind, replace=False):
                mean = -20 + effects[participant, 0]
                if not is_modified:
                    mean += difference + effects[participant, 1]
                value = mean + of_images[0 if is_modified else 1][image] + rng.normal(0, residual_sd)
                columns.append((value, is_modified, participant, int(image)))
    return Ratings.from_columns(*zip(*columns, strict=True))
