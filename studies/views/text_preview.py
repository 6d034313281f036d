"""One text of a study as participants read it, before the study has anything else: for whoever writes it."""

from http import HTTPStatus
from typing import Any

from csp.decorators import csp_update
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from studies import selectors
from studies.feedback import FeedbackError
from studies.flow import Step
from studies.models import Study, TextKind
from studies.presets import placeholder_problem
from studies.views.access import may_preview, study_page
from studies.views.pages import example_pairs, feedback_form, parts_of, scale_context

STEPS = {
    TextKind.CONSENT: Step.CONSENT,
    TextKind.INSTRUCTIONS: Step.INSTRUCTIONS,
    TextKind.QUESTION: Step.MAIN,
    TextKind.FEEDBACK: Step.FEEDBACK,
}


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
# In a sandbox nothing can be sent: the page has the participant's buttons, and there is no participant.
@csp_update({"sandbox": ["allow-same-origin", "allow-scripts"]})
@study_page
def text_preview(request: HttpRequest, study: Study, kind: str) -> HttpResponse:
    """The page of the text, with the stored one, or with POST the one that was typed: nothing is saved."""
    if kind not in STEPS:
        raise Http404(f"There is no text {kind}.")
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if not may_preview(request):
        return HttpResponseForbidden("Only staff who may change studies can preview them.", content_type="text/plain")
    stored = selectors.study_text(study, kind)
    body = request.POST.get(f"text_{kind}", stored.body if stored else "").replace("\r\n", "\n")
    context: dict[str, Any] = {"study": study, "is_text_preview": True}
    try:
        context |= _page_of(study, TextKind(kind), body)
    except FeedbackError as error:
        context |= _page_of(study, TextKind(kind), "") | {"problem": str(error)}
    if problem := placeholder_problem(body):
        context["problem"] = problem
    template = "question_preview" if kind == TextKind.QUESTION else context["step"]
    status = HTTPStatus.BAD_REQUEST if "problem" in context else HTTPStatus.OK
    return render(request, f"studies/{template}.html", context, status=status)


def _page_of(study: Study, kind: TextKind, body: str) -> dict[str, Any]:
    step = STEPS[kind]
    context: dict[str, Any] = {"step": step.value, "parts": parts_of(study, step)}
    if kind == TextKind.FEEDBACK:
        return context | {"form": feedback_form(study, body)}
    text = selectors.render_text(study, body)
    if kind == TextKind.INSTRUCTIONS:
        return context | {"text": text, "examples": example_pairs(study)}
    if kind == TextKind.QUESTION:
        return context | {"question": text, **scale_context(study)}
    return context | {"text": text}
