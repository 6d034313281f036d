"""A study's stated policy about careless participations: settings of the study, frozen at launch like the others."""

from decimal import Decimal
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from studies.quality import Action, Policy, Rule, may_exclude


def _action(rule: Rule, default: Action, verbose_name: str) -> models.CharField:
    choices = [(action.value, action.label) for action in Action if action != Action.EXCLUDE or may_exclude(rule)]
    return models.CharField(verbose_name, max_length=10, choices=choices, default=default.value)


def _number(verbose_name: str, default: str, largest: int = 100, **options: Any) -> models.DecimalField:
    return models.DecimalField(
        verbose_name,
        max_digits=5,
        decimal_places=2,
        default=Decimal(default),
        validators=[MinValueValidator(Decimal(0)), MaxValueValidator(Decimal(largest))],
        **options,
    )


class QualitySettings(models.Model):
    """The fields of Study about ``studies.quality``; the attention rule's threshold is attention_failures_allowed."""

    attention_rule = _action(Rule.ATTENTION, Action.EXCLUDE, "failed attention checks")
    fast_median_rule = _action(Rule.FAST_MEDIAN, Action.FLAG, "too fast, median")
    fast_median_seconds = _number("median below, seconds", "1")
    fast_share_rule = _action(Rule.FAST_SHARE, Action.FLAG, "too fast, share of answers")
    fast_answer_seconds = _number("a fast answer takes less than, seconds", "0.8")
    fast_share_percent = _number("share of fast answers above, per cent", "20")
    long_string_rule = _action(Rule.LONG_STRING, Action.FLAG, "long string of equal answers")
    long_string_percent = _number("run across both kinds above, per cent of all images", "40")
    variance_rule = _action(Rule.VARIANCE, Action.FLAG, "hardly any variance")
    variance_percent = _number("standard deviation below, per cent of the scale", "2.5")
    no_difference_rule = _action(Rule.NO_DIFFERENCE, Action.FLAG, "no difference between kinds")
    no_difference_percent = _number("difference of means below, per cent of the scale", "5")
    focus_rule = _action(Rule.FOCUS, Action.FLAG, "left the window")
    focus_percent = _number("share of answers with the window left above, per cent", "20")

    # A field of Study.
    attention_failures_allowed: int

    class Meta:
        abstract = True

    @property
    def quality_policy(self) -> Policy:
        return Policy(
            actions={rule: Action(getattr(self, f"{rule.value}_rule")) for rule in Rule},
            thresholds={
                Rule.ATTENTION: float(self.attention_failures_allowed),
                Rule.FAST_MEDIAN: float(self.fast_median_seconds),
                Rule.FAST_SHARE: float(self.fast_share_percent),
                Rule.LONG_STRING: float(self.long_string_percent),
                Rule.VARIANCE: float(self.variance_percent),
                Rule.NO_DIFFERENCE: float(self.no_difference_percent),
                Rule.FOCUS: float(self.focus_percent),
            },
            fast_answer_seconds=float(self.fast_answer_seconds),
        )
