from decimal import Decimal

import pytest

from studies.flow import Outcome
from studies.pay import Rates, amount_due, minimum_problems


def rates(**changes):
    return Rates(
        **{
            "currency": "GBP",
            "hourly_rate": Decimal("7.60"),
            "minutes_complete": Decimal(13),
            "minutes_colour_check": Decimal(1),
            "minutes_comprehension": Decimal("2.5"),
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("outcome", "amount"),
    [
        (Outcome.COMPLETED, "1.65"),
        (Outcome.ATTENTION_FAILED, "1.65"),
        (Outcome.COMPREHENSION_FAILED, "0.32"),
        (Outcome.COLOUR_CHECK_FAILED, "0.13"),
        (Outcome.DECLINED, "0.00"),
        (Outcome.TIMED_OUT, "0.00"),
    ],
)
def test_the_papers_amounts(outcome, amount):
    due = amount_due(outcome, rates())
    assert due == Decimal(amount)
    assert str(due) == amount


@pytest.mark.parametrize(
    ("minutes", "rate", "amount"),
    [("1", "0.30", "0.01"), ("1", "0.90", "0.02"), ("1", "1.50", "0.03"), ("1", "0.29", "0.00")],
)
def test_half_a_penny_is_rounded_up(minutes, rate, amount):
    assert rates(hourly_rate=Decimal(rate)).for_minutes(Decimal(minutes)) == Decimal(amount)


def test_the_papers_pay_satisfies_prolific():
    assert minimum_problems(rates()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hourly_rate": Decimal("5.99")}, "minimum is GBP 6.00"),
        ({"minutes_colour_check": Decimal("0.5")}, "failed colour check pays GBP 0.06"),
        ({"minutes_comprehension": Decimal("0.1")}, "failed comprehension check pays GBP 0.01"),
        ({"minutes_comprehension": Decimal(13)}, "not less than the full reward"),
        ({"currency": "USD"}, "minimum is USD 8.00"),
        ({"currency": "EUR"}, "not in EUR"),
    ],
)
def test_what_prolific_would_refuse(changes, words):
    problems = minimum_problems(rates(**changes))
    assert any(words in problem for problem in problems), problems


def test_a_check_that_does_not_take_place_needs_no_pay():
    assert minimum_problems(rates(minutes_colour_check=Decimal(0)), has_colour_check=False) == []


def test_exactly_the_minimum_is_enough():
    assert minimum_problems(rates(hourly_rate=Decimal("6.00"))) == []
