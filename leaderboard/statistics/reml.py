"""The REML criterion of the mixed model as a function of theta, with its gradient, for one set of ratings.

The criterion is that of Bates, Maechler, Bolker and Walker (2015, J. Stat. Softw. 67(1), section 3), a function of the
relative standard deviations theta, with the residual standard deviation and the fixed effects profiled out. What is
particular here is how it is computed:

- In the coordinates (effect on modified images, effect on clean images), of fixed and of participants' effects alike,
  a rating touches one coordinate only, so that the cross products of the two kinds do not mix.
- Images are eliminated first: theirs is a diagonal block. An image's weight in what remains depends only on its kind
  and on how often it was rated, so the participants' cross products are summed once per such group of images. One
  evaluation then costs two matrix sums and a Cholesky factor of twice the number of participants.
- The gradient comes from the same factor, by the rules for derivatives of log determinants and of Schur complements.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from leaderboard.statistics.ratings import Ratings

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Parameters, all relative to the residual standard deviation: Cholesky factor of the participants' covariance in
# (modified, clean) coordinates, then the images' standard deviations.
L11, L21, L22, IMAGE_MODIFIED, IMAGE_CLEAN = range(5)
# A residual sum of squares below this share of the total is none: there are as many effects as ratings, or
# the ratings have no spread beside the effects.
LEAST_RESIDUAL = 1e-9
# Above this many numbers the groups' cross products are not kept but summed anew each time (about 400 MB).
MOST_NUMBERS_KEPT = 50_000_000


class NotEstimable(ValueError):
    """The ratings do not determine the model; the message says what is missing."""


class KindProducts:
    """Cross products of one kind of image with participants and ratings, in groups of equally often rated images."""

    def __init__(self, ratings: Ratings, of_kind: NDArray[np.bool_], centre: float) -> None:
        values = ratings.values[of_kind] - centre
        participants = ratings.participants[of_kind]
        image_ids, images = np.unique(ratings.images[of_kind], return_inverse=True)
        participant_count = ratings.participant_count
        self.image_ids = image_ids
        self.rating_counts = np.bincount(images, minlength=image_ids.size).astype(float)
        self.image_sums = np.bincount(images, values, minlength=image_ids.size)
        self.participant_counts = np.bincount(participants, minlength=participant_count).astype(float)
        self.participant_sums = np.bincount(participants, values, minlength=participant_count)
        self.sum_of_squares = float(values @ values)
        # incidence[image, participant]: how often the participant rated the image, nearly always 0 or 1.
        self.incidence = np.zeros((image_ids.size, participant_count))
        np.add.at(self.incidence, (images, participants), 1.0)
        self.group_sizes, self.group_of_image = np.unique(self.rating_counts, return_inverse=True)
        self._images_of_group = [np.flatnonzero(self.group_of_image == group) for group in range(self.group_sizes.size)]
        self._are_kept = self.group_sizes.size * participant_count**2 <= MOST_NUMBERS_KEPT

    @property
    def has_repeated_images(self) -> bool:
        return bool((self.rating_counts > 1).any())

    @cached_property
    def _group_products(self) -> Matrix:
        return np.stack([self.incidence[images].T @ self.incidence[images] for images in self._images_of_group])

    def participants_by_participants(self, weight_of_group: Vector) -> Matrix:
        """Sum of weight * k k' over the images, k an image's row of the incidence matrix."""
        if self._are_kept:
            summed: Matrix = np.tensordot(weight_of_group, self._group_products, axes=1)
            return summed
        weighted: Matrix = self.incidence * weight_of_group[self.group_of_image][:, None]
        return self.incidence.T @ weighted

    def participants_by_ratings(self, weight_of_group: Vector) -> Vector:
        """Sum of weight * k s over the images, s the sum of an image's ratings."""
        return self.incidence.T @ (weight_of_group[self.group_of_image] * self.image_sums)

    def ratings_by_ratings(self, weight_of_group: Vector) -> float:
        """Sum of weight * s^2 over the images."""
        return float(weight_of_group[self.group_of_image] @ self.image_sums**2)


@dataclass(frozen=True)
class Eliminated:
    """What remains of one kind after its images: cross products among participants and ratings; and derivatives.

    ``products`` has shape (participants, participants), ``sums`` (participants,); ``d_...`` are minus the derivatives
    with respect to the squared relative standard deviation of the images.
    """

    products: Matrix
    sums: Vector
    squares: float
    d_products: Matrix
    d_sums: Vector
    d_squares: float
    log_determinant: float
    d_log_determinant: float


