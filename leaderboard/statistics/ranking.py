"""Who stands where: the pair whose modifications are least perceptible comes first."""

from collections.abc import Sequence


def rank(differences: Sequence[float | None]) -> list[int | None]:
    """Give each difference its rank: the smallest absolute value is 1, equal values share a rank and the next skips.

    ``differences`` holds stored values in points of the scale, not rounded ones; None (unscored) has no rank.
    Returns the ranks in the order of the input.
    """
    sizes = sorted(abs(difference) for difference in differences if difference is not None)
    first_place: dict[float, int] = {}
    for place, size in enumerate(sizes, start=1):
        first_place.setdefault(size, place)
    return [None if difference is None else first_place[abs(difference)] for difference in differences]
