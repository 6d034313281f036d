"""Two one-sided tests, Holm's adjustment, and what ratings can support."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leaderboard.statistics.equivalence import Verdict, default_bound, holm, two_one_sided_tests


@pytest.mark.parametrize("name", ["aca", "cadv", "semanticadv"])
def test_published_values(shared_data, name):
    expected = json.loads((shared_data / "ratings" / "expected_lme4.json").read_text())[name]
    model, tested = expected["lmm"], expected["tost"]

    result = two_one_sided_tests(
        model["difference_real_minus_modified"], model["standard_error"], model["satterthwaite_df"], bound=0.2
    )

    assert result.bounds == tuple(tested["bounds"])
    assert result.t_lower == pytest.approx(tested["t_lower"], rel=1e-5)
    assert result.t_upper == pytest.approx(tested["t_upper"], rel=1e-5)
    assert result.p_lower == pytest.approx(tested["p_lower"], rel=1e-3)
    assert result.p_upper == pytest.approx(1.0)
    assert result.verdict == Verdict.PERCEPTIBLE


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (0.0, Verdict.IMPERCEPTIBLE),
        (3.0, Verdict.IMPERCEPTIBLE),
        (-3.0, Verdict.IMPERCEPTIBLE),
        (8.0, Verdict.INCONCLUSIVE),
        (12.0, Verdict.INCONCLUSIVE),
        (20.0, Verdict.PERCEPTIBLE),
        (-20.0, Verdict.PERCEPTIBLE),
    ],
)
def test_verdicts_with_a_standard_error_of_2_and_bounds_of_10(difference, verdict):
    assert two_one_sided_tests(difference, 2.0, 60, bound=10).verdict == verdict


@given(
    difference=st.floats(-50, 50),
    error=st.floats(0.1, 20),
    degrees=st.floats(1, 1000),
    alpha=st.floats(0.001, 0.2),
)
def test_the_supported_bound_is_where_the_verdict_turns(difference, error, degrees, alpha):
    bound = two_one_sided_tests(difference, error, degrees, bound=1, alpha=alpha).supported_bound

    above, below = (
        two_one_sided_tests(difference, error, degrees, bound=bound * factor, alpha=alpha).verdict
        for factor in (1 + 1e-6, 1 - 1e-6)
    )

    assert above == Verdict.IMPERCEPTIBLE
    assert below != Verdict.IMPERCEPTIBLE


@given(difference=st.floats(-50, 50), error=st.floats(0.1, 20), degrees=st.floats(1, 1000))
def test_turning_the_scale_round_turns_the_tests_round(difference, error, degrees):
    one, other = (two_one_sided_tests(sign * difference, error, degrees, bound=10) for sign in (1, -1))

    assert (one.verdict, one.p_lower, one.p_upper) == (
        other.verdict,
        pytest.approx(other.p_upper),
        pytest.approx(other.p_lower),
    )


def test_the_test_holds_its_level_at_the_bound():
    result = two_one_sided_tests(10.0, 2.0, 30, bound=10)

    assert result.p_upper == 0.5  # the estimate on the bound itself is no evidence
    assert stats.t.sf(result.t_lower, 30) == result.p_lower


@pytest.mark.parametrize("values", [(0, 1, 0.05), (1, 0, 0.05), (1, 1, 0.5), (-1, 1, 0.05)])
def test_senseless_arguments_are_refused(values):
    bound, error, alpha = values
    with pytest.raises(ValueError, match="must be positive"):
        two_one_sided_tests(0.0, error, 10, bound=bound, alpha=alpha)


def test_holm_against_a_worked_example():
    # Smallest times 4, next times 3, ...; never smaller than the one before, never above 1.
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_default_bounds_are_those_of_the_two_scales():
    assert default_bound(-2, 2) == pytest.approx(0.2)
    assert default_bound(-100, 100) == 10
