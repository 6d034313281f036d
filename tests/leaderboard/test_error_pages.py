import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from scooter_site.urls import handler400, handler403, handler404, handler500  # noqa: F401
from scooter_site.urls import urlpatterns as site_urls


def forbidden(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied("a reason that is not for the public")


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a reason that is not for the public")


def suspicious(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation("a reason that is not for the public")


def form(request: HttpRequest) -> HttpResponse:
    return HttpResponse("sent")


failing = [path("403/", forbidden), path("500/", broken), path("400/", suspicious), path("form/", form)]
urlpatterns = [*site_urls, path("test/", include(failing)), path("api/v1/test/", include(failing))]

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]

MESSAGES = {
    400: "could not be understood",
    403: "may not see this page",
    404: "nothing at this address",
    500: "went wrong on our side",
}


@pytest.fixture
def visitor():
    return Client(raise_request_exception=False, enforce_csrf_checks=True)


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_people_get_a_page_of_the_site(visitor, status, caplog):
    response = visitor.get(f"/test/{status}/")
    html = response.content.decode()
    assert response.status_code == status
    assert MESSAGES[status] in html
    assert "site-header" in html
    assert "not for the public" not in html


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_api_clients_get_json(visitor, status, caplog):
    response = visitor.get(f"/api/v1/test/{status}/")
    assert response.status_code == status
    assert response["Content-Type"] == "application/json"
    assert list(response.json()) == ["detail"]
    assert "not for the public" not in response.content.decode()


def test_a_form_without_protection_says_what_to_do(visitor, caplog):
    response = visitor.post("/test/form/")
    assert response.status_code == 403
    assert "This form has expired" in response.content.decode()


@pytest.mark.parametrize(
    ("address", "content_type"), [("/api/v1/test/form/", "application/json"), ("/test/form/", "application/json")]
)
def test_scripts_without_protection_get_json(visitor, address, content_type, caplog):
    response = visitor.post(address, data="{}", content_type=content_type)
    assert response.status_code == 403
    assert response.json() == {"detail": "CSRF check failed."}


def test_the_page_of_the_ratings_gets_its_own_json_for_every_refusal(visitor, caplog):
    refused = visitor.post("/s/any/rate/", data="{}", content_type="application/json")
    assert refused.status_code == 403
    assert refused.json() == {
        "error": "This page was open for too long: please reload it. Your earlier answers are saved."
    }
    missing = visitor.get("/s/any/nothing/there/", headers={"Content-Type": "application/json"})
    assert (missing.status_code, missing.json()) == (404, {"error": "There is nothing at this address."})


def test_the_error_page_needs_no_database(visitor, caplog, django_db_blocker):
    with django_db_blocker.block():
        response = visitor.get("/test/500/")
    assert response.status_code == 500
    assert MESSAGES[500] in response.content.decode()


def test_browsers_find_the_icon(visitor):
    response = visitor.get("/favicon.ico")
    assert response.status_code == 302
    assert response["Location"].endswith("favicon.svg")


def test_health(visitor):
    assert visitor.get("/health/").content == b"ok"
