"""What Prolific is told about a study: asked on its page, and refused where Prolific or fair pay would refuse it."""

from decimal import ROUND_CEILING, Decimal
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from studies.admin.forms import REVEALING_WORDS
from studies.flow import Outcome
from studies.models import PanelStudy, Study, Workspace
from studies.pay import PROLIFIC_MINIMUM_PER_HOUR, amount_due, minimum_problems
from studies.recruitment.money import PENNY, to_minor
from studies.recruitment.payloads import ScreenOutPay

# Words that tell people what to say in order to be let in, or what the study is about.
ELIGIBILITY_WORDS = ("colour blind", "color blind", "colour vision", "color vision", "fluent", "native speaker")


class RecruitmentForm(forms.ModelForm):
    """The reward is not asked for: it is what the study pays for a complete run."""

    class Meta:
        model = PanelStudy
        fields = (
            "workspace",
            "name",
            "description",
            "places",
            "minutes",
            "most_at_once",
            "screen_out_pay",
            "screen_out_slots",
        )
        widgets = {
            "workspace": UnfoldAdminSelectWidget(),
            "name": UnfoldAdminTextInputWidget(),
            "description": UnfoldAdminTextareaWidget({"rows": 6}),
            "places": UnfoldAdminIntegerFieldWidget(),
            "minutes": UnfoldAdminIntegerFieldWidget(),
            "most_at_once": UnfoldAdminIntegerFieldWidget(),
            "screen_out_pay": UnfoldAdminRadioSelectWidget(),
            "screen_out_slots": UnfoldAdminIntegerFieldWidget(),
        }
        help_texts = {
            "places": "Complete submissions that Prolific recruits; can be raised later, never lowered.",
            "minutes": "What participants are told that the study takes.",
        }
        labels = {
            "most_at_once": "At the same time",
            "screen_out_pay": "Who fails a check before the main study",
            "minutes": "Minutes",
        }

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.study = study
        if self.instance.creation_begun_at is not None or (self.instance.pk and self.instance.panel_id):
            # It is there, or may be: another workspace's token could neither find nor pay it.
            self.fields["workspace"].disabled = True
            self.fields["workspace"].help_text = "Fixed, as the study has been made there."
        possible = Workspace.objects.filter(currency=study.currency)[:2]
        if len(possible) == 1:
            self.fields["workspace"].initial = possible[0]
        # Without the empty choice that stands for "unknown".
        self.fields["screen_out_pay"].choices = [(way.value, way.label) for way in ScreenOutPay]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        return self._gives_nothing_away(self.cleaned_data["name"])

    def clean_description(self) -> str:
        return self._gives_nothing_away(self.cleaned_data["description"])

    def _gives_nothing_away(self, text: str) -> str:
        words = (self.study.attack.name, self.study.target_model.name, *REVEALING_WORDS, *ELIGIBILITY_WORDS)
        if found := [word for word in words if word.lower() in text.lower()]:
            raise forms.ValidationError(
                f"Participants would read “{found[0]}”, which tells who is let in or what the study is about."
            )
        return text

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        study = self.study
        reward = amount_due(Outcome.COMPLETED, study.rates)
        problems = minimum_problems(
            study.rates,
            has_colour_check=bool(study.plate_count),
            has_comprehension_check=bool(study.comprehension_pair_count),
        )
        workspace, minutes = data.get("workspace"), data.get("minutes")
        if workspace and workspace.currency != study.currency:
            problems.append(f"The study pays in {study.currency} and {workspace} in {workspace.currency}.")
        per_hour = PROLIFIC_MINIMUM_PER_HOUR.get(study.currency)
        if minutes and per_hour and reward < (least := _rounded_up(per_hour * minutes / 60)):
            self.add_error(
                "minutes",
                f"The reward of {study.currency} {reward} is too little for {minutes} minutes: Prolific's minimum is "
                f"{study.currency} {least}.",
            )
        if data.get("screen_out_pay") == ScreenOutPay.FIXED and not data.get("screen_out_slots"):
            self.add_error("screen_out_slots", "Without a slot nobody can be paid a fixed screen-out: give a number.")
        if problems:
            raise forms.ValidationError(problems)
        return data

    def save(self, commit: bool = True) -> PanelStudy:
        self.instance.study = self.study
        self.instance.reward_minor = to_minor(amount_due(Outcome.COMPLETED, self.study.rates))
        self.instance.estimated_cost_minor = None  # of what is asked for now
        if self.instance.pk is None:
            return super().save(commit)
        # Only what the form asks for: how the study stands there may be read by others meanwhile.
        self.instance.save(update_fields=[*self.Meta.fields, "reward_minor", "estimated_cost_minor"])
        return self.instance


def _rounded_up(amount: Decimal) -> Decimal:
    return amount.quantize(PENNY, rounding=ROUND_CEILING)
