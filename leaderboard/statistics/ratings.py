"""Ratings as the statistics take them: arrays of codes and values. Pure numpy."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Ratings:
    """n ratings of one (attack, target model) pair, coded.

    ``values`` (n,) in points of the scale; ``is_modified`` (n,) boolean; ``participants`` (n,) and ``images`` (n,)
    codes from 0. An image is its kind and its id: ids of modified and clean images may coincide in foreign files.
    ``image_ids`` (images,) are the ids that the codes stand for, as ``from_columns`` was given them.
    """

    values: NDArray[np.float64]
    is_modified: NDArray[np.bool_]
    participants: NDArray[np.intp]
    images: NDArray[np.intp]
    participant_count: int
    image_count: int
    image_ids: NDArray[np.generic]

    @classmethod
    def from_columns(
        cls, values: ArrayLike, is_modified: ArrayLike, participants: ArrayLike, images: ArrayLike
    ) -> "Ratings":
        """Code n ratings given as four columns of length n; ids may be of any one type.

        Raises ValueError if the lengths differ or a value is not finite.
        """
        value_array = np.asarray(values, dtype=float)
        modified_array = np.asarray(is_modified, dtype=bool)
        participant_array = np.asarray(participants)
        image_array = np.asarray(images)
        shapes = [array.shape for array in (value_array, modified_array, participant_array, image_array)]
        if len(set(shapes)) > 1 or value_array.ndim != 1:
            raise ValueError(
                "values, is_modified, participants and images must be one-dimensional and of one length, not "
                + ", ".join(str(shape) for shape in shapes)
            )
        if not np.isfinite(value_array).all():
            raise ValueError("every value must be a finite number")
        participant_ids, participant_codes = np.unique(participant_array, return_inverse=True)
        image_ids, image_codes = np.unique(image_array, return_inverse=True)
        kinds_and_ids, both_codes = np.unique(2 * image_codes + modified_array, return_inverse=True)
        return cls(
            values=value_array,
            is_modified=modified_array,
            participants=participant_codes,
            images=both_codes,
            participant_count=participant_ids.size,
            image_count=kinds_and_ids.size,
            image_ids=image_ids[kinds_and_ids // 2],
        )

    def mirrored(self, middle: float) -> "Ratings":
        """The same ratings on a scale of the other direction."""
        return replace(self, values=2 * middle - self.values)

    def of_participants(self, codes: ArrayLike) -> "Ratings":
        """The ratings of some participants alone, coded anew."""
        chosen = np.isin(self.participants, codes)
        return Ratings.from_columns(
            self.values[chosen], self.is_modified[chosen], self.participants[chosen], self.images[chosen]
        )
