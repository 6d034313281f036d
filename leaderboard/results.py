"""From the ratings of one pair to the values of its entry: the one way, for drafts, external results and verification.

Pure. All values are in points of the scale, "higher = more modified"; a difference is modified minus clean. (The model
in ``statistics`` is written clean minus modified, as its papers are; the sign is turned here and nowhere else.) What is
not determined is None, never NaN or infinite.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import stats

from leaderboard.inputs import InputRating, Inputs
from leaderboard.statistics.analysis import Analysis, RatingScale, analyse
from leaderboard.statistics.detection import auc_interval
from leaderboard.statistics.image_effects import ImageEffects, predict_image_effects
from leaderboard.statistics.mixed_model import MixedModel
from leaderboard.statistics.ratings import Ratings
from leaderboard.statistics.reliability import Reliability
from leaderboard.statistics.robustness import MeanDifference

# Draws of participants for the interval of the AUC. Its ends are then known to about 0.03 of the interval's width.
AUC_REPEATS = 1000
# Of each kind, so many images from either end of the order are kept in an entry's details.
IMAGES_KEPT = 60
# Below this, agreement on the images' means counts as poor (Koo and Li 2016, J. Chiropr. Med. 15, 155-163).
LOW_RELIABILITY = 0.5


@dataclass(frozen=True)
class Rules:
    """What a result depends on besides the ratings."""

    scale_minimum: int
    scale_maximum: int
    equivalence_bound: float
    alpha: float
    minimum_participants: int

    @classmethod
    def of(cls, rules: Mapping[str, Any]) -> "Rules":
        """From the rules of a board or snapshot, which say more."""
        return cls(**{name: rules[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Result:
    """``values`` by the names of Entry's fields; ``details`` can be written as JSON."""

    values: dict[str, Any]
    details: dict[str, Any]


def compute(inputs: Inputs, rules: Rules, *, seed: int = 0) -> Result:
    """The result of n >= 1 ratings. The same ratings, rules, seed and ``code_version`` give the same result."""
    rows = inputs.ratings
    ratings = Ratings.from_columns(
        [row.value for row in rows],
        [row.is_modified for row in rows],
        [row.participant for row in rows],
        [row.image for row in rows],
    )
    # By code, so that foreign files may have a modified and a clean image of one id.
    images = dict(zip(ratings.images.tolist(), rows, strict=True))
    codes = {(row.is_modified, row.image): code for code, row in images.items()}
    source_of = {
        code: codes[False, row.source]
        for code, row in images.items()
        if row.is_modified and (False, row.source) in codes
    }
    scale = RatingScale(rules.scale_minimum, rules.scale_maximum, high_means_modified=True)
    analysis = analyse(ratings, scale, bound=rules.equivalence_bound, alpha=rules.alpha, seed=seed, source_of=source_of)
    model = analysis.mixed_model
    effects = predict_image_effects(ratings, model) if model else None
    modified = [row for row in images.values() if row.is_modified]
    known = [row for row in modified if row.misleads is not None]
    auc_low, auc_high = auc_interval(ratings, repeats=AUC_REPEATS, seed=seed) or (None, None)
    described, detection, reliability = analysis.descriptives, analysis.detection, analysis.reliability
    values = {
        "participants": described.participants,
        "ratings": described.ratings,
        "ratings_modified": described.modified.ratings,
        "ratings_clean": described.clean.ratings,
        "images_modified": described.modified.images,
        "images_clean": described.clean.images,
        "images_unverified": len(modified) - len(known),
        "mean_modified": described.modified.mean,
        "sd_modified": described.modified.sd,
        "mean_clean": described.clean.mean,
        "sd_clean": described.clean.sd,
        "mean_difference": described.difference,
        **_model_values(analysis),
        "auc": detection.auc,
        "auc_low": auc_low,
        "auc_high": auc_high,
        "accuracy_modified": detection.accuracy_modified,
        "accuracy_clean": detection.accuracy_clean,
        "d_prime": detection.d_prime,
        "icc_single": reliability.icc_single,
        "icc_mean": reliability.icc_mean,
        "krippendorff_alpha": reliability.krippendorff_alpha,
        "split_half": reliability.split_half,
        "attack_success_rate": _success_rate(known),
        "fools_unnoticed": _fools_unnoticed(effects, images, model, rules.equivalence_bound)
        if effects and model
        else None,
        "flags": _flags(analysis, rules, unverified=len(modified) > len(known)),
    }
    details = {
        "rules": asdict(rules),
        "seed": seed,
        "distributions": {
            kind: _distribution(ratings.values[ratings.is_modified == is_modified])
            for kind, is_modified in (("modified", True), ("clean", False))
        },
        "detection": {"criterion": detection.criterion, "mean_confidence": detection.mean_confidence},
        "repeated_answers": analysis.repeated_answers,
        "not_estimable": analysis.not_estimable,
        "model": _model_details(model),
        "robustness": {
            "participant_means": _turned(analysis.robustness.participant_means),
            "order_of_answers": _order_of_answers(analysis),
            "disagreements": list(analysis.robustness.disagreements),
        },
        "couples": _turned(analysis.couples),
        "reliability": {
            "all_images": _reliability(analysis.reliability),
            "modified_images": _reliability(analysis.reliability_modified),
            "clean_images": _reliability(analysis.reliability_clean),
        },
        "participants": _participants(ratings),
        "images": _images(effects, images),
    }
    return Result(_finite(values), _finite(details))


