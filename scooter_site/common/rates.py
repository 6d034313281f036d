"""How often something may happen, as settings say it. Pure: settings import it before Django is ready."""

from dataclasses import dataclass

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Rate:
    """So many within so many seconds."""

    count: int
    seconds: int


def parse_rate(text: str) -> Rate | None:
    """Parse ``300/minute``; ``off`` is None. Raises ValueError that says how a rate looks."""
    if text == "off":
        return None
    count, _, period = text.partition("/")
    if not (count.isascii() and count.isdigit() and int(count) > 0 and period in PERIODS):
        raise ValueError(f"{text!r} is not a rate. Write for example 300/minute (second, minute, hour, day), or off.")
    return Rate(int(count), PERIODS[period])
