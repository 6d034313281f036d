"""What each step's template shows. Nothing here tells an answer, a kind, a score or a code before its time."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from studies import selectors
from studies.checks import NO_DIGIT
from studies.flow import Outcome, Step, steps_of
from studies.forms import FeedbackForm
from studies.models import (
    Modification,
    Panel,
    Participation,
    ParticipationKind,
    ScaleDirection,
    Stimulus,
    StimulusPurpose,
    Study,
    TextKind,
)
from studies.views.rating import page_data
from studies.way_back import return_url

REDIRECT_SECONDS = 10

PART_NAMES = {
    Step.CONSENT: "Consent",
    Step.COLOUR_CHECK: "Colour check",
    Step.INSTRUCTIONS: "Instructions",
    Step.COMPREHENSION: "Practice",
    Step.MAIN: "Main part",
    Step.FEEDBACK: "Feedback",
}

EXAMPLE_CAPTIONS = {
    Modification.COLOUR: "Modified: an area has another colour",
    Modification.FILTER: "Modified: a filter over the whole image",
    Modification.PIXEL: "Modified: small changes of many pixels",
    Modification.CORRUPTION: "Modified: strongly disturbed",
}


class StepIsOver(Exception):
    """The step's last item was answered after the step had been read: there is nothing left to show of it."""


def page_context(request: HttpRequest, participation: Participation) -> dict[str, Any]:
    """Context of the current step's template. Raises StepIsOver."""
    step = Step(participation.step)
    context: dict[str, Any] = {"step": step.value, "parts": parts_of(participation.study, step)}
    if participation.kind == ParticipationKind.PREVIEW:
        context["preview_steps"] = _preview_steps(participation.study)
        context["preview_at"] = f"{step.value}:{participation.outcome}" if step is Step.END else step.value
    if step not in {Step.CONSENT, Step.END}:
        context["heartbeat_url"] = reverse("studies:heartbeat", args=[participation.study.slug])
    if step is not Step.END:
        context["personal_link"] = _personal_link(request, participation)
    match step:
        case Step.CONSENT:
            context["text"] = _text(participation.study, TextKind.CONSENT)
        case Step.COLOUR_CHECK:
            context |= _plate_context(participation)
        case Step.INSTRUCTIONS:
            context["text"] = _text(participation.study, TextKind.INSTRUCTIONS)
            context["examples"] = example_pairs(participation.study)
            context["is_repeated"] = participation.comprehension_attempt > 1
        case Step.COMPREHENSION:
            context |= _pair_context(participation)
        case Step.MAIN:
            context |= _main_context(participation)
        case Step.FEEDBACK:
            # What was posted comes here only when it has to be changed: nobody should type a comment twice.
            posted = request.POST if request.method == "POST" else None
            context["form"] = study_feedback_form(participation.study, posted)
        case Step.END:
            context |= _end_context(participation)
    return context


def _text(study: Study, kind: TextKind) -> str:
    text = selectors.study_text(study, kind)
    return selectors.render_text(study, text.body) if text else ""


def study_feedback_form(study: Study, data: Mapping[str, str] | None = None) -> FeedbackForm:
    """The study's optional questions after the main study."""
    text = selectors.study_text(study, TextKind.FEEDBACK)
    return feedback_form(study, text.body if text else "", data)


def feedback_form(study: Study, body: str, data: Mapping[str, str] | None = None) -> FeedbackForm:
    """The questions of ``body``, none if it is empty. Raises FeedbackError."""
    return FeedbackForm(selectors.feedback_items(study, body) if body else [], data)


def _image_address(study: Study, kind: str, shown: Any) -> str:
    return reverse("studies:image", args=[study.slug, kind, shown.token])


def _preview_steps(study: Study) -> list[tuple[str, str]]:
    """Where a preview can go: every step of the study, and every page that it can end with."""
    steps = steps_of(study.rules)
    missing = {
        Outcome.COLOUR_CHECK_FAILED: Step.COLOUR_CHECK not in steps,
        Outcome.COMPREHENSION_FAILED: Step.COMPREHENSION not in steps,
    }
    ends = [
        (f"{Step.END}:{outcome}", f"End: {outcome.label.lower()}") for outcome in Outcome if not missing.get(outcome)
    ]
    return [(step.value, PART_NAMES[step]) for step in steps] + ends


def parts_of(study: Study, step: Step) -> dict[str, Any] | None:
    """Which part of how many this is; None at the end."""
    steps = steps_of(study.rules)
    if step not in steps:
        return None
    return {"number": steps.index(step) + 1, "total": len(steps), "name": PART_NAMES[step]}


