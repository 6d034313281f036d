"""Money on its way to and from Prolific, which counts rewards in pence or cents and bonuses in pounds or dollars.

Names say the unit: ``_minor`` is an integer of pence or cents, ``_major`` a Decimal of pounds or dollars.
"""

from decimal import Decimal

PENNY = Decimal("0.01")


def to_minor(amount_major: Decimal) -> int:
    """Pence of an amount in pounds. Raises ValueError for fractions of a penny: rounding is decided before."""
    minor = amount_major * 100
    if minor != minor.to_integral_value():
        raise ValueError(f"{amount_major} is no whole number of pence.")
    return int(minor)


def to_major(amount_minor: int) -> Decimal:
    """Pounds of an amount in pence, with two places."""
    return (Decimal(amount_minor) / 100).quantize(PENNY)


def bonus_line(recipient_id: str, amount_major: Decimal) -> str:
    """A line of a bonus file: ``id,0.13``. Raises ValueError for what is no positive amount in whole pence."""
    if amount_major <= 0:
        raise ValueError(f"A bonus of {amount_major} cannot be paid: it must be more than nothing.")
    return f"{recipient_id},{to_major(to_minor(amount_major))}"
