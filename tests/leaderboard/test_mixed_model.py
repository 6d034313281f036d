"""The mixed model against lme4's published values, and against the textbook's dense matrices."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from leaderboard.statistics.image_effects import predict_image_effects
from leaderboard.statistics.mixed_model import NotEstimable, VarianceComponents, _descend, fit_mixed_model
from leaderboard.statistics.planning import Design, simulate_ratings
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.reml import RemlCriterion
from tests.leaderboard.published_ratings import published, simulated


@pytest.mark.parametrize("name", ["aca", "cadv", "semanticadv"])
def test_published_sets_come_out_as_with_lme4(shared_data, name):
    expected = json.loads((shared_data / "ratings" / "expected_lme4.json").read_text())[name]["lmm"]

    fit = fit_mixed_model(published(shared_data, name))

    assert fit.reml_criterion == pytest.approx(expected["reml_criterion"], abs=1e-4)
    assert fit.intercept_modified == pytest.approx(expected["intercept_modified"], rel=1e-4)
    assert fit.difference == pytest.approx(expected["difference_real_minus_modified"], rel=1e-4)
    assert fit.standard_error == pytest.approx(expected["standard_error"], rel=1e-4)
    assert fit.degrees_of_freedom == pytest.approx(expected["satterthwaite_df"], rel=1e-2)
    assert fit.interval(0.90) == pytest.approx(expected["ci90"], abs=1e-4)
    assert fit.boundary == ()


class Dense:
    """The same model by the definition: V as an n x n matrix."""

    def __init__(self, ratings: Ratings) -> None:
        size = ratings.values.size
        clean = (~ratings.is_modified).astype(float)
        self.values = ratings.values
        self.fixed = np.column_stack([np.ones(size), clean])
        self.of_participant = np.eye(ratings.participant_count)[ratings.participants]
        self.of_image = np.eye(ratings.image_count)[ratings.images]
        self.clean = clean
        self.image_is_modified = np.array(
            [ratings.is_modified[ratings.images == image][0] for image in range(ratings.image_count)]
        )

    def covariance(self, theta, sigma):
        """V, and the variances of the image effects; theta in (modified, clean) coordinates."""
        l11, l21, l22, modified, clean = theta
        effects = np.column_stack([1 - self.clean, self.clean]) @ np.array([[l11, 0], [l21, l22]])
        participants = (effects @ effects.T) * (self.of_participant @ self.of_participant.T)
        images = np.where(self.image_is_modified, modified, clean) ** 2
        v = participants + self.of_image @ np.diag(images) @ self.of_image.T + np.eye(self.values.size)
        return sigma**2 * v, sigma**2 * images

    def deviance(self, theta, sigma):
        v, _ = self.covariance(theta, sigma)
        inverse = np.linalg.inv(v)
        information = self.fixed.T @ inverse @ self.fixed
        coefficients = np.linalg.solve(information, self.fixed.T @ inverse @ self.values)
        rest = self.values - self.fixed @ coefficients
        degrees = self.values.size - 2
        return (
            degrees * np.log(2 * np.pi)
            + np.linalg.slogdet(v)[1]
            + np.linalg.slogdet(information)[1]
            + rest @ inverse @ rest
        )


@pytest.fixture(scope="module")
def small():
    return simulated(participants=12, images_per_kind=15, rated_per_kind=8, seed=3)


class TestAgainstDenseMatrices:
    THETA = np.array([0.7, 0.2, 0.4, 0.5, 0.3])

    def test_criterion(self, small):
        dense = Dense(small)
        profiled = optimize.minimize_scalar(lambda sigma: dense.deviance(self.THETA, sigma), bounds=(5, 100))

        assert RemlCriterion(small).evaluate(self.THETA).criterion == pytest.approx(profiled.fun, abs=1e-6)

    def test_gradients(self, small):
        criterion = RemlCriterion(small)
        evaluation = criterion.evaluate(self.THETA)
        numeric = [
            (criterion.evaluate(self.THETA + step).criterion - criterion.evaluate(self.THETA - step).criterion) / 2e-5
            for step in np.eye(5) * 1e-5
        ]
        dense, sigma, eps = Dense(small), 20.0, 1e-4
        with_sigma = (dense.deviance(self.THETA, sigma + eps) - dense.deviance(self.THETA, sigma - eps)) / (2 * eps)

        assert evaluation.gradient == pytest.approx(numeric, rel=1e-5, abs=1e-4)
        assert evaluation.deviance_gradient(sigma)[5] == pytest.approx(with_sigma, rel=1e-5)

    def test_variance_of_the_difference_and_its_gradient(self, small):
        criterion, sigma = RemlCriterion(small), 20.0
        variance, gradient = criterion.evaluate(self.THETA).difference_variance(sigma)
        v, _ = Dense(small).covariance(self.THETA, sigma)
        fixed = Dense(small).fixed
        numeric = [
            (
                criterion.evaluate(self.THETA + step).difference_variance(sigma)[0]
                - criterion.evaluate(self.THETA - step).difference_variance(sigma)[0]
            )
            / 2e-5
            for step in np.eye(5) * 1e-5
        ]

        assert variance == pytest.approx(np.linalg.inv(fixed.T @ np.linalg.inv(v) @ fixed)[1, 1])
        assert gradient[:5] == pytest.approx(numeric, rel=1e-5, abs=1e-6)

    def test_image_effects(self, small):
        model = fit_mixed_model(small)
        dense = Dense(small)
        v, image_variances = dense.covariance(np.array(model.theta), np.sqrt(model.variance_components.residual))
        inverse = np.linalg.inv(v)
        covariance = np.linalg.inv(dense.fixed.T @ inverse @ dense.fixed)
        projection = inverse - inverse @ dense.fixed @ covariance @ dense.fixed.T @ inverse
        with_values = np.diag(image_variances) @ dense.of_image.T
        effects = with_values @ projection @ small.values
        errors = np.sqrt(image_variances - np.diag(with_values @ projection @ with_values.T))

        predicted = predict_image_effects(small, model)

        order = np.argsort(predicted.images)
        assert predicted.effect[order] == pytest.approx(effects, abs=1e-6)
        assert predicted.standard_error[order] == pytest.approx(errors, abs=1e-6)
        assert predicted.ratings.sum() == small.values.size


@pytest.mark.parametrize("unit", [1e-9, 1e6])
def test_the_unit_of_the_scale_does_not_matter(small, unit):
    one = fit_mixed_model(small)
    other = fit_mixed_model(replace(small, values=unit * small.values))

    assert other.degrees_of_freedom == pytest.approx(one.degrees_of_freedom, rel=1e-4)
    assert other.standard_error == pytest.approx(unit * one.standard_error, rel=1e-4)
    assert other.boundary == one.boundary


def test_image_effects_do_not_read_what_was_never_written(small, monkeypatch):
    model = fit_mixed_model(small)
    expected = predict_image_effects(small, model)
    empty = np.empty

    def never_written(*arguments, **options):
        array = empty(*arguments, **options)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", never_written)

    predicted = predict_image_effects(small, model)

    assert predicted.standard_error == pytest.approx(expected.standard_error)


class TestBoundary:
    def test_a_variance_of_zero_is_recognised(self):
        ratings = simulated(participants=30, images_per_kind=10, rated_per_kind=10, seed=1, image_sd=(0.0, 8.0))

        fit = fit_mixed_model(ratings)

        assert fit.boundary == ("modified images",)
        assert fit.variance_components.image_modified == 0
        assert fit.variance_components.image_clean > 0

    def test_no_other_start_leads_lower(self):
        rng = np.random.default_rng(2)
        components = VarianceComponents(300.0, 1200.0, -600.0, 3.0, 3.0, 600.0)
        for _ in range(12):
            ratings = simulate_ratings(Design(15, 6, 20), components, 0.0, rng)
            criterion = RemlCriterion(ratings)
            others = [_descend(criterion, np.array([0.5, sign * 0.5, 0.5, 0.3, 0.3]), set()) for sign in (-1, 0, 1)]
            lowest = min(criterion.evaluate(theta).criterion for theta in others)

            assert fit_mixed_model(ratings).reml_criterion <= lowest + 1e-5

    def test_kept_and_recomputed_cross_products_agree(self, small, monkeypatch):
        kept = fit_mixed_model(small)
        monkeypatch.setattr("leaderboard.statistics.reml.MOST_NUMBERS_KEPT", 0)

        assert fit_mixed_model(small).reml_criterion == pytest.approx(kept.reml_criterion, abs=1e-9)


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        (([1, 2, 3, 4], [True, True, False, False], [1, 1, 1, 1], [1, 2, 3, 4]), "two participants"),
        (([1, 2, 3, 4], [True, True, True, True], [1, 1, 2, 2], [1, 2, 3, 4]), "have rated clean images; 0 did"),
        (([1, 2, 3, 4], [True, False, True, False], [1, 1, 2, 2], [1, 1, 1, 1]), "two modified images"),
        # Participant 1 alone saw modified images: how participants differ there is unknown.
        (
            ([1, 5, 2, 4, 3, 1], [True, True, False, False, False, False], [1, 1, 1, 1, 2, 2], [1, 2, 3, 4, 3, 4]),
            "two participants or more must have rated modified images; 1 did",
        ),
        # Seven ratings by six people: nearly all spread is theirs, and nothing tells how much.
        (
            (
                [-1, 2, 2, 1, -1, -1, 1],
                [False, False, True, True, True, False, False],
                [1, 6, 0, 5, 8, 8, 7],
                [0, 3, 1, 0, 3, 2, 1],
            ),
            "do not tell how uncertain the difference is",
        ),
        (([5, 5, 5, 5], [True, True, False, False], [1, 2, 1, 2], [1, 2, 3, 4]), "all ratings of a kind are equal"),
        (([1, 2, 3, 5], [True, True, False, False], [1, 2, 1, 2], [1, 2, 3, 4]), "fits the ratings exactly"),
    ],
)
def test_what_cannot_be_estimated_is_said(columns, missing):
    with pytest.raises(NotEstimable, match=missing):
        fit_mixed_model(Ratings.from_columns(*columns))
