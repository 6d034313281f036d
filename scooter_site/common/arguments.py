"""Types of command-line arguments that say what they would have taken. For ``add_argument(type=...)``."""

import argparse
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation


def whole_number(minimum: int) -> Callable[[str], int]:
    """A whole number, ``minimum`` or more."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number, {minimum} or more")
        return number

    return parse


def number(text: str) -> float:
    """Any number, but neither infinite nor "nan"."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def number_from(low: float, high: float) -> Callable[[str], float]:
    """A number from ``low`` to ``high``, both included."""

    def parse(text: str) -> float:
        value = number(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not from {low:g} to {high:g}")
        return value

    return parse


def number_between(low: float, high: float) -> Callable[[str], float]:
    """A number above ``low`` and below ``high``."""

    def parse(text: str) -> float:
        value = number(text)
        if not low < value < high:
            limits = f"above {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}, and neither of them"
            raise argparse.ArgumentTypeError(f"{text!r} is not {limits}")
        return value

    return parse


def money(text: str) -> Decimal:
    """An amount of money, 0 or more, exactly as written."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not (amount.is_finite() and amount >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of money, such as 4.50")
    return amount
