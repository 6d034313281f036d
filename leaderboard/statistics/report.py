"""An analysis as JSON and as a results paragraph."""

from collections.abc import Sequence
from typing import Any

from leaderboard.statistics.analysis import Analysis, Comparison, Place
from leaderboard.statistics.equivalence import Equivalence
from leaderboard.statistics.mixed_model import MixedModel
from leaderboard.statistics.reliability import Reliability
from leaderboard.statistics.robustness import MeanDifference, Robustness


def as_json(analysis: Analysis, place: Place | None = None) -> dict[str, Any]:
    """The analysis as nested dictionaries; all in the scale's own points and direction; null is "not determined"."""
    described, detection = analysis.descriptives, analysis.detection
    result: dict[str, Any] = {
        "ratings": described.ratings,
        "participants": described.participants,
        "images": described.modified.images + described.clean.images,
        "repeated_answers": analysis.repeated_answers,
        "mean_modified": described.modified.mean,
        "sd_modified": described.modified.sd,
        "mean_clean": described.clean.mean,
        "sd_clean": described.clean.sd,
        "mixed_model": _mixed_model(analysis.mixed_model),
        "not_estimable": analysis.not_estimable or None,
        "equivalence": _equivalence(analysis.equivalence),
        "auc": {"estimate": detection.auc, "ci95": _pair(analysis.auc_interval)},
        "detection": {
            "accuracy_modified": detection.accuracy_modified,
            "accuracy_clean": detection.accuracy_clean,
            "mean_confidence": detection.mean_confidence,
            "d_prime": detection.d_prime,
            "criterion": detection.criterion,
        },
        "reliability": {
            "all_images": _reliability(analysis.reliability),
            "modified_images": _reliability(analysis.reliability_modified),
            "clean_images": _reliability(analysis.reliability_clean),
        },
        "robustness": _robustness(analysis.robustness, analysis.bootstrap_interval),
        "couples": _mean_difference(analysis.couples),
    }
    if place is not None:
        result["place"] = {
            "holm_p_value": place.holm_p_value,
            "rank": place.rank,
            "rank_interval90": _pair(place.rank_interval),
            "rank_probabilities": list(place.probabilities),
        }
    return result


def as_text(analysis: Analysis, place: Place | None = None) -> str:
    """The analysis as a results section would tell it."""
    described, detection, model = analysis.descriptives, analysis.detection, analysis.mixed_model
    sentences = [
        f"{_count(described.participants, 'participant')} gave {_count(described.ratings, 'rating')}"
        + (f" ({analysis.repeated_answers} of them repeated)" if analysis.repeated_answers else "")
        + f" of {described.modified.images} modified and {_count(described.clean.images, 'clean image')}, on a scale "
        f"from {analysis.scale.minimum:.12g} to {analysis.scale.maximum:.12g} whose high end means "
        + ("modified." if analysis.scale.high_means_modified else "clean."),
        f"Modified images were rated {_mean(described.modified.mean, described.modified.sd)}, clean images "
        f"{_mean(described.clean.mean, described.clean.sd)}.",
    ]
    if detection.auc is not None:
        interval = _interval("95 %", analysis.auc_interval)
        sentences.append(f"Telling them apart had an AUC of {detection.auc:.3f}{interval}.")
    if model is None:
        sentences.append(f"The mixed model could not be fitted: {analysis.not_estimable}.")
    else:
        sentences += _model_sentences(analysis, model)
    if analysis.bootstrap_interval:
        level = f"{100 * (1 - 2 * (analysis.equivalence.alpha if analysis.equivalence else 0.05)):g} %"
        sentences.append(f"Drawing participants anew gives{_interval(level, analysis.bootstrap_interval)[1:]}.")
    sentences += analysis.robustness.disagreements or (
        ["Participants' mean differences and the order of the answers say the same."] if model else []
    )
    if couples := analysis.couples:
        sentences.append(
            f"Beside the images modified from them, {couples.count} clean images were rated "
            f"{couples.difference:+.3f} points from them (SE {couples.standard_error:.3f}): "
            f"{couples.equivalence.verdict}."
        )
    reliability = analysis.reliability
    if reliability.icc_single is not None and reliability.krippendorff_alpha is not None:
        sentences.append(
            f"One participant's ratings had a reliability of ICC(2,1) = {reliability.icc_single:.2f}; Krippendorff's "
            f"alpha was {reliability.krippendorff_alpha:.2f}."
        )
    if place is not None and place.rank is not None and place.rank_interval is not None:
        low, high = place.rank_interval
        between = f"rank {low}" if low == high else f"a rank from {low} to {high}"
        sentences.append(
            f"Among these files it has rank {place.rank} (with 90 % probability {between}); Holm-adjusted "
            f"p {_p_value(place.holm_p_value)}."
        )
    return " ".join(sentences)