def _personal_link(request: HttpRequest, participation: Participation) -> str:
    """Where a participant of a direct study continues on another device; "" where the link they have does that."""
    study = participation.study
    identity = getattr(participation, "identity", None)
    is_own_kind = study.panel == Panel.DIRECT and participation.kind == ParticipationKind.REAL
    if not is_own_kind or identity is None or identity.participant_id:
        return ""
    address = reverse("studies:landing", args=[study.slug])
    return request.build_absolute_uri(f"{address}?session={identity.session_id}")


def _plate_context(participation: Participation) -> dict[str, Any]:
    trial = selectors.current_plate(participation)
    if trial is None:
        raise StepIsOver
    return {
        "trial": trial,
        "total": participation.study.plate_count,
        "image": _image_address(participation.study, "plate", trial),
        "digits": [str(digit) for digit in range(10)],
        "no_digit": NO_DIGIT,
    }


def _pair_context(participation: Participation) -> dict[str, Any]:
    trial = selectors.current_pair(participation)
    if trial is None:
        raise StepIsOver
    study = participation.study
    return {
        "trial": trial,
        "total": study.comprehension_pair_count,
        "sides": [
            {"side": "left", "label": "Left image", "key": "1", "image": _image_address(study, "pair-left", trial)},
            {"side": "right", "label": "Right image", "key": "2", "image": _image_address(study, "pair-right", trial)},
        ],
    }


def example_pairs(study: Study) -> list[dict[str, Any]]:
    """Pairs of an unmodified and a modified image, in the order of their numbers."""
    stimuli = Stimulus.objects.filter(study=study, purpose=StimulusPurpose.EXAMPLE).order_by("number", "id")
    pairs: dict[int, dict[str, Any]] = {}
    for stimulus in stimuli:
        pair = pairs.setdefault(stimulus.number, {})
        address = _image_address(study, "example", stimulus)
        if stimulus.modification == Modification.NONE:
            pair["unmodified"] = address
        else:
            pair["modified"] = address
            pair["caption"] = EXAMPLE_CAPTIONS[Modification(stimulus.modification)]
    return [pair for pair in pairs.values() if {"unmodified", "modified"} <= pair.keys()]


def _main_context(participation: Participation) -> dict[str, Any]:
    study = participation.study
    items = page_data(participation)
    if items["trial"] is None:
        raise StepIsOver
    context = scale_context(study)
    return {
        **context,
        "question": _text(study, TextKind.QUESTION),
        "progress": selectors.progress(participation),
        "data": {
            **context["data"],
            **items,
            "minimum_viewing_ms": study.minimum_viewing_ms,
            "break_every": study.break_every,
            "minutes": float(study.minutes_of_ratings),
            "rate_url": reverse("studies:rate", args=[study.slug]),
            "back_url": reverse("studies:back", args=[study.slug]),
            "run_url": reverse("studies:run", args=[study.slug]),
        },
    }


def scale_context(study: Study) -> dict[str, Any]:
    """What the page of the main study shows whatever the item, at the first one."""
    return {
        "progress": selectors.Progress(done=0, total=study.trial_count),
        "points": study.protocol.buttons(study.setup),
        "data": {
            "trial": {"position": 1, "total": study.trial_count},
            "may_go_back": study.may_go_back,
            "scale": {
                "widget": study.scale_widget,
                "minimum": study.scale_minimum,
                "maximum": study.scale_maximum,
                "higher_is_modified": study.scale_direction == ScaleDirection.HIGHER_IS_MODIFIED,
            },
        },
    }


def _completion_url(participation: Participation, code: str) -> str:
    """Where the panel takes the code; "" where participants copy it."""
    study = participation.study
    if study.panel == Panel.PROLIFIC:
        return settings.PROLIFIC_COMPLETION_URL.format(code=quote(code, safe=""))
    identity = getattr(participation, "identity", None)
    ids = {
        "participant": identity.participant_id if identity else "",
        "session": identity.session_id if identity and study.session_parameter else "",
    }
    return return_url(study.return_url, {"code": code, **ids})


def _end_context(participation: Participation) -> dict[str, Any]:
    code = participation.completion_code.code if participation.completion_code else ""
    is_prolific = participation.study.panel == Panel.PROLIFIC
    return {
        "outcome": participation.outcome,
        "is_prolific": is_prolific,
        "asks_to_return": is_prolific and participation.outcome in {Outcome.DECLINED, Outcome.TIMED_OUT},
        "may_begin_again": selectors.may_begin_again(participation),
        "code": code,
        "completion_url": _completion_url(participation, code) if code else "",
        "redirect_seconds": 0 if participation.kind == ParticipationKind.PREVIEW else REDIRECT_SECONDS,
    }
