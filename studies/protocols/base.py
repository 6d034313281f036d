"""What a protocol decides, pure: no Django, no models. Flow, storage and pages know nothing else of it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from typing import Protocol as Interface

from studies import checks, order
from studies.order import PlannedTrial
from studies.presets import Preset
from studies.scale import Scale


@dataclass(frozen=True)
class Setup:
    """The settings of a study that its protocol works with."""

    scale: Scale
    widget: str  # "slider" or "likert" (one button for each value)
    image_count: int  # of a dataset
    corrupted_check_count: int
    instructed_check_count: int
    instructed_tolerance: int


@dataclass(frozen=True)
class Material:
    """What there is to show to one participant: (image id, whether it is modified), and the study's check images."""

    images: Sequence[tuple[int, bool]]
    corrupted_ids: Sequence[int]


@dataclass(frozen=True)
class Button:
    """A point of the scale with a button of its own, and what is written on it."""

    value: int
    shown: str


class ShownTrial(Interface):
    """A trial as it was planned and stored. ``parameters`` are the protocol's own."""

    @property
    def kind(self) -> str: ...
    @property
    def instructed_value(self) -> int | None: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


class Protocol:
    """Single images, rated one after the other as long as wanted, with attention checks in between.

    A subclass says what is different. Its ``preset`` has the name, the texts and the settings that a new study begins
    with, among them scale, widget and scoring direction. An answer is always a whole number on that scale.
    """

    preset: ClassVar[Preset]
    # Kinds of trial, with names for researchers. Ratings of "image" are those that analysis takes.
    kinds: ClassVar[Mapping[str, str]] = {
        "image": "Image",
        "corrupted": "Attention check: corrupted image",
        "instructed": "Attention check: instructed response",
    }
    # Whether what is shown depends on earlier answers (``adapt``): then the browser gets one item at a time.
    is_adaptive: ClassVar[bool] = False

    def trial_count(self, setup: Setup) -> int:
        """How many trials ``plan`` makes."""
        return setup.image_count + setup.corrupted_check_count + setup.instructed_check_count

    def plan(self, material: Material, setup: Setup, rng: random.Random) -> list[PlannedTrial]:
        """All trials of one participant in their order; stored at once.

        Of ``parameters``, ``exposure_ms`` hides the image after that time and ``second_image`` (an image id) shows
        another beside it; the rest is for the protocol alone and never leaves the server.
        """
        return order.order_trials(
            image_ids=[image_id for image_id, _ in material.images],
            corrupted_ids=material.corrupted_ids,
            instructed_values=order.draw_instructed_values(
                setup.scale.instructable_values(), setup.instructed_check_count, rng
            ),
            rng=rng,
        )

    def adapt(self, answered: ShownTrial, value: int, following: ShownTrial) -> Mapping[str, Any] | None:
        """The parameters of the next trial in the light of an answer; None: as planned."""
        return None

    def check_passed(self, trial: ShownTrial, value: int, setup: Setup) -> bool:
        """Whether an answer passes as attentive; always, if the trial is no attention check."""
        if trial.kind == "corrupted":
            return checks.corrupted_check_passed(value, setup.scale)
        if trial.instructed_value is not None:
            return checks.instructed_check_passed(value, trial.instructed_value, setup.instructed_tolerance)
        return True

    def text(self, trial: ShownTrial, setup: Setup) -> str | None:
        """Words in place of the image, or with it."""
        value, scale = trial.instructed_value, setup.scale
        if value is None:
            return None
        verb = "move the slider to" if setup.widget == "slider" else "choose"
        end = {scale.minimum: ", the left end,", scale.maximum: ", the right end,"}.get(value, "")
        return f"This is an attention check. Please {verb} {self.shown_value(value, setup)}{end} and continue."

    def buttons(self, setup: Setup) -> list[Button]:
        """A button for each value of the scale, from left to right; none for a slider."""
        if setup.widget == "slider":
            return []
        values = range(setup.scale.minimum, setup.scale.maximum + 1)
        return [Button(value, self.shown_value(value, setup)) for value in values]

    def shown_value(self, value: int, setup: Setup) -> str:
        """A value as pages write it: signed when the scale has two sides."""
        if setup.scale.minimum >= 0 or value == 0:
            return str(value)
        return f"+{value}" if value > 0 else f"−{-value}"
