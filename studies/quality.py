"""Rules that flag careless participations, pure. docs/quality.md explains them; ``DESCRIPTIONS`` has the short form.

A rule flags, it does not decide. Each measures one number and compares it with the study's threshold. None can be set
off by answers that are consistent and right: whoever always says the same about clean images and the opposite about
modified ones is flagged by no rule, whatever the scale.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from statistics import fmean, median
from typing import NamedTuple

from studies.scale import Scale

# With fewer answers nothing is said about somebody, for chance would speak.
FEWEST_ANSWERS = 20


class Rule(StrEnum):
    """What is looked at."""

    ATTENTION = "attention"
    FAST_MEDIAN = "fast_median"
    FAST_SHARE = "fast_share"
    LONG_STRING = "long_string"
    VARIANCE = "variance"
    NO_DIFFERENCE = "no_difference"
    FOCUS = "focus"


class Action(StrEnum):
    """What a study does with a rule."""

    OFF = "off"
    FLAG = "flag"
    EXCLUDE = "exclude"

    @property
    def label(self) -> str:
        return {
            Action.OFF: "Not used",
            Action.FLAG: "Flag, a person decides",
            Action.EXCLUDE: "Exclude at the end",
        }[self]


@dataclass(frozen=True)
class Description:
    """A rule in plain words. ``unit`` follows value and threshold; ``above``: flagged beyond the threshold, not below.

    ``fair`` says why consistent right answers cannot set it off.
    """

    label: str
    unit: str
    above: bool
    measures: str
    source: str
    fair: str


DESCRIPTIONS: Mapping[Rule, Description] = {
    Rule.ATTENTION: Description(
        label="Failed attention checks",
        unit="",
        above=True,
        measures="Attention checks that were failed: corrupted images not rated as modified, and instructed items "
        "answered otherwise.",
        source="Oppenheimer, Meyvis and Davidenko 2009; Meade and Craig 2012",
        fair="Only the checks are looked at, whose right answer is plain to see or is written in the item.",
    ),
    Rule.FAST_MEDIAN: Description(
        label="Too fast, median",
        unit="s",
        above=False,
        measures="The median time from an image being shown to its answer.",
        source="Huang et al. 2012 (2 s per item); Wood et al. 2017 (1 s per item)",
        fair="Only times are looked at, no answers.",
    ),
    Rule.FAST_SHARE: Description(
        label="Too fast, share of answers",
        unit="%",
        above=True,
        measures="The share of images answered faster than somebody who looks at them can.",
        source="Wise and Kong 2005 (response time effort)",
        fair="Only times are looked at, no answers.",
    ),
    Rule.LONG_STRING: Description(
        label="Long string of equal answers",
        unit="%",
        above=True,
        measures="The longest run of the same answer that cannot come from images of one kind: twice the number of "
        "images of the rarer kind in it, of all images. A check answered otherwise ends a run.",
        source="Johnson 2005 (long string); Curran 2016",
        fair="A run of right answers holds images of one kind only, however long it is, and so measures 0.",
    ),
    Rule.VARIANCE: Description(
        label="Hardly any variance",
        unit="% of the scale",
        above=False,
        measures="The standard deviation of all answers, checks included and both kinds together.",
        source="Dunn et al. 2018 (intra-individual response variability)",
        fair="Right answers lie at both sides of the scale, so the more consistent they are, the larger it is. There "
        "is no upper limit, and none within one kind: there, consistency is a virtue.",
    ),
    Rule.NO_DIFFERENCE: Description(
        label="No difference between kinds",
        unit="% of the scale",
        above=False,
        measures="Mean rating of modified images minus mean rating of clean ones, higher meaning modified. Negative: "
        "the scale may have been read the wrong way round.",
        source="none: it is what the study measures",
        fair="Right answers make it large. Not seeing a difference is a result, not carelessness: this rule never "
        "excludes by itself, for that would select people by the outcome.",
    ),
    Rule.FOCUS: Description(
        label="Left the window",
        unit="%",
        above=True,
        measures="The share of answers during which the window lost the focus at least once.",
        source="Diedenhofen and Musch 2017 (PageFocus); Permut, Fisher and Oppenheimer 2019 (TaskMaster)",
        fair="Only the window is looked at, no answers.",
    ),
}


@dataclass(frozen=True)
class Policy:
    """A study's stated policy: what it does with each rule, and the thresholds, in the units of the descriptions.

    ``fast_answer_seconds``: what FAST_SHARE calls fast.
    """

    actions: Mapping[Rule, Action]
    thresholds: Mapping[Rule, float]
    fast_answer_seconds: float


class Answer(NamedTuple):
    """One answer, in the study's own scale. ``is_modified`` is None for an attention check; None: not measured.

    A tuple, for a whole study has 70,000 of them.
    """

    is_modified: bool | None
    value: int
    response_ms: int | None
    focus_losses: int | None


@dataclass(frozen=True)
class Answers:
    """What one participant answered, in the order shown; ``image_count`` images were planned for them.

    ``seconds_in_all``: from the first item shown to the last answer, by the server's clock; None: not known.
    """

    items: Sequence[Answer]
    image_count: int
    attention_failures: int
    seconds_in_all: float | None = None

    @cached_property
    def images(self) -> list[Answer]:
        return [answer for answer in self.items if answer.is_modified is not None]


@dataclass(frozen=True)
class Finding:
    """What a rule measured; ``value`` is None where too little was answered or the browser did not measure."""

    rule: Rule
    value: float | None
    threshold: float
    is_flagged: bool


def judge(answers: Answers, scale: Scale, policy: Policy) -> list[Finding]:
    """What the rules that the study uses say about one participant, in the order of ``Rule``."""
    findings = []
    for rule, action in ((rule, policy.actions[rule]) for rule in Rule):
        if action == Action.OFF:
            continue
        value, threshold = _MEASURES[rule](answers, scale, policy), policy.thresholds[rule]
        is_beyond = value is not None and (value > threshold if DESCRIPTIONS[rule].above else value < threshold)
        findings.append(Finding(rule=rule, value=value, threshold=threshold, is_flagged=is_beyond))
    return findings


def excluding(findings: Sequence[Finding], policy: Policy) -> list[Finding]:
    """Those by which the study's policy excludes the participant."""
    return [
        finding
        for finding in findings
        if finding.is_flagged and policy.actions[finding.rule] == Action.EXCLUDE and may_exclude(finding.rule)
    ]


