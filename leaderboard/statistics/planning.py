"""How many participants a study needs: power of the equivalence test and width of the interval, before it is run.

For P participants who each rate k modified and k clean images out of pools of I images per kind, every image equally
often, the difference of the two means has the variance

    V = slope / P + image_modified / I_used + image_clean / I_used + 2 * residual / (P * k)

with I_used = min(I, P * k). That is the variance of b1 in the mixed model when the design is balanced. Its degrees of
freedom follow Satterthwaite from the mean squares that V is estimated by: participants' own differences vary by the
slope, by the residual of k ratings, and by those images that other participants did not rate; with n = P * k / I_used
ratings per image and w = 1 - (1 - k / I_used) / n, the share of the images' part that participants do not show,

    V = A + B_modified + B_clean - w * R
    A = (slope + (2 * residual + (1 - k / I_used) * (image_modified + image_clean)) / k) / P    with P - 1
    B = w * (image + residual / n) / I_used                                                      with I_used - 1
    R = 2 * residual / (P * k)                            with 2 * (P - 1) * (k - 1)

It is exact for complete designs, and an approximation for others (docs/statistics.md says how good).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from scipy import special, stats

from leaderboard.statistics.equivalence import Verdict, two_one_sided_tests
from leaderboard.statistics.mixed_model import NotEstimable, VarianceComponents, fit_mixed_model
from leaderboard.statistics.ratings import Ratings

# Power changes by less than 1e-6 with more nodes.
QUADRATURE_NODES = 200
MOST_PARTICIPANTS = 100_000


@dataclass(frozen=True)
class Design:
    """Who rates what: ``images_per_kind`` are rated by one participant of each kind, out of ``pool_per_kind``."""

    participants: int
    images_per_kind: int
    pool_per_kind: int

    def __post_init__(self) -> None:
        if not (self.participants >= 2 and 1 <= self.images_per_kind <= self.pool_per_kind and self.pool_per_kind >= 2):
            raise ValueError(
                "a design needs 2 participants or more, a pool of 2 images or more per kind, and no more images per "
                f"participant than the pool holds, not {self}"
            )


@dataclass(frozen=True)
class Plan:
    """What a design promises. ``interval_width`` is the expected width of the 1 - 2 alpha interval."""

    design: Design
    standard_error: float
    degrees_of_freedom: float
    interval_width: float
    power: float  # probability of the verdict "imperceptible"
    cost: Decimal | None = None


def plan(
    design: Design,
    components: VarianceComponents,
    *,
    bound: float,
    difference: float = 0.0,
    alpha: float = 0.05,
    pounds_per_participant: Decimal | None = None,
) -> Plan:
    """What ``design`` promises if the true difference is ``difference`` and the variances are ``components``."""
    participants, rated = design.participants, design.images_per_kind
    images_used = min(design.pool_per_kind, participants * rated)
    unshared = 1 - rated / images_used
    per_image = participants * rated / images_used
    beside = 1 - unshared / per_image
    images = components.image_modified + components.image_clean
    within = 2 * components.residual / (participants * rated)
    between = components.participant_slope / participants + within + unshared * images / (participants * rated)
    parts = [(between, participants - 1), (-beside * within, max(1, 2 * (participants - 1) * (rated - 1)))]
    parts += [
        (beside * (image + components.residual / per_image) / images_used, images_used - 1)
        for image in (components.image_modified, components.image_clean)
    ]
    variance = sum(part for part, _ in parts)
    if variance <= 0:
        raise ValueError("at least one variance must be positive")
    degrees = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    error = math.sqrt(variance)
    critical = float(stats.t.ppf(1 - alpha, degrees))
    # The expected value of the estimated standard error is a little below the true one.
    shrinkage = math.exp(special.gammaln((degrees + 1) / 2) - special.gammaln(degrees / 2)) * math.sqrt(2 / degrees)
    return Plan(
        design=design,
        standard_error=error,
        degrees_of_freedom=degrees,
        interval_width=2 * critical * error * shrinkage,
        power=equivalence_power(error, degrees, bound=bound, difference=difference, alpha=alpha),
        cost=None if pounds_per_participant is None else pounds_per_participant * design.participants,
    )


def equivalence_power(
    standard_error: float, degrees_of_freedom: float, *, bound: float, difference: float = 0.0, alpha: float = 0.05
) -> float:
    """Probability that both one-sided tests are significant (Phillips 1990, J. Pharmacokinet. Biopharm. 18).

    The estimate is normal, its squared standard error a scaled chi-squared variable: the probability given the
    standard error is averaged over its distribution.
    """
    critical = float(stats.t.ppf(1 - alpha, degrees_of_freedom))
    nodes, weights = special.roots_legendre(QUADRATURE_NODES)
    ratio = np.sqrt(stats.chi2.ppf((nodes + 1) / 2, degrees_of_freedom) / degrees_of_freedom)
    upper = (bound - difference) / standard_error - critical * ratio
    lower = (-bound - difference) / standard_error + critical * ratio
    given_ratio = np.clip(stats.norm.cdf(upper) - stats.norm.cdf(lower), 0, None)
    return float(np.where(upper > lower, given_ratio, 0.0) @ weights / 2)


def participants_needed(
    power: float,
    design: Design,
    components: VarianceComponents,
    *,
    bound: float,
    difference: float = 0.0,
    alpha: float = 0.05,
) -> int | None:
    """The fewest participants that give ``power``, other things being as in ``design``.

    None if not even 100,000 would do: then the images are too few, or the difference is too near the bound.
    """

    def reaches(participants: int) -> bool:
        candidate = replace(design, participants=participants)
        return plan(candidate, components, bound=bound, difference=difference, alpha=alpha).power >= power

    if not reaches(MOST_PARTICIPANTS):
        return None
    too_few, enough = 1, MOST_PARTICIPANTS
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if reaches(middle) else (middle, enough)
    return enough


def simulated_power(
    design: Design,
    components: VarianceComponents,
    *,
    bound: float,
    difference: float = 0.0,
    alpha: float = 0.05,
    repeats: int = 500,
    seed: int = 0,
) -> float:
    """The same probability by simulation: ratings are drawn from the model, fitted and tested, ``repeats`` times."""
    rng = np.random.default_rng(seed)
    imperceptible = 0
    for _ in range(repeats):
        try:
            fit = fit_mixed_model(simulate_ratings(design, components, difference, rng))
        except NotEstimable:
            continue
        result = two_one_sided_tests(
            fit.difference, fit.standard_error, fit.degrees_of_freedom, bound=bound, alpha=alpha
        )
        imperceptible += result.verdict == Verdict.IMPERCEPTIBLE
    return imperceptible / repeats


def simulate_ratings(
    design: Design, components: VarianceComponents, difference: float, rng: np.random.Generator
) -> Ratings:
    """Draw the ratings of one study. ``difference`` is clean minus modified; values are not rounded or cut off.

    Participants take turns through the pools, so that images are rated equally often, as in a study's datasets.
    """
    participants, per_kind, pool = design.participants, design.images_per_kind, design.pool_per_kind
    covariance = [
        [components.participant_intercept, components.participant_covariance],
        [components.participant_covariance, components.participant_slope],
    ]
    effects = rng.multivariate_normal([0.0, 0.0], covariance, size=participants, method="svd")
    image_effects = np.stack(
        [rng.normal(0, math.sqrt(variance), pool) for variance in (components.image_modified, components.image_clean)]
    )
    order = np.stack([rng.permutation(pool) for _ in range(2)])
    turns = np.arange(participants * per_kind) % pool
    who = np.repeat(np.arange(participants), per_kind)
    columns = []
    for kind in (0, 1):
        images = order[kind][turns]
        means = effects[who, 0] + image_effects[kind][images] + kind * (difference + effects[who, 1])
        columns.append((means, images))
    values = np.concatenate([means for means, _ in columns])
    return Ratings.from_columns(
        values + rng.normal(0, math.sqrt(components.residual), values.size),
        np.repeat([True, False], who.size),
        np.tile(who, 2),
        np.concatenate([images for _, images in columns]),
    )


def planning_table(
    participants: Iterable[int],
    design: Design,
    components: VarianceComponents,
    *,
    bound: float,
    difference: float = 0.0,
    alpha: float = 0.05,
    pounds_per_participant: Decimal | None = None,
) -> list[Plan]:
    """One plan for each number of participants, other things being as in ``design``."""
    return [
        plan(
            replace(design, participants=number),
            components,
            bound=bound,
            difference=difference,
            alpha=alpha,
            pounds_per_participant=pounds_per_participant,
        )
        for number in participants
    ]
