"""The policy that keeps foreign scripts out: the usual one is put together once, another one for what asks for it."""

import pytest
from csp.constants import HEADER, NONCE, SELF
from csp.decorators import csp_update
from django.http import HttpResponse

from scooter_site.common.middleware import ContentSecurityPolicyMiddleware

USUAL = (
    "base-uri 'self'; default-src 'self'; form-action 'self'; frame-ancestors 'none'; img-src 'self' data:; "
    "object-src 'none'"
)


def directives(response) -> str:
    return "; ".join(sorted(response.headers[HEADER].split("; ")))


@pytest.mark.django_db
def test_nothing_but_the_admin_may_run_what_stands_in_a_page(client):
    for _ in range(2):
        assert directives(client.get("/")) == USUAL
        assert directives(client.get("/s/none/")) == USUAL
        policy = directives(client.get("/admin/login/"))
        assert "script-src 'self' 'unsafe-eval' 'unsafe-inline'" in policy
        assert set(USUAL.split("; ")) < set(policy.split("; "))


def test_a_view_may_change_it_for_its_own_response(rf):
    def plain(request):
        return HttpResponse()

    changed = ContentSecurityPolicyMiddleware(csp_update({"img-src": ["https://example.org"]})(plain))
    usual = ContentSecurityPolicyMiddleware(plain)
    assert "img-src 'self' data: https://example.org" in directives(changed(rf.get("/")))
    assert directives(usual(rf.get("/"))) == USUAL


def test_a_nonce_that_a_page_asks_for_is_left_to_django_csp(rf, settings):
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": {"script-src": [SELF, NONCE]}}
    seen = []

    def with_nonce(request):
        seen.append(str(request.csp_nonce))
        return HttpResponse()

    response = ContentSecurityPolicyMiddleware(with_nonce)(rf.get("/"))
    assert f"'nonce-{seen[0]}'" in response.headers[HEADER]
