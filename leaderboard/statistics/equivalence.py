"""Is the difference small enough to be called none? Two one-sided tests (TOST), and what they can support.

Schuirmann (1987, J. Pharmacokinet. Biopharm. 15, 657-680); Lakens (2017, Soc. Psychol. Personal. Sci. 8, 355-362).
All numbers are in points of the scale; a difference and its bounds have the same sign convention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy import stats

# A smaller level has no quantile that is a number for every study.
LEAST_ALPHA = 1e-9


class Verdict(StrEnum):
    """What the ratings say of a pair, at the level alpha and for the bounds that were set beforehand."""

    IMPERCEPTIBLE = "imperceptible"  # both one-sided tests are significant: the difference lies within the bounds
    PERCEPTIBLE = "perceptible"  # the whole 1 - 2 alpha interval lies outside the bounds, on one side
    INCONCLUSIVE = "inconclusive"  # neither: more ratings are needed to say


@dataclass(frozen=True)
class Equivalence:
    """Result of two one-sided t tests of a difference against ``bounds``.

    ``t_lower`` and ``p_lower`` test that the difference is above the lower bound, ``t_upper`` and ``p_upper`` that it
    is below the upper one. ``supported_bound`` is the smallest symmetric bound for which the verdict would be
    "imperceptible".
    """

    bounds: tuple[float, float]
    alpha: float
    t_lower: float
    t_upper: float
    p_lower: float
    p_upper: float
    verdict: Verdict
    supported_bound: float

    @property
    def p_value(self) -> float:
        """Of the two tests together: both must be significant, so the larger one."""
        return max(self.p_lower, self.p_upper)


def two_one_sided_tests(
    difference: float, standard_error: float, degrees_of_freedom: float, *, bound: float, alpha: float = 0.05
) -> Equivalence:
    """Test a difference against -bound and +bound.

    ``bound`` and ``standard_error`` are positive, ``alpha`` lies between 1e-9 and 0.5. Raises ValueError otherwise.
    """
    if not (bound > 0 and standard_error > 0 and LEAST_ALPHA < alpha < 0.5):
        raise ValueError(
            "bound and standard_error must be positive and alpha between 1e-9 and 0.5, "
            f"not {bound}, {standard_error}, {alpha}"
        )
    t_lower = (difference + bound) / standard_error
    t_upper = (difference - bound) / standard_error
    p_lower = float(stats.t.sf(t_lower, degrees_of_freedom))
    p_upper = float(stats.t.cdf(t_upper, degrees_of_freedom))
    half = float(stats.t.ppf(1 - alpha, degrees_of_freedom)) * standard_error
    if max(p_lower, p_upper) < alpha:
        verdict = Verdict.IMPERCEPTIBLE
    elif difference - half > bound or difference + half < -bound:
        verdict = Verdict.PERCEPTIBLE
    else:
        verdict = Verdict.INCONCLUSIVE
    return Equivalence(
        bounds=(-bound, bound),
        alpha=alpha,
        t_lower=t_lower,
        t_upper=t_upper,
        p_lower=p_lower,
        p_upper=p_upper,
        verdict=verdict,
        supported_bound=abs(difference) + half,
    )


def default_bound(scale_min: float, scale_max: float) -> float:
    """5 % of the scale's width: 0.2 on -2..2, 10 on -100..100."""
    return 0.05 * (scale_max - scale_min)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p values of one board after Holm (1979, Scand. J. Stat. 6, 65-70); None stays None and counts not."""
    tested = [(p_value, place) for place, p_value in enumerate(p_values) if p_value is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p_value, place) in enumerate(sorted(tested)):
        largest = max(largest, min(1.0, (len(tested) - rank) * p_value))
        adjusted[place] = largest
    return adjusted