def _eliminate_images(kind: KindProducts, theta: float) -> Eliminated:
    variance = theta**2
    weight = variance / (1 + variance * kind.group_sizes)
    d_weight = 1 / (1 + variance * kind.group_sizes) ** 2
    return Eliminated(
        products=np.diag(kind.participant_counts) - kind.participants_by_participants(weight),
        sums=kind.participant_sums - kind.participants_by_ratings(weight),
        squares=kind.sum_of_squares - kind.ratings_by_ratings(weight),
        d_products=kind.participants_by_participants(d_weight),
        d_sums=kind.participants_by_ratings(d_weight),
        d_squares=kind.ratings_by_ratings(d_weight),
        log_determinant=float(np.log1p(variance * kind.rating_counts).sum()),
        d_log_determinant=float((kind.rating_counts / (1 + variance * kind.rating_counts)).sum()),
    )


@dataclass(frozen=True)
class Evaluation:
    """Everything the criterion is made of at one theta.

    ``schur`` (3, 3) is what remains of the cross products of (modified, clean, ratings) after images and participants;
    ``d_...`` are derivatives with respect to the five parameters.
    """

    log_determinant: float
    schur: Matrix
    d_log_determinant: Vector  # (5,)
    d_schur: Matrix  # (5, 3, 3)
    degrees: int  # ratings minus fixed effects

    @cached_property
    def covariance(self) -> Matrix:
        """Of the two fixed effects, relative to the residual variance; (2, 2)."""
        return np.asarray(np.linalg.inv(self.schur[:2, :2]), dtype=float)

    @cached_property
    def coefficients(self) -> Vector:
        """Means of modified and clean images, around the centre; (2,)."""
        return self.covariance @ self.schur[:2, 2]

    @cached_property
    def residual_sum(self) -> float:
        """Penalised residual sum of squares."""
        return float(self.schur[2, 2]) - _explained(self.schur)

    @cached_property
    def _d_residual_sum(self) -> Vector:
        contrast = np.append(-self.coefficients, 1.0)
        return np.einsum("i,kij,j->k", contrast, self.d_schur, contrast)

    @cached_property
    def _d_log_determinants(self) -> Vector:
        return self.d_log_determinant + np.einsum("ij,kji->k", self.covariance, self.d_schur[:, :2, :2])

    @cached_property
    def _log_determinants(self) -> float:
        return self.log_determinant + float(np.linalg.slogdet(self.schur[:2, :2])[1])

    @property
    def criterion(self) -> float:
        """The REML criterion, with the residual variance profiled out."""
        return self._log_determinants + self.degrees * (1 + np.log(2 * np.pi * self.residual_sum / self.degrees))

    @property
    def gradient(self) -> Vector:
        """Of the criterion; (5,)."""
        return self._d_log_determinants + self.degrees * self._d_residual_sum / self.residual_sum

    def deviance_gradient(self, sigma: float) -> Vector:
        """Of the REML deviance as a function of the five parameters and sigma; (6,)."""
        with_theta = self._d_log_determinants + self._d_residual_sum / sigma**2
        return np.append(with_theta, 2 * self.degrees / sigma - 2 * self.residual_sum / sigma**3)

    def difference_variance(self, sigma: float) -> tuple[float, Vector]:
        """Variance of (clean minus modified), and its gradient in (theta, sigma); shapes () and (6,)."""
        direction = self.covariance @ np.array([-1.0, 1.0])
        relative = float(direction[1] - direction[0])
        with_theta = -(sigma**2) * np.einsum("i,kij,j->k", direction, self.d_schur[:, :2, :2], direction)
        return sigma**2 * relative, np.append(with_theta, 2 * sigma * relative)


