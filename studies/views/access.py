"""Which study and which participation a request is about.

The panel's ids come once, in the landing address. From then on a signed cookie of ours says who is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache, wraps
from uuid import UUID

from django.conf import settings
from django.core.signing import BadSignature
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseRedirectBase
from django.urls import reverse
from django.utils import timezone

from studies import selectors
from studies.models import Participation, Study
from studies.views import notices

COOKIE = "participation"
COOKIE_AGE = timedelta(days=30)
NEWCOMER_COOKIE = "newcomer"
NEWCOMER_COOKIE_AGE = timedelta(hours=1)


@dataclass(frozen=True)
class Newcomer:
    """Somebody whose link names no session, and of whom nothing is stored yet; ``kind`` is a ParticipationKind."""

    kind: str
    session_id: str


class SeeOther(HttpResponseRedirectBase):
    """303: whatever was posted, the answer is the page the server says."""

    status_code = 303


def study_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Give the view the study of the address's slug, or answer that there is none."""

    @wraps(view)
    def with_study(request: HttpRequest, slug: str, **parts: object) -> HttpResponse:
        study = selectors.study_of(slug)
        if study is None:
            return notices.notice_page(request, notices.unknown_study())
        return view(request, study, **parts)

    return with_study


def participant_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Give the view the participation that the cookie names, or answer that there is none, or no such study."""

    @wraps(view)
    def with_participation(request: HttpRequest, slug: str) -> HttpResponse:
        public_id = session_of(request, slug)
        participation = None if public_id is None else selectors.participation_of(public_id, slug)
        if participation is not None:
            return view(request, participation)
        study = selectors.study_of(slug)
        return notices.notice_page(request, notices.no_session(study) if study else notices.unknown_study(), study)

    return with_participation


def may_preview(request: HttpRequest) -> bool:
    """Whether the visitor is staff who may see studies as their participants do."""
    return request.user.is_staff and request.user.has_perm("studies.change_study")


def current_participation(request: HttpRequest, study: Study) -> Participation | None:
    """The participation that the cookie names, if it is valid, of this study and still there."""
    public_id = session_of(request, study.slug)
    return None if public_id is None else selectors.participation_of(public_id, study.slug)


def session_of(request: HttpRequest, slug: str) -> UUID | None:
    """The public id that a valid cookie of this study names; whether there is such a participation is not looked up."""
    signed = request.COOKIES.get(COOKIE)
    try:
        return None if signed is None else _signed_id(signed, slug, timezone.now().date())
    except BadSignature:
        return None


@lru_cache(maxsize=10_000)
def _signed_id(signed: str, slug: str, day: date) -> UUID:
    """The public id in a cookie, verified once a day: doing it for every image takes a tenth of what an image costs.

    Raises BadSignature (and keeps nothing) unless it is ours, of this study and within its age.
    """
    request = HttpRequest()
    request.COOKIES[COOKIE] = signed
    return UUID(request.get_signed_cookie(COOKIE, salt=_salt(slug), max_age=int(COOKIE_AGE.total_seconds())))


def remember(response: HttpResponse, participation: Participation) -> None:
    """Set the cookie that is the participant's session on this browser."""
    study = participation.study
    _set(response, study, COOKIE, str(participation.public_id), _salt(study.slug), COOKIE_AGE)
    response.delete_cookie(NEWCOMER_COOKIE, path=_path(study), samesite="Lax")


def announce(response: HttpResponse, study: Study, newcomer: Newcomer) -> None:
    """Have somebody let in at the next page, to which the browser brings this cookie.

    A browser that keeps no cookies, and a program that only fetches the link, so leave no participation behind.
    """
    value = f"{newcomer.kind}:{newcomer.session_id}"
    _set(response, study, NEWCOMER_COOKIE, value, _newcomer_salt(study.slug), NEWCOMER_COOKIE_AGE)


def announced(request: HttpRequest, slug: str) -> Newcomer | None:
    """Who comes from the landing page and has not been let in yet."""
    seconds = int(NEWCOMER_COOKIE_AGE.total_seconds())
    value = request.get_signed_cookie(NEWCOMER_COOKIE, default=None, salt=_newcomer_salt(slug), max_age=seconds)
    if value is None:
        return None
    kind, _, session_id = value.partition(":")
    return Newcomer(kind, session_id)


def _set(response: HttpResponse, study: Study, name: str, value: str, salt: str, age: timedelta) -> None:
    response.set_signed_cookie(
        name,
        value,
        salt=salt,
        max_age=int(age.total_seconds()),
        path=_path(study),
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )


def forget(response: HttpResponse, study: Study) -> None:
    """Remove the cookie."""
    response.delete_cookie(COOKIE, path=_path(study), samesite="Lax")


def to_run(study: Study) -> SeeOther:
    """Send the browser to the page of the step the server says."""
    return SeeOther(reverse("studies:run", args=[study.slug]))


def _salt(slug: str) -> str:
    return f"studies.participation.{slug}"


def _newcomer_salt(slug: str) -> str:
    return f"studies.newcomer.{slug}"


def _path(study: Study) -> str:
    return reverse("studies:landing", args=[study.slug])
