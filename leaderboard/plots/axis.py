"""Scales and their ticks. Pure."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A linear scale: values from ``low`` to ``high`` lie between the positions ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Position of a value; what lies beyond the scale is put at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 6) -> list[float]:
        """About ``count`` round values within the scale."""
        step = round_step((self.high - self.low) / count)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def round_step(size: float) -> float:
    """The smallest of 1, 2, 5, 10, ... times a power of ten that is at least ``size``."""
    power: float = 10.0 ** math.floor(math.log10(size))
    for factor in (1, 2, 5):
        if factor * power >= size * (1 - 1e-9):
            return factor * power
    return 10 * power


def tick_label(value: float, step: float, *, always_signed: bool = False) -> str:
    """A tick's value with as many decimals as the step has, and a true minus sign."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0:
        return "0"
    if value < 0:
        return f"\N{MINUS SIGN}{text}"
    return f"+{text}" if always_signed else text
