"""Counts, means and standard deviations of the ratings of one (attack, target model) pair.

Pure: arrays in, numbers out. What is not defined (the mean of no ratings, the standard deviation of one) is None,
never NaN, so that it can be stored and shown as what it is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class KindSummary:
    """The ratings of one kind of image, modified or clean; ``mean`` and ``sd`` in points of the scale."""

    ratings: int
    images: int
    mean: float | None
    sd: float | None  # with n - 1 in the denominator


@dataclass(frozen=True)
class Descriptives:
    """The ratings of one pair; ``difference`` is the mean of modified minus the mean of clean images."""

    ratings: int
    participants: int
    modified: KindSummary
    clean: KindSummary
    difference: float | None


def describe(values: ArrayLike, is_modified: ArrayLike, participants: ArrayLike, images: ArrayLike) -> Descriptives:
    """Describe n ratings.

    All four arguments have shape (n,), n >= 0, and one element per rating: ``values`` in points of the scale, finite,
    oriented "higher = more certain that the image is modified"; ``is_modified`` boolean; ``participants`` and
    ``images`` ids of any one type. An image is identified by its kind and its id, because ids of modified and clean
    images may coincide in foreign files.

    Raises ValueError if the shapes differ or a value is not finite.
    """
    value_array = np.asarray(values, dtype=float)
    modified_array = np.asarray(is_modified, dtype=bool)
    participant_array = np.asarray(participants)
    image_array = np.asarray(images)
    shapes = {array.shape for array in (value_array, modified_array, participant_array, image_array)}
    if len(shapes) > 1 or value_array.ndim != 1:
        raise ValueError(
            "values, is_modified, participants and images must be one-dimensional and of one length, not "
            f"{value_array.shape}, {modified_array.shape}, {participant_array.shape}, {image_array.shape}"
        )
    if not np.isfinite(value_array).all():
        raise ValueError("every value must be a finite number")
    modified = _summarise(value_array[modified_array], image_array[modified_array])
    clean = _summarise(value_array[~modified_array], image_array[~modified_array])
    difference = None if modified.mean is None or clean.mean is None else modified.mean - clean.mean
    return Descriptives(
        ratings=value_array.size,
        participants=np.unique(participant_array).size,
        modified=modified,
        clean=clean,
        difference=difference,
    )


def _summarise(values: NDArray[np.float64], images: NDArray[Any]) -> KindSummary:
    return KindSummary(
        ratings=values.size,
        images=np.unique(images).size,
        mean=float(values.mean()) if values.size else None,
        sd=float(values.std(ddof=1)) if values.size > 1 else None,
    )