@cache
def code_version() -> str:
    """What tells two versions of the computation apart: a digest of its source, and the versions of numpy and scipy."""
    folder = Path(__file__).parent
    sources = [folder / "inputs.py", folder / "results.py", *sorted((folder / "statistics").glob("*.py"))]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    return f"{digest[:12]}, numpy {np.__version__}, scipy {scipy.__version__}"


def _model_values(analysis: Analysis) -> dict[str, Any]:
    model, equivalence = analysis.mixed_model, analysis.equivalence
    if model is None or equivalence is None:
        names = "difference standard_error degrees_of_freedom ci90_low ci90_high ci95_low ci95_high p_lower p_upper"
        return {**dict.fromkeys((*names.split(), "supported_bound")), "verdict": "not_estimable"}
    (low90, high90), (low95, high95) = model.interval(0.90), model.interval(0.95)
    return {
        "difference": -model.difference,
        "standard_error": model.standard_error,
        "degrees_of_freedom": model.degrees_of_freedom,
        "ci90_low": -high90,
        "ci90_high": -low90,
        "ci95_low": -high95,
        "ci95_high": -low95,
        "p_lower": equivalence.p_upper,
        "p_upper": equivalence.p_lower,
        "supported_bound": equivalence.supported_bound,
        "verdict": str(equivalence.verdict),
    }


def _success_rate(known: Sequence[InputRating]) -> float | None:
    """Of attempts with a known outcome, the share that misleads.

    The catalogue takes no image that its target model still recognises. Where all mislead, failed attempts were left
    out rather than never made, and nobody can tell how many there were.
    """
    misleading = sum(row.misleads is True for row in known)
    return _share(misleading, len(known)) if misleading < len(known) else None


def stated_success_rate(images_attacked: int | None, images_fooling: int | None) -> dict[str, float]:
    """What replaces a value of ``compute`` where the catalogue states how often the attack was tried."""
    if not images_attacked or images_fooling is None:
        return {}
    return {"attack_success_rate": images_fooling / images_attacked}


def _fools_unnoticed(
    effects: ImageEffects, images: Mapping[int, InputRating], model: MixedModel, bound: float
) -> float | None:
    """Of the rated images known to mislead, the share that lies at most ``bound`` above what clean ones are rated.

    Always of these, whatever is known of attempts: so it means the same in every row of a board.
    """
    clean = model.intercept_modified + model.difference
    unnoticed = [
        mean - clean <= bound
        for code, mean in zip(effects.images[effects.is_modified], effects.mean[effects.is_modified], strict=True)
        if images[code].misleads is True
    ]
    return _share(int(sum(unnoticed)), len(unnoticed))


