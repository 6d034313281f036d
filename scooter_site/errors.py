"""Error pages: JSON for API clients, the site's own pages for people."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from studies.views import notices

# Their pages show nothing of the rest of the site.
PARTICIPANT_PAGES = "/s/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, HTTPStatus.BAD_REQUEST, "The request could not be understood.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, HTTPStatus.FORBIDDEN, "You do not have permission to do this.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, HTTPStatus.NOT_FOUND, "There is nothing at this address.")


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong on our side. It has been logged.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form came back without its protection against forged requests, mostly because cookies are off."""
    if request.path.startswith(PARTICIPANT_PAGES) and request.content_type != "application/json":
        return notices.notice_page(request, notices.page_expired())
    detail = "CSRF check failed."
    if request.path.startswith(PARTICIPANT_PAGES):  # read by a person whose answer was not taken
        detail = "This page was open for too long: please reload it. Your earlier answers are saved."
    return _answer(request, HTTPStatus.FORBIDDEN, detail, template="403_csrf.html")


def _answer(request: HttpRequest, status: HTTPStatus, detail: str, template: str = "") -> HttpResponse:
    # Scripts of the site's own pages send JSON, and can read only JSON: on participants' pages as the page of the
    # ratings has all its refusals.
    if request.path.startswith(PARTICIPANT_PAGES) and request.content_type == "application/json":
        return JsonResponse({"error": detail}, status=status)
    if request.path.startswith("/api/") or request.content_type == "application/json":
        return JsonResponse({"detail": detail}, status=status)
    return render(request, template or f"{status.value}.html", status=status)
