"""The rating scale of a study, pure: which side means modified, and what can be asked for on it.

The scale's own direction is kept wherever values are stored; analysis works on "higher = more certain that the
image is modified" (``Scale.oriented``).
"""

from dataclasses import dataclass

# Instructed values on a fine scale: round numbers that a slider can hit.
INSTRUCTED_STEP = 25


@dataclass(frozen=True)
class Scale:
    """Whole numbers from ``minimum`` to ``maximum``, both included."""

    minimum: int
    maximum: int
    higher_is_modified: bool

    def oriented(self, value: int) -> int:
        """``value`` as "higher = more certain that the image is modified": mirrored about the middle if need be."""
        return value if self.higher_is_modified else self.minimum + self.maximum - value

    def is_on_modified_side(self, value: int) -> bool:
        """Whether ``value`` says "modified": strictly beyond the middle, which says nothing."""
        return 2 * self.oriented(value) > self.minimum + self.maximum

    def contains(self, value: int) -> bool:
        return self.minimum <= value <= self.maximum

    def instructable_values(self) -> list[int]:
        """What an instructed check may ask for, never the middle: multiples of 25, or a short scale's end points."""
        if self.maximum - self.minimum < 2 * INSTRUCTED_STEP:
            return [self.minimum, self.maximum]
        return [
            value
            for value in range(self.minimum, self.maximum + 1)
            if value % INSTRUCTED_STEP == 0 and 2 * value != self.minimum + self.maximum
        ]
