"""The page of the current step, and what is posted from it (but for ratings: studies.views.rating).

The server's pointer decides: a page never says which step comes next, and a post for a past step changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from scooter_site.common.throttling import address_of, seconds_to_wait, take_back
from studies.flow import Step
from studies.forms import ChoiceForm, ConsentForm
from studies.models import Panel, Participation, ParticipationKind, Study
from studies.services.participations import (
    Device,
    DeviceNotSuitable,
    InvalidAnswer,
    StudyFull,
    StudyNotOpen,
    accept_consent,
    answer_pair,
    answer_plate,
    decline_consent,
    enter_study,
    finish_instructions,
    give_feedback,
)
from studies.views import notices
from studies.views.access import Newcomer, announced, participant_page, remember, study_page, to_run
from studies.views.pages import StepIsOver, page_context, study_feedback_form


class TooManyArrivals(Exception):
    """So many people of one address have begun this study lately that the next has to wait, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def run(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the current step, or take what was posted from it; and let in who was announced by the landing page."""
    newcomer = announced(request, slug)
    return _run(request, slug) if newcomer is None else _let_in(request, slug, newcomer=newcomer)


@study_page
def _let_in(request: HttpRequest, study: Study, newcomer: Newcomer) -> HttpResponse:
    try:
        participation = enter_study(study, kind=newcomer.kind, session_id=newcomer.session_id)
    except StudyFull:
        return notices.notice_page(request, notices.full(study), study)
    except StudyNotOpen as error:
        return notices.notice_page(request, notices.not_open(study, error.reason), study)
    response = _page(request, participation)
    remember(response, participation)
    return response


@participant_page
def _run(request: HttpRequest, participation: Participation) -> HttpResponse:
    study = participation.study
    if request.method != "POST" or request.POST.get("step") != participation.step:
        # A post from a page that was left open: the answer is the page that is current now.
        return to_run(study) if request.method == "POST" else _page(request, participation)
    try:
        problem = _take(request, participation)
    except InvalidAnswer as error:
        problem = str(error)
    except DeviceNotSuitable as error:
        return notices.notice_page(request, notices.device_not_suitable(study, error.reason), study, participation)
    except TooManyArrivals as error:
        return notices.notice_page(request, notices.too_many_arrivals(study, error.seconds), study, participation)
    except StudyFull:
        return notices.notice_page(request, notices.full(study), study, participation)
    except StudyNotOpen as error:
        return notices.notice_page(request, notices.not_open(study, error.reason), study, participation)
    if problem:
        participation.refresh_from_db()
        return _page(request, participation, problem=problem)
    return to_run(study)


def _page(request: HttpRequest, participation: Participation, problem: str = "") -> HttpResponse:
    try:
        shown = page_context(request, participation)
    except StepIsOver:
        return to_run(participation.study)
    context = {
        "study": participation.study,
        "participation": participation,
        "is_preview": participation.kind == ParticipationKind.PREVIEW,
        "problem": problem,
        **shown,
    }
    status = HTTPStatus.BAD_REQUEST if problem else HTTPStatus.OK
    return render(request, f"studies/{participation.step}.html", context, status=status)


def _take(request: HttpRequest, participation: Participation) -> str:
    """Hand the posted answer of the current step to its service. Returns what is wrong with it, or ""."""
    match Step(participation.step):
        case Step.CONSENT:
            return _take_consent(request, participation)
        case Step.COLOUR_CHECK | Step.COMPREHENSION:
            return _take_choice(request, participation)
        case Step.INSTRUCTIONS:
            finish_instructions(participation.pk)
        case Step.FEEDBACK:
            return _take_feedback(request, participation)
        case Step.MAIN | Step.END:
            pass  # ratings have their own address, and nothing follows the end
    return ""


def _take_consent(request: HttpRequest, participation: Participation) -> str:
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return "Please choose whether you want to take part."
    if form.cleaned_data["decision"] == "decline":
        decline_consent(participation.pk)
        return ""
    device = Device(
        viewport_width=form.cleaned_data["viewport_width"],
        viewport_height=form.cleaned_data["viewport_height"],
        device_pixel_ratio=form.cleaned_data["device_pixel_ratio"],
    )
    with _counted_arrival(request, participation):
        accept_consent(participation.pk, device)
    return ""


@contextmanager
def _counted_arrival(request: HttpRequest, participation: Participation) -> Iterator[None]:
    """Keep one address from holding every place: with the consent comes a place, and a program can consent often.

    Counted are places: neither who declines nor who gets none (a small window, a full study) uses up those of others
    at the address, a class for example. Prolific lets each account in once and may send hundreds within an hour, none
    of whom is to be sent away.
    """
    study = participation.study
    if participation.kind != ParticipationKind.REAL or study.panel != Panel.DIRECT:
        yield
        return
    who = f"study {study.pk} {address_of(request)}"
    seconds = seconds_to_wait("arrivals", who)
    if seconds is not None:
        raise TooManyArrivals(seconds)
    try:
        yield
    except Exception:
        take_back("arrivals", who)
        raise


def _take_choice(request: HttpRequest, participation: Participation) -> str:
    form = ChoiceForm(request.POST)
    if not form.is_valid():
        return "Please choose one of the answers first."
    answer = answer_plate if participation.step == Step.COLOUR_CHECK else answer_pair
    answer(participation.pk, form.cleaned_data["token"], form.cleaned_data["answer"])
    return ""


def _take_feedback(request: HttpRequest, participation: Participation) -> str:
    form = study_feedback_form(participation.study, request.POST)
    if not form.is_valid():
        return "Please look at the answer that is marked below. Nothing you have written is lost."
    give_feedback(participation.pk, form.answers())
    return ""
