"""The page a participant's link opens."""

import logging
import secrets

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from studies import links
from studies.flow import Step
from studies.landing import (
    Arrival,
    LandingProblem,
    LandingRefused,
    Parameters,
    read_direct,
    read_prolific,
    read_resumption,
    read_test,
)
from studies.models import Panel, ParticipantIdentity, Participation, ParticipationKind, Study
from studies.services.participations import (
    SessionOfAnother,
    SessionOfOtherKind,
    StudyFull,
    StudyNotOpen,
    enter_study,
    refuse_newcomers,
)
from studies.views import notices
from studies.views.access import Newcomer, announce, announced, current_participation, remember, study_page

logger = logging.getLogger(__name__)


@require_safe
@never_cache
@study_page
def landing(request: HttpRequest, study: Study) -> HttpResponse:
    """Exchange the parameters of the link for our own session, and send the browser to a clean address."""
    if request.method == "HEAD":  # asked by programs that check links: nobody arrives
        return HttpResponse()
    parameters = dict(request.GET.lists())
    try:
        participation = _enter(request, study, parameters)
    except LandingRefused as refused:
        logger.warning("Study %s: a link was refused (%s)", study.slug, refused)
        return _notice_page(request, notices.link_refused(study, refused), study)
    except StudyNotOpen as error:
        return _notice_page(request, notices.not_open(study, error.reason), study)
    except StudyFull:
        return _notice_page(request, notices.full(study), study)
    if participation is None:
        return _notice_page(request, notices.unknown_session(), study)
    response = HttpResponseRedirect(reverse("studies:run", args=[study.slug]))
    if isinstance(participation, Newcomer):
        announce(response, study, participation)
    else:
        remember(response, participation)
    return response


def _notice_page(request: HttpRequest, notice: notices.Notice, study: Study) -> HttpResponse:
    """For a visitor who may have been here before, and then may write to the researchers from there."""
    return notices.notice_page(request, notice, study, current_participation(request, study))


def _enter(request: HttpRequest, study: Study, parameters: Parameters) -> Participation | Newcomer | None:
    """The participation of who arrives, if the link or the browser says who that is; None for a false personal link."""
    if "test" in parameters:
        return _enter_test(request, study, parameters)
    if study.panel == Panel.PROLIFIC:
        arrival = read_prolific(parameters, prolific_study_id=study.prolific_study_id)
        return _enter_as(study, ParticipationKind.REAL, arrival)
    if session_id := read_resumption(parameters):
        # Only of people without an id of a panel, whose session ids are random: others come by their panel's link.
        if not ParticipantIdentity.objects.filter(study=study, session_id=session_id, participant_id="").exists():
            return None
        return _enter_as(study, ParticipationKind.REAL, Arrival(session_id=session_id))
    arrival = read_direct(parameters, participant=study.participant_parameter, session=study.session_parameter)
    if not arrival.session_id:
        here = current_participation(request, study)
        if here is not None and here.kind == ParticipationKind.REAL:
            arrival = Arrival(here.identity.participant_id, here.identity.session_id)
        else:
            return _newcomer(request, study, ParticipationKind.REAL)
    return _enter_as(study, ParticipationKind.REAL, arrival)


def _newcomer(request: HttpRequest, study: Study, kind: ParticipationKind) -> Newcomer:
    """Somebody whose link names no session. Raises StudyNotOpen or StudyFull where they would not be let in."""
    refuse_newcomers(study, kind)
    waiting = announced(request, study.slug)
    return waiting if waiting is not None and waiting.kind == kind else Newcomer(kind, secrets.token_hex(16))


def _enter_test(request: HttpRequest, study: Study, parameters: Parameters) -> Participation | Newcomer:
    tokens = parameters["test"]
    if len(tokens) != 1 or not links.is_valid_test_token(study, tokens[0]):
        raise LandingRefused(LandingProblem.MALFORMED, "test")
    arrival = read_test(parameters)
    if not arrival.session_id:
        here = current_participation(request, study)
        if here is not None and here.kind == ParticipationKind.TEST and here.step != Step.END:
            return here
        if not arrival.participant_id:
            return _newcomer(request, study, ParticipationKind.TEST)
    return _enter_as(study, ParticipationKind.TEST, arrival)


def _enter_as(study: Study, kind: ParticipationKind, arrival: Arrival) -> Participation:
    try:
        return enter_study(study, kind=kind, participant_id=arrival.participant_id, session_id=arrival.session_id)
    except SessionOfOtherKind:  # somebody's own link with the parameter of a test, or a test's session without it
        raise LandingRefused(LandingProblem.OTHER_PERSON, "test") from None
    except SessionOfAnother:
        raise LandingRefused(LandingProblem.OTHER_PERSON, _session_parameter(study, kind)) from None


def _session_parameter(study: Study, kind: ParticipationKind) -> str:
    """The name, in the study's links, of what says which session it is."""
    if kind == ParticipationKind.TEST or study.panel == Panel.PROLIFIC:
        return "SESSION_ID"
    return study.session_parameter or study.participant_parameter
