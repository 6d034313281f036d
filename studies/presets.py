"""Named sets of settings and texts for a new study, pure.

"paper": the framework paper's protocol (slider, 60 datasets of 50 clean + 50 modified images, 10 participants each).
"field": the authors' later field version (five-point Likert, whose high end means "real": the opposite sign).
The texts are in our own words. None says which images are modified. Words in braces are filled in when the text is
shown (``TEXT_PLACEHOLDERS``).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

TEXT_PLACEHOLDERS = {
    "{contact}": "the study's contact address",
    "{minutes}": "minutes a complete run takes",
    "{pay}": "pay for a complete run, with currency",
    "{items}": "images and checks that one participant rates",
    "{label_minimum}": "label of the scale's lower end",
    "{label_maximum}": "label of the scale's upper end",
}
# Whatever has a brace once the placeholders are taken out: a whole word in braces, or a brace with its neighbours.
LEFT_IN_BRACES = re.compile(r"\{[^{}\n]*\}|\{\S*|\S*\}")


def placeholder_problem(body: str) -> str:
    """What in braces participants would read as it stands, and what is filled in; empty if nothing is wrong."""
    for placeholder in TEXT_PLACEHOLDERS:
        body = body.replace(placeholder, "")
    if not (unknown := list(dict.fromkeys(LEFT_IN_BRACES.findall(body)))):
        return ""
    named = ", ".join(f"“{word}”" for word in unknown[:5])
    return f"Participants would read {named} as it stands. What is filled in: {', '.join(TEXT_PLACEHOLDERS)}."


@dataclass(frozen=True)
class Preset:
    """``settings`` are fields of Study, ``texts`` bodies by kind of text."""

    name: str
    label: str
    settings: Mapping[str, Any]
    texts: Mapping[str, str]


CONSENT = """\
We are researchers who study how people see images that were altered by software. In this study you look at \
{items} images, one after the other, and say for each how certain you are that it was altered or left as it was. It \
takes about {minutes} minutes. You should be at least 18 years old, and have normal or corrected sight.

For a complete run you are paid {pay}. At the start there is a short check of colour vision and one of the \
instructions. If one of them shows that the study is not suited to you, it ends there and you are paid for the time \
spent. Some items check that you are still attending; they say plainly what to do or are easy to see.

Taking part is voluntary. You can stop at any time by closing the page, without giving a reason and without any \
disadvantage beyond not being paid for a study that is not complete. Some images may be distorted; none is meant to \
be disturbing.

We keep your answers, when you gave them by our clock and by your browser's, how long they took, how often you left \
the window meanwhile, the size of the window and of the images on your screen, how finely the screen shows them (its \
pixel ratio), what you write to us, and, if you came from a panel, the ids it gave us, so that you can be paid. \
Answers may be left out of the study where this shows that somebody did not attend, for example because the window \
was left often. We do not ask for your name and do not store your address on the internet. Answers are analysed and \
may be published without the panel's ids, so that nobody can tell that they are yours.

You may have your answers deleted, or ask anything about the study, by writing to {contact}; from a panel, the \
panel's messages reach us too. Once the answers have been published without ids we can no longer find yours among them.

By accepting you say that you have read this, that you are at least 18 years old and that you take part of your own \
free will."""

INSTRUCTIONS = """\
You will see photographs one at a time. Some are exactly as the camera took them. Others were modified by software \
afterwards. Please say how certain you are about each.

A modification can be a filter over the whole image, an area whose colours were changed, or a pattern of fine changes \
to single pixels. The examples below show an unmodified image beside a modified one of each type. Modifications can \
be stronger or weaker than in the examples, and of other types.

Judge only whether the image was modified, not whether you like it, and not how sharp or well taken it is. Take the \
time you need, but trust your impression.

Now and then an item tells you which answer to give. Please give exactly that answer.

First we show you a few pairs of images. In each pair, pick the modified one."""

FEEDBACK = """\
certainty: How sure were you of your answers? | Not at all | A little | Fairly | Mostly | Completely
visibility: How well could you see the images? | Very badly | Badly | Acceptably | Well | Very well
used_system: Did you follow a fixed system or trick when deciding? | Never | Rarely | Sometimes | Often | Always
comment: Anything you would like to tell us?"""

PAPER_QUESTION = "How certain are you that this image was modified, or that it was not?"
FIELD_QUESTION = "Is this image real, or was it modified?"

_TEXTS = {"consent": CONSENT, "instructions": INSTRUCTIONS, "feedback": FEEDBACK}

_COMMON_SETTINGS: dict[str, Any] = {
    "dataset_count": 60,
    "clean_per_dataset": 50,
    "modified_per_dataset": 50,
    "participants_per_dataset": 10,
    "buffer_percent": 15,
    "plate_count": 5,
    "plates_required": 5,
    "comprehension_pair_count": 6,
    "comprehension_required": 5,
    "comprehension_tries": 1,
    "corrupted_check_count": 3,
    "instructed_check_count": 3,
    "attention_failures_allowed": 1,
    "attention_policy": "exclude_afterwards",
    "currency": "GBP",
    "hourly_rate": Decimal("7.60"),
    "minutes_complete": Decimal("13"),
    "minutes_colour_check": Decimal("1"),
    "minutes_comprehension": Decimal("2.5"),
}

PRESETS: dict[str, Preset] = {
    "paper": Preset(
        name="paper",
        label="Paper: slider from -100 to 100",
        settings={
            **_COMMON_SETTINGS,
            "scale_widget": "slider",
            "scale_minimum": -100,
            "scale_maximum": 100,
            "scale_direction": "higher_is_modified",
            "label_minimum": "I am 100% certain that this image is unmodified",
            "label_maximum": "I am 100% certain that this image is modified",
            "instructed_tolerance": 10,
        },
        texts={**_TEXTS, "question": PAPER_QUESTION},
    ),
    "field": Preset(
        name="field",
        label="Field: five points from definitely modified to definitely real",
        settings={
            **_COMMON_SETTINGS,
            "scale_widget": "likert",
            "scale_minimum": -2,
            "scale_maximum": 2,
            "scale_direction": "higher_is_clean",
            "label_minimum": "Definitely modified",
            "label_maximum": "Definitely real",
            "instructed_tolerance": 0,
        },
        texts={**_TEXTS, "question": FIELD_QUESTION},
    ),
}