def _flags(analysis: Analysis, rules: Rules, *, unverified: bool) -> list[str]:
    """Codes of leaderboard.models.Flag."""
    reliability = analysis.reliability.icc_mean
    found = {
        "few_raters": analysis.descriptives.participants < rules.minimum_participants,
        "boundary_fit": analysis.mixed_model is not None and bool(analysis.mixed_model.boundary),
        "checks_disagree": bool(analysis.robustness.disagreements),
        "unverified_images": unverified,
        "low_reliability": reliability is not None and reliability < LOW_RELIABILITY,
    }
    return [flag for flag, is_set in found.items() if is_set]


def _model_details(model: MixedModel | None) -> dict[str, Any] | None:
    if model is None:
        return None
    return {
        "intercept_modified": model.intercept_modified,
        "intercept_clean": model.intercept_modified + model.difference,
        "reml_criterion": model.reml_criterion,
        "variance_components": asdict(model.variance_components),
        "boundary": list(model.boundary),
    }


def _turned(found: MeanDifference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    # Of 90 % whatever the tests' level is, as the model's own.
    half = float(stats.t.ppf(0.95, found.degrees_of_freedom)) * found.standard_error
    return {
        "count": found.count,
        "difference": -found.difference,
        "standard_error": found.standard_error,
        "degrees_of_freedom": found.degrees_of_freedom,
        "ci90": [-found.difference - half, -found.difference + half],
        "p_lower": found.equivalence.p_upper,
        "p_upper": found.equivalence.p_lower,
        "verdict": str(found.equivalence.verdict),
    }


def _order_of_answers(analysis: Analysis) -> dict[str, Any] | None:
    found = analysis.robustness.ordinal
    if found is None:
        return None
    low, high = found.interval
    return {
        "participants": found.participants,
        "probability": 1 - found.probability,
        "ci95": [1 - high, 1 - low],
        "p_value": found.p_value,
    }


def _reliability(found: Reliability) -> dict[str, float | None]:
    return asdict(found)


def _distribution(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[list[float]]:
    """How often each value was given: [value, count], in ascending order."""
    found, counts = np.unique(values, return_counts=True)
    return [[value, count] for value, count in zip(found.tolist(), counts.tolist(), strict=True)]


def _participants(ratings: Ratings) -> dict[str, Any]:
    """Each participant's own mean difference, in ascending order, so that nobody can be told from the order."""
    count = ratings.participant_count
    means = []
    for is_modified in (True, False):
        chosen = ratings.is_modified == is_modified
        counts = np.bincount(ratings.participants[chosen], minlength=count)
        sums = np.bincount(ratings.participants[chosen], ratings.values[chosen], minlength=count)
        means.append(np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0))
    differences = means[0] - means[1]
    per_person = np.bincount(ratings.participants)
    return {
        "mean_differences": sorted(differences[np.isfinite(differences)].tolist()),
        "ratings_each": [int(per_person.min()), int(per_person.max())],
    }


def _images(effects: ImageEffects | None, images: Mapping[int, InputRating]) -> dict[str, Any]:
    """Per kind, by predicted mean: how the images are spread, and both ends of their order, lowest first.

    Low is convincing for a modified image: it passes as genuine.
    """
    if effects is None:
        return {}
    found = {}
    for kind, is_modified in (("modified", True), ("clean", False)):
        chosen = np.flatnonzero(effects.is_modified == is_modified)
        ids = [images[int(code)].image for code in effects.images[chosen]]
        order = sorted(range(len(ids)), key=lambda place: (effects.mean[chosen[place]], ids[place]))
        kept = order if len(order) <= 2 * IMAGES_KEPT else [*order[:IMAGES_KEPT], *order[-IMAGES_KEPT:]]
        found[kind] = {
            "count": len(order),
            "quantiles": np.quantile(effects.mean[chosen], np.linspace(0, 1, 21)).tolist(),
            "images": [
                {
                    "image": ids[place],
                    "source": images[int(effects.images[chosen[place]])].source,
                    "misleads": images[int(effects.images[chosen[place]])].misleads,
                    "ratings": int(effects.ratings[chosen[place]]),
                    "mean": float(effects.mean[chosen[place]]),
                    "standard_error": float(effects.standard_error[chosen[place]]),
                }
                for place in kept
            ],
        }
    return found


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _finite(value: Any) -> Any:
    """Without numbers that neither JSON nor a database's readers take."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
