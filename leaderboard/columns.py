"""The columns of a board: what each shows, and what that means. The one list for page, legend and LaTeX."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from leaderboard.formatting import (
    deciding_interval,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_range,
)
from leaderboard.selectors.rows import Row

Show = Callable[[Row, int], str]  # of an entry, with so many decimals for values in points


@dataclass(frozen=True)
class Column:
    """``show`` and ``note`` (a smaller second line) give plain text; ``order`` what rows are sorted by.

    In ``meaning``, {alpha} and {decision} stand for what the board's level of the tests makes of them.
    """

    key: str
    name: str
    meaning: str
    show: Show
    order: Callable[[Row], Any]
    note: Show | None = None
    is_number: bool = True
    is_default: bool = False

    def meaning_at(self, alpha: float) -> str:
        """What the column means where each one-sided test is at this level."""
        return self.meaning.format(alpha=f"{alpha:g}", decision=decision(alpha))


def decision(alpha: float) -> str:
    """How the drawn interval of 90 % and the band of the bounds make a verdict; at most levels another one does."""
    found = "wholly inside the band: imperceptible; wholly outside: perceptible; across an edge: inconclusive."
    if (deciding := deciding_interval(alpha)) == "90 %":
        return f"{found[0].upper()}{found[1:]}"
    return f"Each test is at the level {alpha:g}, so not the drawn interval decides but that of {deciding}: {found}"


def _points(field: str, entry: Row, decimals: int) -> str:
    return format_number(getattr(entry, field), decimals)


def _two_decimals(field: str, entry: Row, decimals: int) -> str:
    return format_number(getattr(entry, field), 2)


def _count(field: str, entry: Row, decimals: int) -> str:
    return f"{getattr(entry, field):,}"


def _field(field: str) -> Callable[[Row], Any]:
    return lambda entry: getattr(entry, field)


def _size_of_difference(entry: Row) -> float | None:
    return None if entry.difference is None else abs(entry.difference)


def _spread(field: str, entry: Row, decimals: int) -> str:
    return f"SD {format_number(getattr(entry, field), decimals)}"


def _successes(entry: Row, decimals: int) -> str:
    if entry.images_attacked:
        return f"of {entry.images_attacked:,} attempt{'' if entry.images_attacked == 1 else 's'}"
    known = entry.images_modified - entry.images_unverified
    if entry.attack_success_rate is None:
        return f"{known:,} of {entry.images_modified:,} images fool it" if known else ""
    return f"of {known:,} attempts" if known else "as stated with the ratings"


def _unnoticed_attempts(entry: Row, decimals: int) -> str:
    if entry.attack_success_rate is None or entry.fools_unnoticed is None:
        return ""
    return f"{format_percent(entry.attack_success_rate * entry.fools_unnoticed)} of attempts"


def _numbers(key: str, name: str, meaning: str, show: Callable[[str, Row, int], str], **options: Any) -> Column:
    """A column of one field."""
    return Column(key, name, meaning, partial(show, key), order=_field(key), **options)


COLUMNS: tuple[Column, ...] = (
    Column(
        "rank",
        "Rank",
        "1 is the most imperceptible: the smallest difference, in either direction. Equal differences share a rank and "
        "the next one is skipped. Below it the ranks that are likely given how exactly the differences are known: with "
        "90 % probability the true rank is among these. A pair without a result has no rank and stands last.",
        lambda entry, _: "–" if entry.rank is None else str(entry.rank),
        note=lambda entry, _: "" if entry.rank_low is None else f"{format_range(entry.rank_low, entry.rank_high)}",
        order=_field("rank"),
        is_number=False,
        is_default=True,
    ),
    Column(
        "attack",
        "Attack",
        "The method that modified the images, and what kind of change it makes. The name leads to everything that is "
        "known of this row: distributions, single images, checks, how to cite it.",
        lambda entry, _: entry.attack.name,
        note=lambda entry, _: entry.attack.family.capitalize(),
        order=lambda entry: entry.attack.name.casefold(),
        is_number=False,
        is_default=True,
    ),
    Column(
        "target_model",
        "Target model",
        "The classifier that the modified images are meant to fool, also called the victim.",
        lambda entry, _: entry.target_model.name,
        order=lambda entry: entry.target_model.name.casefold(),
        is_number=False,
        is_default=True,
    ),
    Column(
        "difference",
        "Difference",
        "How much higher people rate modified images than clean ones, in points of the scale, estimated by a model "
        "that allows for differences between people and between images. Zero: people cannot tell them apart. Above "
        "zero: people notice the modification. Below zero: the modified images look more genuine than the clean ones. "
        "In brackets the 90 % interval: how exactly the number is known.",
        lambda entry, decimals: format_number(entry.difference, decimals, always_signed=True),
        note=lambda entry, decimals: format_interval(entry.ci90_low, entry.ci90_high, decimals),
        order=_field("difference"),
        is_default=True,
    ),
    Column(
        "interval",
        "Interval",
        "The difference and its 90 % interval, drawn. The shaded band is the range that counts as no difference. "
        "{decision}",
        lambda entry, decimals: format_interval(entry.ci90_low, entry.ci90_high, decimals),
        order=_size_of_difference,
        is_number=False,
        is_default=True,
    ),
    Column(
        "verdict",
        "Verdict",
        "Imperceptible: the difference is shown to be smaller than the bound. Perceptible: it is shown to be larger. "
        "Inconclusive: the ratings do not suffice to say either; this is no evidence of being imperceptible. It speaks "
        "of the mean over people and images like these, not of every person or every image.",
        lambda entry, _: entry.verdict_label,
        order=lambda entry: ("imperceptible", "inconclusive", "perceptible", "not_estimable").index(entry.verdict),
        is_number=False,
        is_default=True,
    ),
    _numbers(
        "attack_success_rate",
        "Attack success",
        "How often the attack fools the target model when it is tried. That is not known where only its successes were "
        "collected, as for images of this site, which takes none that their model still recognises, unless its "
        "researchers state how many images they attacked. Below it: how many attempts the rate rests upon, or how many "
        "of the rated images are known to fool the model.",
        lambda field, entry, _: "not known" if getattr(entry, field) is None else format_percent(getattr(entry, field)),
        note=_successes,
        is_default=True,
    ),
    _numbers(
        "fools_unnoticed",
        "Fools and unnoticed",
        "What an attack is after. Of the rated images that fool the target model, the share that people do not notice: "
        "they rate them at most the bound above clean images. It is counted so in every row. Below it, where the "
        "attack’s success is known, the same of all attempts: both numbers multiplied, since an attempt that fails "
        "fools nobody.",
        lambda field, entry, _: format_percent(getattr(entry, field)),
        note=_unnoticed_attempts,
        is_default=True,
    ),
    _numbers(
        "participants",
        "Participants",
        "Complete runs by people who passed the checks. Only their ratings count.",
        _count,
        is_default=True,
    ),
    Column(
        "flags",
        "Notes",
        "What to know before trusting the row. Few raters: fewer people than the board asks for. Boundary fit: the "
        "model found no variation of some kind, which with few people is common. Checks disagree: a simpler analysis "
        "comes to another verdict. Unverified images: of some images it is not known whether they fool the model. Low "
        "reliability: people agree little on the images. External result: collected elsewhere, with citation.",
        lambda entry, _: ", ".join(entry.flag_labels) or "–",
        order=lambda entry: len(entry.flags),
        is_number=False,
        is_default=True,
    ),
    _numbers(
        "ratings", "Ratings", "Answers to clean and modified images. Attention checks are not among them.", _count
    ),
    Column(
        "images",
        "Images",
        "Different images, clean and modified, that were rated at least once.",
        lambda entry, _: f"{entry.images_modified + entry.images_clean:,}",
        order=lambda entry: entry.images_modified + entry.images_clean,
    ),
    _numbers(
        "mean_modified",
        "Mean modified",
        "Mean of all ratings of modified images; below it the standard deviation (SD): how widely ratings lie around "
        "the mean.",
        _points,
        note=partial(_spread, "sd_modified"),
    ),
    _numbers(
        "mean_clean",
        "Mean clean",
        "The same of clean images. People call some clean images modified, too; that is why both kinds are shown.",
        _points,
        note=partial(_spread, "sd_clean"),
    ),
    Column(
        "p_value",
        "p",
        "The p value of the two one-sided tests: how likely so small a difference would be if the true one lay at the "
        "bound. Below {alpha} the verdict is imperceptible.",
        lambda entry, _: format_p_value(entry.p_value),
        order=lambda entry: entry.p_value,
    ),
    _numbers(
        "holm_p_value",
        "p, Holm",
        "The p value adjusted for the number of pairs on the board (Holm's method): among many pairs one may look "
        "imperceptible by chance.",
        lambda field, entry, _: format_p_value(getattr(entry, field)),
    ),
    _numbers(
        "supported_bound",
        "Supported bound",
        "The smallest bound, in points, for which these ratings would give the verdict imperceptible.",
        _points,
    ),
    _numbers(
        "auc",
        "AUC",
        "The chance that a modified image is rated higher than a clean one, if one of each is drawn. 0.5: as good as "
        "guessing; 1: always. In brackets its 95 % interval.",
        _two_decimals,
        note=lambda entry, _: format_interval(entry.auc_low, entry.auc_high, 2),
    ),
    _numbers(
        "accuracy_modified",
        "Modified detected",
        "The share of ratings of modified images on the side “modified” of the scale.",
        lambda field, entry, _: format_percent(getattr(entry, field)),
    ),
    _numbers(
        "accuracy_clean",
        "Clean recognised",
        "The share of ratings of clean images on the side “unmodified” of the scale.",
        lambda field, entry, _: format_percent(getattr(entry, field)),
    ),
    _numbers(
        "d_prime",
        "d′",
        "How well people tell the two kinds apart, whatever their inclination to say “modified”: 0 is guessing, 1 is "
        "fair, 3 is nearly perfect.",
        _two_decimals,
    ),
    _numbers(
        "icc_mean",
        "Reliability",
        "How well another group of people of the same size would agree on the images (ICC(2,k), 0 to 1). Below 0.5 is "
        "poor.",
        _two_decimals,
    ),
    _numbers(
        "krippendorff_alpha",
        "Krippendorff’s α",
        "How well single people agree on the images: 1 is perfect, 0 is chance.",
        _two_decimals,
    ),
    Column(
        "year",
        "Year",
        "When the attack was published.",
        lambda entry, _: str(entry.attack.year or "–"),
        order=lambda entry: entry.attack.year,
    ),
)
BY_KEY = {column.key: column for column in COLUMNS}
DEFAULT_KEYS = tuple(column.key for column in COLUMNS if column.is_default)
# What tells rows apart stays, whatever is chosen.
ALWAYS = ("rank", "attack", "target_model")
