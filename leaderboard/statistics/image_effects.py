"""Which images stand out: predicted effects of single images in the mixed model, with their uncertainty."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from leaderboard.statistics.mixed_model import MixedModel
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.reml import IMAGE_CLEAN, IMAGE_MODIFIED, KindProducts, Matrix, RemlCriterion, Vector


@dataclass(frozen=True)
class ImageEffects:
    """Best linear unbiased predictions of v, in points of the scale; every array has shape (images,).

    ``images`` are the codes of ``Ratings.images``. ``mean`` is the kind's mean plus the effect: what an average
    participant would answer. ``standard_error`` is that of prediction, the square root of Var(predicted - true effect),
    as lme4's conditional standard deviation widened by the uncertainty of the fixed effects.
    """

    images: NDArray[np.intp]
    is_modified: NDArray[np.bool_]
    ratings: NDArray[np.intp]
    effect: Vector
    mean: Vector
    standard_error: Vector


def predict_image_effects(ratings: Ratings, model: MixedModel) -> ImageEffects:
    """Predict the effects of all images from the ratings that the model was fitted to."""
    criterion = RemlCriterion(ratings)
    theta = np.array(model.theta)
    evaluation = criterion.evaluate(theta)
    modified, clean, factor = criterion.factor(theta)
    size = ratings.participant_count
    scale = np.kron(np.array([[theta[0], 0.0], [theta[1], theta[2]]]), np.eye(size))  # (2P, 2P): effects from u
    fixed = np.zeros((2 * size, 2))
    fixed[:size, 0] = modified.products.sum(axis=1)
    fixed[size:, 1] = clean.products.sum(axis=1)
    pull = np.append(modified.sums, clean.sums) - fixed @ evaluation.coefficients
    # M^-1 Lambda'. Below the diagonal the factor is not filled: whatever is there is not read, and must not be checked.
    solve = linalg.cho_solve((factor, False), scale.T, check_finite=False)
    participants = scale @ (solve @ pull)
    # Joint posterior covariance, relative to the residual variance, of participants' effects plus fixed effects.
    within = scale @ solve
    design = np.kron(np.eye(2), np.ones((size, 1)))  # each participant's effect is met together with the kind's mean
    response = design - within @ fixed
    joint = within + response @ evaluation.covariance @ response.T
    parts = [
        _of_kind(kind, theta[index], participants[part] + coefficient, joint[part, part], model)
        for kind, index, part, coefficient in (
            (criterion.modified, IMAGE_MODIFIED, slice(0, size), evaluation.coefficients[0]),
            (criterion.clean, IMAGE_CLEAN, slice(size, 2 * size), evaluation.coefficients[1]),
        )
    ]
    effect, error = (np.concatenate(column) for column in zip(*parts, strict=True))
    is_modified = np.repeat([True, False], [criterion.modified.image_ids.size, criterion.clean.image_ids.size])
    intercepts = np.where(is_modified, model.intercept_modified, model.intercept_modified + model.difference)
    return ImageEffects(
        images=np.append(criterion.modified.image_ids, criterion.clean.image_ids),
        is_modified=is_modified,
        ratings=np.append(criterion.modified.rating_counts, criterion.clean.rating_counts).astype(np.intp),
        effect=effect,
        mean=intercepts + effect,
        standard_error=error,
    )


def _of_kind(
    kind: KindProducts, theta: float, expected: Vector, covariance: Matrix, model: MixedModel
) -> tuple[Vector, Vector]:
    """Effects and standard errors of one kind; ``expected`` (P,) is what each participant answers on average."""
    weight = theta**2 / (1 + theta**2 * kind.rating_counts)
    effect = weight * (kind.image_sums - kind.incidence @ expected)
    others = np.einsum("ij,ij->i", kind.incidence @ covariance, kind.incidence)
    relative = weight + weight**2 * others
    return effect, np.sqrt(model.variance_components.residual * relative)
