"""Numbers as people read them. Pure."""

from functools import lru_cache


@lru_cache(maxsize=64)  # a row's numbers stand in a cell and in its drawing
def format_number(value: float | None, decimals: int, *, always_signed: bool = False) -> str:
    """Write a number with a true minus sign; what rounds to zero has no sign, and what is not defined is a dash."""
    if value is None:
        return "–"
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0:
        return text
    if value < 0:
        return f"\N{MINUS SIGN}{text}"
    return f"+{text}" if always_signed else text


def decimals_of(scale_minimum: float, scale_maximum: float) -> int:
    """A whole point of a 200-point slider is little; on a five-point scale it is a lot."""
    return 1 if scale_maximum - scale_minimum >= 20 else 2


def format_interval(low: float | None, high: float | None, decimals: int) -> str:
    """Both ends in brackets; a dash if there is no interval."""
    if low is None or high is None:
        return "–"
    return f"[{format_number(low, decimals)}, {format_number(high, decimals)}]"


def format_percent(share: float | None) -> str:
    """A share of 0 to 1 in whole per cent; what is not quite all or nothing never reads as if it were."""
    if share is None:
        return "–"
    if 0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


def deciding_interval(alpha: float) -> str:
    """The confidence of the interval that a verdict follows from: two one-sided tests leave out alpha at either end."""
    return f"{100 * (1 - 2 * alpha):.4g} %"


def format_p_value(value: float | None) -> str:
    """Three decimals; very small ones as smaller than the last of them."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def format_range(low: int | None, high: int | None) -> str:
    """Two whole numbers that mean a range, or the one number they both are."""
    if low is None or high is None:
        return "–"
    return str(low) if low == high else f"{low}–{high}"
