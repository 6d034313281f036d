"""Who sees what in which order, pure. The result is stored, never computed again from a seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


class OrderImpossible(ValueError):
    """The counts of a study leave no order that keeps the rules; the message says which and why."""


@dataclass(frozen=True)
class PlannedTrial:
    """One item of the main study: an image of the dataset, a check image (stimulus), or words alone."""

    kind: str
    image_id: int | None = None
    stimulus_id: int | None = None
    instructed_value: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)


def order_trials(
    image_ids: Sequence[int], corrupted_ids: Sequence[int], instructed_values: Sequence[int], rng: random.Random
) -> list[PlannedTrial]:
    """Images in random order, with the attention checks spread over the whole run.

    The gaps between images are divided into as many equal stretches as there are checks, and each stretch gets one
    check in a random gap: so a check is never first, last or beside another.
    """
    images = [PlannedTrial("image", image_id=image_id) for image_id in image_ids]
    checks = [PlannedTrial("corrupted", stimulus_id=stimulus_id) for stimulus_id in corrupted_ids]
    checks += [PlannedTrial("instructed", instructed_value=value) for value in instructed_values]
    gaps = len(images) - 1
    if len(checks) > max(gaps, 0):
        raise OrderImpossible(
            f"{len(checks)} attention checks do not fit between {len(images)} images without being first, last or "
            f"adjacent: use at most {max(gaps, 0)}, or more images."
        )
    rng.shuffle(images)
    rng.shuffle(checks)
    check_before_image = {}
    for number, check in enumerate(checks):
        first, end = gaps * number // len(checks), gaps * (number + 1) // len(checks)
        check_before_image[1 + rng.randrange(first, end)] = check
    trials = []
    for index, image in enumerate(images):
        if index in check_before_image:
            trials.append(check_before_image[index])
        trials.append(image)
    return trials


def draw_instructed_values(candidates: Sequence[int], count: int, rng: random.Random) -> list[int]:
    """``count`` values to ask for, all different as long as there are enough candidates."""
    values: list[int] = []
    while len(values) < count:
        values += rng.sample(candidates, min(len(candidates), count - len(values)))
    return values


@dataclass(frozen=True)
class PlateChoice:
    """A colour plate of the pool; ``digit`` is None on a plate without one."""

    plate_id: int
    kind: str
    digit: int | None


def order_plates(pool: Sequence[PlateChoice], count: int, rng: random.Random) -> list[PlateChoice]:
    """``count`` plates in random order: exactly one without a digit, all digits different, every kind represented.

    A single plate has a digit: a check that only a blank plate decides would check nothing.
    """
    chosen: list[PlateChoice] = []

    def choose(candidates: list[PlateChoice]) -> None:
        if not candidates:
            raise OrderImpossible(f"The pool of {len(pool)} colour plates is too small to choose {count} from.")
        kinds = [plate.kind for plate in chosen if plate.digit is not None]
        chosen.append(min(candidates, key=lambda plate: kinds.count(plate.kind)))

    shuffled = rng.sample(pool, len(pool))
    if count > 1:
        choose([plate for plate in shuffled if plate.digit is None])
    while len(chosen) < count:
        digits = {plate.digit for plate in chosen}
        choose([plate for plate in shuffled if plate.digit is not None and plate.digit not in digits])
    rng.shuffle(chosen)
    return chosen


def draw_modified_sides(count: int, rng: random.Random) -> list[Literal["left", "right"]]:
    """On which side each pair's modified image is: half left and half right, so that one side alone never passes."""
    sides: list[Literal["left", "right"]] = ["left", "right"]
    rng.shuffle(sides)
    drawn = [sides[number % 2] for number in range(count)]
    rng.shuffle(drawn)
    return drawn
