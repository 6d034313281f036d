"""The linear mixed model of one (attack, target model) pair, fitted by REML.

    y = b0 + b1 * [clean] + u0(participant) + u1(participant) * [clean] + v(image) + e

with (u0, u1) bivariate normal, v ~ N(0, s_m^2) for modified and N(0, s_c^2) for clean images, e ~ N(0, s^2). In the
notation of lme4: ``rating ~ type + (1 + type | participant) + (0 + is_modified | image) + (0 + is_clean | image)``.

Degrees of freedom are Satterthwaite's, as in lmerTest (Kuznetsova, Brockhoff and Christensen 2017, J. Stat. Softw.
82(13)): df = 2 V^2 / (g' A g) for the variance V of b1 as a function of (theta, sigma), its gradient g, and A twice the
inverse Hessian of the REML deviance. Where a parameter is at zero, V does not depend on it to first order, and where
the deviance is flat nothing is known of it: both are left out, and the fit says so.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.reml import (
    IMAGE_CLEAN,
    IMAGE_MODIFIED,
    L11,
    L21,
    L22,
    NotEstimable,
    RemlCriterion,
    Vector,
)

__all__ = ["MixedModel", "NotEstimable", "VarianceComponents", "fit_mixed_model"]

PARAMETER_NAMES = (
    "participants' effect on modified images",
    "participants' covariance",
    "participants' effect on clean images",
    "modified images",
    "clean images",
)
BOUNDS = ((0, None), (None, None), (0, None), (0, None), (0, None))
# Starts with participants' effects on the two kinds unrelated, and opposed: with a variance of zero there are optima on
# both sides. The second is used when the first ends on a boundary.
STARTS = ((0.6, 0.0, 0.6, 0.5, 0.5), (0.6, -0.6, 0.3, 0.3, 0.3))
# A criterion lower by less than this is not lower.
NOT_LOWER = 1e-6
# So far beside zero it is looked whether a standard deviation should be more: at zero itself the slope is none.
BESIDE_ZERO = 0.1
# A relative standard deviation below this is tried at exactly zero.
NEARLY_ZERO = 0.02
# Derivatives of the gradient are taken over steps of this size; the gradient is exact to about 1e-9.
STEP = 1e-4
# With fewer degrees of freedom nothing is known of the standard error, and quantiles are no numbers any more.
LEAST_DEGREES = 0.1
# A direction is flat if the deviance curves less along it than this share of its strongest curvature.
FLAT = 1e-6


@dataclass(frozen=True)
class VarianceComponents:
    """Variances in squared points of the scale. The participants' intercept is their effect on modified images."""

    participant_intercept: float
    participant_slope: float
    participant_covariance: float
    image_modified: float
    image_clean: float
    residual: float


