"""What a participant is due, in Decimal, pure: minutes times hourly rate, rounded half up to the penny."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from studies.flow import Outcome

PENNY = Decimal("0.01")

# Prolific's minimum per hour and per screen-out (its help pages on payment principles and in-study screening, 2025).
PROLIFIC_MINIMUM_PER_HOUR = {"GBP": Decimal("6.00"), "USD": Decimal("8.00")}
PROLIFIC_MINIMUM_SCREEN_OUT = {"GBP": Decimal("0.10"), "USD": Decimal("0.14")}


@dataclass(frozen=True)
class Rates:
    """A study's pay: rate per hour, and the minutes paid for each way to end."""

    currency: str
    hourly_rate: Decimal
    minutes_complete: Decimal
    minutes_colour_check: Decimal
    minutes_comprehension: Decimal

    def for_minutes(self, minutes: Decimal) -> Decimal:
        """Pay for ``minutes``, to the penny."""
        return (minutes * self.hourly_rate / 60).quantize(PENNY, rounding=ROUND_HALF_UP)


def amount_due(outcome: Outcome, rates: Rates) -> Decimal:
    """What someone who ended with ``outcome`` is due, in major units of the currency.

    Who failed the attention checks has given the time all the same and is due the full amount, until a person
    decides otherwise on the panel. Who declined, returned the submission or never came back is due nothing, and a
    replaced session neither: the later one is paid.
    """
    minutes = {
        Outcome.COMPLETED: rates.minutes_complete,
        Outcome.ATTENTION_FAILED: rates.minutes_complete,
        Outcome.COMPREHENSION_FAILED: rates.minutes_comprehension,
        Outcome.COLOUR_CHECK_FAILED: rates.minutes_colour_check,
        Outcome.DECLINED: Decimal(0),
        Outcome.TIMED_OUT: Decimal(0),
        Outcome.REPLACED: Decimal(0),
        Outcome.RETURNED: Decimal(0),
    }[outcome]
    return rates.for_minutes(minutes)


def minimum_problems(rates: Rates, *, has_colour_check: bool = True, has_comprehension_check: bool = True) -> list[str]:
    """What Prolific would refuse about the pay, each with what to do; empty if nothing."""
    if rates.currency not in PROLIFIC_MINIMUM_PER_HOUR:
        known = " or ".join(PROLIFIC_MINIMUM_PER_HOUR)
        return [f"Prolific pays in {known}, not in {rates.currency}: change the currency."]
    problems = []
    minimum = PROLIFIC_MINIMUM_PER_HOUR[rates.currency]
    if rates.hourly_rate < minimum:
        problems.append(
            f"The hourly rate is {rates.currency} {rates.hourly_rate:.2f}; Prolific's minimum is "
            f"{rates.currency} {minimum}: raise the hourly rate."
        )
    reward = amount_due(Outcome.COMPLETED, rates)
    smallest = PROLIFIC_MINIMUM_SCREEN_OUT[rates.currency]
    screen_outs = [
        (Outcome.COLOUR_CHECK_FAILED, "colour check", has_colour_check),
        (Outcome.COMPREHENSION_FAILED, "comprehension check", has_comprehension_check),
    ]
    for outcome, name, takes_place in screen_outs:
        if not takes_place:
            continue
        amount = amount_due(outcome, rates)
        if amount < smallest:
            problems.append(
                f"A failed {name} pays {rates.currency} {amount}; Prolific's minimum for a screen-out is "
                f"{rates.currency} {smallest}: raise its minutes."
            )
        if amount >= reward:
            problems.append(
                f"A failed {name} pays {rates.currency} {amount}, which is not less than the full reward of "
                f"{rates.currency} {reward}: lower its minutes."
            )
    return problems
