"""How pages write the numbers of the catalogue."""

from django import template

register = template.Library()


@register.filter
def percent(share: float) -> str:
    """A share from 0 to 1 as per cent, with one decimal; without, if it is a whole number."""
    percent = round(100 * share, 6)
    return f"{percent:.0f} %" if percent.is_integer() else f"{percent:.1f} %"
