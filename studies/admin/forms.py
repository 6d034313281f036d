"""Forms of the study pages: what is asked, and what it means in plain language."""

import secrets
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from studies.models import Study, StudyText, TextKind
from studies.presets import TEXT_PLACEHOLDERS
from studies.protocols import protocols
from studies.selectors import study_text

# Letters and digits that are not taken for one another when read aloud or written down.
SLUG_CHARACTERS = "abcdefghjkmnpqrstuvwxyz23456789"
SLUG_LENGTH = 8
REVEALING_WORDS = ("adversarial", "attack", "modified", "fake", "clean")

TEXT_FIELDS = {f"text_{kind.value}": kind for kind in TextKind}

HELP_TEXTS = {
    "title": "For you and your colleagues; participants never see it.",
    "public_title": "The heading participants see. It must not say which images are modified.",
    "contact_email": "Shown to participants who have a question. Leave empty if the panel passes messages on.",
    "scale_widget": "How people answer: a slider without a preset position, or one button per point.",
    "scale_direction": "What a high value means. Results are always turned to “higher = modified”, and exports name "
    "the direction.",
    "scale_minimum": "Lowest value, a whole number; may be negative.",
    "scale_maximum": "Highest value.",
    "label_minimum": "Written at the lower end.",
    "label_maximum": "Written at the upper end.",
    "dataset_count": "Into how many sets the images are divided. Each participant rates one set; no image is in two.",
    "clean_per_dataset": "Unmodified images that one participant rates.",
    "modified_per_dataset": "Modified images that one participant rates; never beside their own clean source.",
    "participants_per_dataset": "How many people must rate each set and pass all checks.",
    "buffer_percent": "Extra places, in per cent, for people who will fail a check.",
    "seed": "Any whole number. The same seed draws the same sets again.",
    "plate_count": "0 leaves the colour-vision check out.",
    "plates_required": "Fewer right answers than this end the study for the participant.",
    "comprehension_pair_count": "Pairs of an unmodified and a modified image. 0 leaves the check out.",
    "comprehension_required": "Fewer right answers than this, in the last try, end the study for the participant.",
    "corrupted_check_count": "Plainly destroyed images: any answer on the “modified” side passes.",
    "instructed_check_count": "Items that say themselves which answer to give.",
    "attention_policy": "What happens to somebody who fails too many attention checks.",
    "phones_allowed": "Phone screens are small: subtle changes are hard to see on them.",
    "minimum_viewport_width": "In CSS pixels. Narrower windows are asked to be made wider.",
    "minimum_viewport_height": "In CSS pixels.",
    "panel": "Where participants come from.",
    "hourly_rate": "All amounts below are computed from it, rounded to the penny.",
    "currency": "Three letters, for example GBP.",
    "minutes_complete": "What a complete run is paid for.",
}


def random_slug() -> str:
    """A part of an address that gives nothing away, for example ``k7f3m9qw``."""
    return "".join(secrets.choice(SLUG_CHARACTERS) for _ in range(SLUG_LENGTH))


def reveals_something(study: Study) -> bool:
    """Whether the address that participants see names the attack, the model, or what the study is about."""
    slug = study.slug.lower()
    names = (study.attack.slug, study.target_model.slug, *REVEALING_WORDS)
    return any(name in slug for name in names)


class StudyCreateForm(forms.ModelForm):
    """The five things that a new study cannot do without; everything else comes with the preset."""

    # Not "preset": that field of the model is never edited, and Django refuses a form field of its name.
    preset_name = forms.ChoiceField(
        label="Preset",
        choices=lambda: [(known.preset.name, known.preset.label) for known in protocols()],
        initial="paper",
        widget=UnfoldAdminRadioSelectWidget(),
        help_text="Where all other numbers and texts come from. You can change each of them before launch.",
    )

    class Meta:
        model = Study
        fields = ("title", "slug", "attack", "target_model")
        help_texts = {
            "title": HELP_TEXTS["title"],
            "slug": "Part of the link that participants see, so it must not give anything away. The random one is a "
            "good choice.",
        }


TEXT_HELP = dict.fromkeys(TextKind, "An empty line begins a new paragraph.") | {
    TextKind.QUESTION: "One sentence.",
    TextKind.FEEDBACK: "One question a line: a name for exports, a colon, the question, and its choices with a bar "
    "before each; without choices it is answered in words.",
}


def preview_button(study: Study, kind: TextKind) -> SafeString:
    """Sends what is typed to the page that shows it as participants read it, in another tab."""
    return format_html(
        '<button type="submit" class="text-link" formaction="{}" formtarget="_blank" formnovalidate>Preview</button>',
        reverse("studies:preview-text", args=[study.slug, kind.value]),
    )


class TextField(forms.CharField):
    """A long text. Browsers send line ends as CR LF, texts are stored with LF: that alone is no change."""

    widget = UnfoldAdminTextareaWidget

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return text.replace("\r\n", "\n").replace("\r", "\n") if text else text

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.to_python(initial), data)


class StudyForm(forms.ModelForm):
    """Every number and text of a draft. A changed text is stored as a new version."""

    text_consent = TextField(label="Consent", widget=UnfoldAdminTextareaWidget({"rows": 18}))
    text_instructions = TextField(label="Instructions", widget=UnfoldAdminTextareaWidget({"rows": 14}))
    text_question = TextField(label="Question above the scale", widget=UnfoldAdminTextareaWidget({"rows": 2}))
    text_feedback = TextField(label="Feedback questions", widget=UnfoldAdminTextareaWidget({"rows": 7}))

    class Meta:
        model = Study
        fields = "__all__"  # noqa: DJ007 - the page's fieldsets name them
        help_texts = HELP_TEXTS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, kind in TEXT_FIELDS.items():
            if name not in self.fields:  # read-only after launch
                continue
            text = study_text(self.instance, kind)
            self.fields[name].initial = text.body if text else ""
            if text:
                self.fields[name].help_text = format_html(
                    "Version {}. {} {}", text.version, TEXT_HELP[kind], preview_button(self.instance, kind)
                )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self._at_most("plates_required", "plate_count", "More plates must be right than are shown.")
        self._at_most("comprehension_required", "comprehension_pair_count", "More pairs must be right than are shown.")
        low, high = data.get("scale_minimum"), data.get("scale_maximum")
        if low is not None and high is not None and low >= high:
            self.add_error("scale_maximum", "The highest value must be above the lowest.")
        for name in TEXT_FIELDS.keys() & data.keys():
            try:
                StudyText(kind=TEXT_FIELDS[name], body=data[name]).clean()
            except forms.ValidationError as error:
                self.add_error(name, error.messages)
        return data

    def changed_texts(self) -> dict[TextKind, str]:
        """New bodies of the texts that were edited, by kind."""
        return {kind: self.cleaned_data[name] for name, kind in TEXT_FIELDS.items() if name in self.changed_data}

    def _at_most(self, required: str, shown: str, message: str) -> None:
        needed, available = self.cleaned_data.get(required), self.cleaned_data.get(shown)
        if needed is not None and available is not None and needed > available:
            self.add_error(required, message)


PLACEHOLDER_HELP = "Words in braces are filled in when the text is shown: " + ", ".join(
    f"{name} ({meaning})" for name, meaning in TEXT_PLACEHOLDERS.items()
)