def comparison_as_json(comparison: Comparison, names: Sequence[str]) -> dict[str, Any]:
    """A comparison of two of the analyses called ``names``, in the scale's own points and direction."""
    result = comparison.result
    return {
        "first": names[comparison.first],
        "second": names[comparison.second],
        "difference_first_minus_second": result.difference,
        "standard_error": result.standard_error,
        "df": result.degrees_of_freedom,
        "ci95": list(result.interval),
        "p_value": result.p_value,
        "holm_p_value": comparison.holm_p_value,
    }


def comparison_as_text(comparison: Comparison, names: Sequence[str]) -> str:
    """The same as a sentence."""
    result = comparison.result
    return (
        f"{names[comparison.first]} against {names[comparison.second]}: their differences of clean and modified images "
        f"differ by {result.difference:+.3f} points{_interval('95 %', result.interval)}, p {_p_value(result.p_value)}, "
        f"Holm-adjusted p {_p_value(comparison.holm_p_value)}."
    )


def _model_sentences(analysis: Analysis, model: MixedModel) -> list[str]:
    sentences = [
        f"In the mixed model clean images were rated {model.difference:+.3f} points from modified ones "
        f"(SE {model.standard_error:.3f}, {model.degrees_of_freedom:.1f} degrees of freedom"
        f"{_interval('90 %', model.interval(0.90)).replace(' (', ', ').rstrip(')')})."
    ]
    if model.boundary:
        sentences.append(f"The fit lies on a boundary: {'; '.join(model.boundary)} at zero or not told apart.")
    if equivalence := analysis.equivalence:
        sentences.append(
            f"Against equivalence bounds of {equivalence.bounds[0]:g} and {equivalence.bounds[1]:g} points the two "
            f"one-sided tests give p {_p_value(equivalence.p_lower)} and p {_p_value(equivalence.p_upper)}: "
            f"{equivalence.verdict}. The smallest bound these ratings could support is "
            f"{equivalence.supported_bound:.3f} points."
        )
    return sentences


def _mixed_model(model: MixedModel | None) -> dict[str, Any] | None:
    if model is None:
        return None
    components = model.variance_components
    return {
        "reml_criterion": model.reml_criterion,
        "intercept_modified": model.intercept_modified,
        "difference_clean_minus_modified": model.difference,
        "standard_error": model.standard_error,
        "satterthwaite_df": model.degrees_of_freedom,
        "ci90": list(model.interval(0.90)),
        "ci95": list(model.interval(0.95)),
        "boundary": bool(model.boundary),
        "boundary_parameters": list(model.boundary),
        "variance_components": {
            "participant_intercept": components.participant_intercept,
            "participant_slope": components.participant_slope,
            "participant_covariance": components.participant_covariance,
            "image_modified": components.image_modified,
            "image_clean": components.image_clean,
            "residual": components.residual,
        },
    }


def _equivalence(equivalence: Equivalence | None) -> dict[str, Any] | None:
    if equivalence is None:
        return None
    return {
        "bounds": list(equivalence.bounds),
        "alpha": equivalence.alpha,
        "t_lower": equivalence.t_lower,
        "t_upper": equivalence.t_upper,
        "p_lower": equivalence.p_lower,
        "p_upper": equivalence.p_upper,
        "verdict": equivalence.verdict.value,
        "supported_bound": equivalence.supported_bound,
    }


def _robustness(robustness: Robustness, bootstrap: tuple[float, float] | None) -> dict[str, Any]:
    ordinal = robustness.ordinal
    return {
        "participant_means": _mean_difference(robustness.participant_means),
        "ordinal": ordinal
        and {
            "participants": ordinal.participants,
            "probability_clean_rated_higher": ordinal.probability,
            "ci95": list(ordinal.interval),
            "p_value": ordinal.p_value,
        },
        "bootstrap_interval": _pair(bootstrap),
        "disagreements": list(robustness.disagreements),
    }


def _mean_difference(means: MeanDifference | None) -> dict[str, Any] | None:
    if means is None:
        return None
    return {
        "count": means.count,
        "difference_clean_minus_modified": means.difference,
        "standard_error": means.standard_error,
        "df": means.degrees_of_freedom,
        "equivalence": _equivalence(means.equivalence),
    }


def _reliability(reliability: Reliability) -> dict[str, float | None]:
    return {
        "icc_2_1": reliability.icc_single,
        "icc_2_k": reliability.icc_mean,
        "raters_per_image": reliability.raters_per_image,
        "krippendorff_alpha": reliability.krippendorff_alpha,
        "split_half": reliability.split_half,
    }


def _pair(interval: tuple[float, float] | tuple[int, int] | None) -> list[float] | None:
    return list(interval) if interval else None


def _count(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "s")


def _mean(mean: float | None, sd: float | None) -> str:
    if mean is None:
        return "by nobody"
    return f"{mean:.2f} on average" + (f" (SD {sd:.2f})" if sd is not None else "")


def _interval(level: str, interval: tuple[float, float] | None) -> str:
    return f" ({level} interval {interval[0]:.3f} to {interval[1]:.3f})" if interval else ""


def _p_value(p_value: float | None) -> str:
    if p_value is None:
        return "unknown"
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"