class RemlCriterion:
    """The criterion of one set of ratings as a function of theta."""

    def __init__(self, ratings: Ratings) -> None:
        # Around the middle the sums of squares lose no digits, whatever the scale's position.
        self.centre = float(ratings.values.mean())
        self.modified = KindProducts(ratings, ratings.is_modified, self.centre)
        self.clean = KindProducts(ratings, ~ratings.is_modified, self.centre)
        self.total_sum_of_squares = self.modified.sum_of_squares + self.clean.sum_of_squares
        self.degrees = ratings.values.size - 2
        self.evaluations = 0

    def factor(self, theta: Vector) -> tuple[Eliminated, Eliminated, Matrix]:
        """Both kinds without their images, and the upper Cholesky factor of the participants' system (2P, 2P)."""
        modified = _eliminate_images(self.modified, theta[IMAGE_MODIFIED])
        clean = _eliminate_images(self.clean, theta[IMAGE_CLEAN])
        l11, l21, l22 = theta[:3]
        size = modified.sums.size
        system = np.empty((2 * size, 2 * size), order="F")
        system[:size, :size] = l11**2 * modified.products + l21**2 * clean.products
        system[:size, size:] = l21 * l22 * clean.products
        system[size:, size:] = l22**2 * clean.products
        system.flat[:: 2 * size + 1] += 1.0
        factor, failed = linalg.lapack.dpotrf(system, lower=0, clean=0, overwrite_a=1)
        if failed:
            raise NotEstimable("the participants' system is not positive definite")
        return modified, clean, factor

    def evaluate(self, theta: Vector) -> Evaluation:
        self.evaluations += 1
        l11, l21, l22 = theta[:3]
        modified, clean, factor = self.factor(theta)
        size = modified.sums.size
        log_determinant = modified.log_determinant + clean.log_determinant + 2 * np.log(np.diag(factor)).sum()

        from_modified, from_clean = _columns(modified, 0), _columns(clean, 1)  # (P, 3)
        right_side = np.vstack([l11 * from_modified + l21 * from_clean, l22 * from_clean])
        solved, _ = linalg.lapack.dpotrs(factor, right_side, lower=0)
        upper, lower = solved[:size], solved[size:]
        schur = _corner(modified, 0) + _corner(clean, 1) - right_side.T @ solved
        if schur[2, 2] - _explained(schur) < LEAST_RESIDUAL * self.total_sum_of_squares:
            raise NotEstimable("the model fits the ratings exactly and leaves no spread to judge by")

        inverse, _ = linalg.lapack.dpotri(factor, lower=0)  # its upper triangle only
        n11, n12, n22 = inverse[:size, :size], inverse[:size, size:], inverse[size:, size:]
        clean_11, clean_12, clean_22 = (
            _symmetric_trace(n11, clean.products),
            float(np.vdot(n12, clean.products)),
            _symmetric_trace(n22, clean.products),
        )
        d_log = np.array(
            [
                2 * l11 * _symmetric_trace(n11, modified.products),
                2 * l21 * clean_11 + 2 * l22 * clean_12,
                2 * l21 * clean_12 + 2 * l22 * clean_22,
                modified.d_log_determinant - l11**2 * _symmetric_trace(n11, modified.d_products),
                clean.d_log_determinant
                - l21**2 * _symmetric_trace(n11, clean.d_products)
                - 2 * l21 * l22 * float(np.vdot(n12, clean.d_products))
                - l22**2 * _symmetric_trace(n22, clean.d_products),
            ]
        )

        effect_modified, effect_clean = l11 * upper, l21 * upper + l22 * lower  # (P, 3)
        pull_modified = from_modified - modified.products @ effect_modified
        pull_clean = from_clean - clean.products @ effect_clean
        d_schur = np.stack(
            [
                -_both_ways(upper, pull_modified),
                -_both_ways(upper, pull_clean),
                -_both_ways(lower, pull_clean),
                _image_derivative(modified, 0, effect_modified),
                _image_derivative(clean, 1, effect_clean),
            ]
        )
        # Derivatives with respect to variances become those with respect to standard deviations.
        chain = np.array([1, 1, 1, 2 * theta[IMAGE_MODIFIED], 2 * theta[IMAGE_CLEAN]])
        return Evaluation(log_determinant, schur, chain * d_log, chain[:, None, None] * d_schur, self.degrees)


def _explained(schur: Matrix) -> float:
    """The sum of squares that the fixed effects take."""
    return float(schur[:2, 2] @ np.linalg.solve(schur[:2, :2], schur[:2, 2]))


def _columns(kind: Eliminated, column: int) -> Matrix:
    """Cross products of participants with (modified, clean, ratings), of one kind: (P, 3)."""
    columns = np.zeros((kind.sums.size, 3))
    columns[:, column] = kind.products.sum(axis=1)
    columns[:, 2] = kind.sums
    return columns


def _corner(kind: Eliminated, column: int) -> Matrix:
    """Cross products of (modified, clean, ratings) among each other, of one kind: (3, 3)."""
    corner = np.zeros((3, 3))
    corner[column, column] = kind.products.sum()
    corner[column, 2] = corner[2, column] = kind.sums.sum()
    corner[2, 2] = kind.squares
    return corner


def _image_derivative(kind: Eliminated, column: int, effect: Matrix) -> Matrix:
    """Derivative of the Schur complement with respect to the images' variance: (3, 3), negative semi-definite."""
    columns = np.zeros((kind.sums.size, 3))
    columns[:, column] = kind.d_products.sum(axis=1)
    columns[:, 2] = kind.d_sums
    corner = np.zeros((3, 3))
    corner[column, column] = kind.d_products.sum()
    corner[column, 2] = corner[2, column] = kind.d_sums.sum()
    corner[2, 2] = kind.d_squares
    return -corner + _both_ways(columns, effect) - effect.T @ kind.d_products @ effect


def _both_ways(left: Matrix, right: Matrix) -> Matrix:
    product = left.T @ right
    return product + product.T


def _symmetric_trace(upper_triangle: Matrix, symmetric: Matrix) -> float:
    """Trace of the product of two symmetric matrices, of the first of which only the upper triangle is filled."""
    product = np.triu(upper_triangle) * symmetric
    return float(2 * product.sum() - np.diag(product).sum())
