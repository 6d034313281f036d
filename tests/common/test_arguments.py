"""What command-line arguments take, and what they say of the rest."""

import argparse
import math
from decimal import Decimal

import pytest

from scooter_site.common.arguments import money, number, number_between, number_from, whole_number


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (whole_number(0), "0", 0),
        (whole_number(1), "12", 12),
        (number, "-2", -2.0),
        (number_from(-1, 1), "-1", -1.0),
        (number_between(0, 1), "0.8", 0.8),
        (number_between(0, math.inf), "10", 10.0),
        (money, "4.50", Decimal("4.50")),
        (money, "0", Decimal(0)),
    ],
)
def test_taken(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (whole_number(1), "0", "'0' is no whole number, 1 or more"),
        (whole_number(1), "1.5", "no whole number"),
        (number, "nan", "'nan' is no number"),
        (number, "inf", "is no number"),
        (number, "ten", "is no number"),
        (number_from(-1, 1), "1.01", "'1.01' is not from -1 to 1"),
        (number_between(0, 0.5), "0.5", "not between 0 and 0.5, and neither of them"),
        (number_between(0, math.inf), "0", "'0' is not above 0"),
        (money, "-1", "no amount of money"),
        (money, "nan", "no amount of money"),
        (money, "four", "no amount of money"),
    ],
)
def test_refused(parse, text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        parse(text)