def may_exclude(rule: Rule) -> bool:
    """Whether a policy may exclude by it. Not by what the study is to find out."""
    return rule != Rule.NO_DIFFERENCE


def in_words(finding: Finding) -> str:
    """For example "Too fast, median: 0.6 s (threshold 1 s)"."""
    description = DESCRIPTIONS[finding.rule]
    value = "not measured" if finding.value is None else amount(finding.value, description.unit)
    return f"{description.label}: {value} (threshold {amount(finding.threshold, description.unit)})"


def amount(value: float, unit: str) -> str:
    """A value with its unit, at most two digits after the point: "0.63 s", "40 %", "2"."""
    return f"{round(value, 2):g} {unit}".replace("-", "−").strip()


def _enough(count: int, answers: Answers) -> bool:
    return count >= max(1, min(FEWEST_ANSWERS, answers.image_count))


def _attention(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    return float(answers.attention_failures)


def _seconds(answers: Answers) -> list[float]:
    """How long the images took, as the browser says; shortened alike where all of it together cannot be.

    A program that answers a study in two seconds can send any times, or none, but the server has seen how long it
    took: what is left of that is shared by the answers without a time. Of single answers it cannot tell: those given
    offline arrive together.
    """
    known = [answer.response_ms / 1000 for answer in answers.items if answer.response_ms is not None]
    claimed, in_all = sum(known), answers.seconds_in_all
    share = in_all / claimed if in_all is not None and claimed > in_all else 1.0
    untold = len(answers.items) - len(known)
    left = max(0.0, in_all - claimed) / untold if in_all is not None and untold else None
    seconds = (left if answer.response_ms is None else share * answer.response_ms / 1000 for answer in answers.images)
    return [second for second in seconds if second is not None]


def _fast_median(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    seconds = _seconds(answers)
    return median(seconds) if _enough(len(seconds), answers) else None


def _fast_share(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    seconds = _seconds(answers)
    if not _enough(len(seconds), answers):
        return None
    return 100 * sum(second < policy.fast_answer_seconds for second in seconds) / len(seconds)


def _long_string(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    if not _enough(len(answers.images), answers):
        return None
    longest = 0
    for _, run in groupby(answers.items, key=lambda answer: answer.value):
        kinds = [answer.is_modified for answer in run]
        longest = max(longest, 2 * min(kinds.count(True), kinds.count(False)))
    return 100 * longest / answers.image_count


def _variance(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    if not _enough(len(answers.images), answers):
        return None
    values = [answer.value for answer in answers.items]
    mean = fmean(values)
    return _of_scale(math.sqrt(fmean((value - mean) ** 2 for value in values)), scale)


def _no_difference(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    modified = [scale.oriented(answer.value) for answer in answers.items if answer.is_modified is True]
    clean = [scale.oriented(answer.value) for answer in answers.items if answer.is_modified is False]
    if not modified or not clean or not _enough(len(modified) + len(clean), answers):
        return None
    return _of_scale(fmean(modified) - fmean(clean), scale)


def _focus(answers: Answers, scale: Scale, policy: Policy) -> float | None:
    losses = [answer.focus_losses for answer in answers.items if answer.focus_losses is not None]
    return 100 * sum(loss > 0 for loss in losses) / len(losses) if _enough(len(losses), answers) else None


def _of_scale(span: float, scale: Scale) -> float:
    return 100 * span / (scale.maximum - scale.minimum)


_MEASURES: Mapping[Rule, Callable[[Answers, Scale, Policy], float | None]] = {
    Rule.ATTENTION: _attention,
    Rule.FAST_MEDIAN: _fast_median,
    Rule.FAST_SHARE: _fast_share,
    Rule.LONG_STRING: _long_string,
    Rule.VARIANCE: _variance,
    Rule.NO_DIFFERENCE: _no_difference,
    Rule.FOCUS: _focus,
}