@dataclass(frozen=True)
class MixedModel:
    """The fitted model, in points of the scale. ``difference`` is b1, clean minus modified."""

    reml_criterion: float
    intercept_modified: float
    difference: float
    standard_error: float
    degrees_of_freedom: float
    variance_components: VarianceComponents
    boundary: tuple[str, ...]  # variances estimated as zero, and what could not be told apart; empty: a regular fit
    theta: tuple[float, ...]
    evaluations: int

    def interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the difference, for example ``interval(0.90)``."""
        half = float(stats.t.ppf((1 + level) / 2, self.degrees_of_freedom)) * self.standard_error
        return self.difference - half, self.difference + half


def fit_mixed_model(ratings: Ratings) -> MixedModel:
    """Fit the model of the module's docstring. Raises NotEstimable, saying what is missing.

    Needs, of each kind, two images or more and two participants or more who rated it; and ratings that differ from what
    the fixed effects say.
    """
    _refuse_unless_estimable(ratings)
    problem = RemlCriterion(ratings)
    fixed = _not_told_apart(problem)
    theta, at_zero = _minimise(problem, fixed)
    evaluation = problem.evaluate(theta)
    sigma = float(np.sqrt(evaluation.residual_sum / evaluation.degrees))
    variance, gradient = evaluation.difference_variance(sigma)
    modified, clean = evaluation.coefficients
    free = [index for index in range(5) if index not in at_zero]
    degrees_of_freedom, is_flat = _satterthwaite(problem, theta, sigma, free, variance, gradient)
    if degrees_of_freedom < LEAST_DEGREES:
        raise NotEstimable("the ratings do not tell how uncertain the difference is: there are too few of them")
    boundary = [PARAMETER_NAMES[index] for index in sorted(at_zero)]
    if is_flat:
        boundary.append("some variances could not be told apart")
    return MixedModel(
        reml_criterion=float(evaluation.criterion),
        intercept_modified=problem.centre + float(modified),
        difference=float(clean - modified),
        standard_error=float(np.sqrt(variance)),
        degrees_of_freedom=degrees_of_freedom,
        variance_components=_variance_components(theta, sigma),
        boundary=tuple(boundary),
        theta=tuple(float(value) for value in theta),
        evaluations=problem.evaluations,
    )


def _refuse_unless_estimable(ratings: Ratings) -> None:
    for kind, of_kind in (("modified", ratings.is_modified), ("clean", ~ratings.is_modified)):
        # How participants differ on a kind that one of them rated is unknown, and with it how uncertain the mean is.
        participants = np.unique(ratings.participants[of_kind]).size
        if participants < 2:
            raise NotEstimable(f"two participants or more must have rated {kind} images; {participants} did")
        images = np.unique(ratings.images[of_kind]).size
        if images < 2:
            raise NotEstimable(f"two {kind} images or more are needed; there are {images}")
    if all(np.ptp(ratings.values[of_kind]) == 0 for of_kind in (ratings.is_modified, ~ratings.is_modified)):
        raise NotEstimable("all ratings of a kind are equal: there is no variance to estimate")


def _not_told_apart(problem: RemlCriterion) -> set[int]:
    """Image variances to hold at zero: where no image is rated twice, they cannot be told from the residual.

    Of two such kinds the one with the smaller spread is held: the other's variance is what it has more.
    """
    if problem.modified.has_repeated_images or problem.clean.has_repeated_images:
        return set()
    spread = [kind.image_sums.var() for kind in (problem.modified, problem.clean)]
    return {IMAGE_MODIFIED if spread[0] <= spread[1] else IMAGE_CLEAN}


def _minimise(problem: RemlCriterion, fixed: set[int]) -> tuple[Vector, set[int]]:
    """The theta of the smallest criterion, and which of its entries are zero because the data want no more."""
    best: tuple[float, Vector, set[int]] | None = None
    for start in STARTS:
        theta = _descend(problem, np.array(start), fixed)
        theta, at_zero, criterion = _settle_boundary(problem, theta, fixed)
        theta, at_zero, criterion = _leave_boundary(problem, theta, at_zero, criterion, fixed)
        if best is None or criterion < best[0]:
            best = criterion, theta, at_zero
        if not at_zero:
            break
    assert best is not None  # noqa: S101 - there is a start
    return best[1], best[2]


def _descend(problem: RemlCriterion, start: Vector, fixed: set[int]) -> Vector:
    """Minimise over the entries of theta that are not ``fixed`` at zero."""
    free = [index for index in range(5) if index not in fixed]
    theta = start.copy()
    theta[sorted(fixed)] = 0.0

    def criterion(values: Vector) -> tuple[float, Vector]:
        theta[free] = values
        evaluation = problem.evaluate(theta)
        return float(evaluation.criterion), evaluation.gradient[free]

    found = optimize.minimize(
        criterion,
        theta[free],
        jac=True,
        method="L-BFGS-B",
        bounds=[BOUNDS[index] for index in free],
        options={"ftol": 1e-13, "gtol": 1e-5, "maxiter": 200},
    )
    theta[free] = found.x
    return theta.copy()


def _settle_boundary(problem: RemlCriterion, theta: Vector, fixed: set[int]) -> tuple[Vector, set[int], float]:
    """Put standard deviations that are nearly zero to exactly zero where that is no worse, and descend once more."""
    zero = set(fixed)
    criterion = float(problem.evaluate(theta).criterion)
    for index in (L22, L11, IMAGE_MODIFIED, IMAGE_CLEAN):
        if index in zero or abs(theta[index]) >= NEARLY_ZERO:
            continue
        candidate = theta.copy()
        candidate[index] = 0.0
        held = zero | {index}
        if index == L11:
            # Without an effect on modified images there is no covariance: the length of (l21, l22) is all that counts.
            candidate[L22], candidate[L21] = np.hypot(theta[L21], theta[L22]), 0.0
            held = (held | {L21}) - {L22}
        candidate = _descend(problem, candidate, held)
        candidate_criterion = float(problem.evaluate(candidate).criterion)
        if candidate_criterion <= criterion + NOT_LOWER:
            theta, criterion, zero = candidate, candidate_criterion, held
    return theta, zero, criterion


def _leave_boundary(
    problem: RemlCriterion, theta: Vector, at_zero: set[int], criterion: float, fixed: set[int]
) -> tuple[Vector, set[int], float]:
    """Descend again from beside zeros that a descent ran into too early, as long as that leads lower."""
    while True:
        beside = []
        for index in sorted(at_zero - fixed - {L21}):
            # Without an effect on modified images the effects on the two kinds may be related in any way.
            for turn in (0.0, np.pi / 4, -np.pi / 4) if index == L11 else (0.0,):
                candidate = theta.copy()
                candidate[index] = BESIDE_ZERO
                if turn:
                    length = np.hypot(theta[L21], theta[L22])
                    candidate[L21], candidate[L22] = length * np.sin(turn), length * np.cos(turn)
                beside.append((float(problem.evaluate(candidate).criterion), candidate))
        lowest, start = min(beside, key=lambda one: one[0], default=(np.inf, theta))
        if lowest > criterion - NOT_LOWER:
            return theta, at_zero, criterion
        found = _settle_boundary(problem, _descend(problem, start, fixed), fixed)
        if found[2] > criterion - NOT_LOWER:
            return theta, at_zero, criterion
        theta, at_zero, criterion = found


def _satterthwaite(
    problem: RemlCriterion, theta: Vector, sigma: float, free: list[int], variance: float, gradient: Vector
) -> tuple[float, bool]:
    """Degrees of freedom of the difference; and whether the deviance is flat in some direction, which is left out."""
    indices = [*free, 5]
    # In units of the residual standard deviation, as theta is: what is flat must not depend on the scale's points.
    units = np.append(np.ones(len(free)), sigma)
    hessian = np.empty((len(indices), len(indices)))
    for row, index in enumerate(indices):
        if index == 5:
            step = STEP * sigma
            above = problem.evaluate(theta).deviance_gradient(sigma + step)
            below = problem.evaluate(theta).deviance_gradient(sigma - step)
        else:
            step = STEP
            shift = np.zeros(5)
            shift[index] = step
            above = problem.evaluate(theta + shift).deviance_gradient(sigma)
            below = problem.evaluate(theta - shift).deviance_gradient(sigma)
        hessian[row] = (above - below)[indices] / (2 * step)
    hessian *= np.outer(units, units)
    curvatures, directions = np.linalg.eigh((hessian + hessian.T) / 2)
    is_determined = curvatures > FLAT * curvatures.max()
    along = directions[:, is_determined].T @ (units * gradient[indices]) / variance
    spread = float((along**2 * 2 / curvatures[is_determined]).sum())
    return 2 / spread, not bool(is_determined.all())


def _variance_components(theta: Vector, sigma: float) -> VarianceComponents:
    """From (modified, clean) coordinates to (intercept, slope), and to squared points of the scale."""
    l11, l21, l22 = theta[:3]
    slope = np.array([l21 - l11, l22])
    return VarianceComponents(
        participant_intercept=float(sigma**2 * l11**2),
        participant_slope=float(sigma**2 * (slope @ slope)),
        participant_covariance=float(sigma**2 * l11 * slope[0]),
        image_modified=float(sigma**2 * theta[IMAGE_MODIFIED] ** 2),
        image_clean=float(sigma**2 * theta[IMAGE_CLEAN] ** 2),
        residual=float(sigma**2),
    )
