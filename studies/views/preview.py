"""Previews: staff see the study as a participant does, and nothing of it is kept."""

from contextlib import suppress
from http import HTTPStatus

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationKind, Study
from studies.services.participations import InvalidAnswer, StudyNotOpen
from studies.services.previews import delete_preview, jump_preview, start_preview
from studies.views import notices
from studies.views.access import SeeOther, current_participation, forget, may_preview, remember, study_page, to_run

WHY_NOT = {
    "not_started": "Its images and checks have not been built yet. Build them first, on the page of the study.",
    "closed": "A closed study cannot be previewed. Copy it, and preview the copy.",
}


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@study_page
def preview(request: HttpRequest, study: Study) -> HttpResponse:
    """POST starts a preview; GET is the page before and after one."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if not may_preview(request):
        return HttpResponseForbidden("Only staff who may change studies can preview them.", content_type="text/plain")
    if request.method != "POST":
        return _page(request, study)
    if previous := _current_preview(request, study):
        delete_preview(previous.pk)
    try:
        participation = start_preview(study)
    except StudyNotOpen as error:
        return _page(request, study, problem=WHY_NOT[error.reason])
    response = to_run(study)
    remember(response, participation)
    return response


@require_POST
@never_cache
@study_page
def preview_jump(request: HttpRequest, study: Study) -> HttpResponse:
    """Go to any step of the running preview, or with "end:" and an outcome, to the page that ends so."""
    participation = _current_preview(request, study)
    if participation is None:
        return notices.notice_page(request, notices.no_session(study), study)
    step, _, outcome = request.POST.get("step", "").partition(":")
    outcome = outcome or Outcome.COMPLETED
    if step in set(Step) and outcome in set(Outcome):
        with suppress(InvalidAnswer):  # a step this study does not have: stay
            jump_preview(participation.pk, Step(step), Outcome(outcome))
    return to_run(study)


@require_POST
@never_cache
@study_page
def preview_leave(request: HttpRequest, study: Study) -> HttpResponse:
    """Delete the running preview; leaving twice is as good as once, and nobody leaves anything else by it."""
    response = SeeOther(reverse("studies:preview", args=[study.slug]) + "?left=1")
    if participation := _current_preview(request, study):
        delete_preview(participation.pk)
        forget(response, study)
    return response


def _current_preview(request: HttpRequest, study: Study) -> Participation | None:
    participation = current_participation(request, study)
    is_preview = participation is not None and participation.kind == ParticipationKind.PREVIEW
    return participation if is_preview else None


def _page(request: HttpRequest, study: Study, problem: str = "") -> HttpResponse:
    context = {
        "study": study,
        "problem": problem,
        "has_left": "left" in request.GET,
        "admin_url": reverse("admin:studies_study_change", args=[study.pk]),
    }
    return render(request, "studies/preview.html", context, status=HTTPStatus.CONFLICT if problem else HTTPStatus.OK)
