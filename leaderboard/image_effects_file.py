"""Predicted effects of single images as a CSV file."""

import csv
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from leaderboard.statistics.image_effects import predict_image_effects
from leaderboard.statistics.mixed_model import MixedModel
from leaderboard.statistics.ratings import Ratings
from scooter_site.common.csv_text import cell

COLUMNS = ("file", "image_id", "image_type", "ratings", "predicted_mean", "effect", "standard_error")


class UnwritableFile(OSError):
    """The file cannot be written; the message names it."""


def write_image_effects(path: Path, fitted: Iterable[tuple[str, Ratings, MixedModel | None]]) -> None:
    """Write one row per image of every (name, ratings, model), in points and direction of the scale, in UTF-8.

    Ratings without a model have no rows. The file is there completely or, when that fails, as it was before. Raises
    UnwritableFile.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            # A file opened in the ordinary way has the permissions that the user's umask gives.
            complete = Path(folder) / "effects.csv"
            with complete.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                for name, ratings, model in fitted:
                    if model is not None:
                        writer.writerows(_rows(name, ratings, model))
            os.replace(complete, path)
    except OSError as error:
        raise UnwritableFile(f"{path}: cannot be written ({error.strerror or error})") from error


def _rows(name: str, ratings: Ratings, model: MixedModel) -> Iterable[list[str]]:
    effects = predict_image_effects(ratings, model)
    columns = (effects.ratings, effects.mean, effects.effect, effects.standard_error)
    for image, is_modified, *numbers in zip(effects.images, effects.is_modified, *columns, strict=True):
        kind = "modified" if is_modified else "clean"
        identity = (name, str(ratings.image_ids[image]), kind)
        yield [cell(value) for value in (*identity, *(number.item() for number in numbers))]
