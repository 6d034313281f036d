"""Response headers that depend on the part of the site."""

from collections.abc import Callable

from csp.constants import UNSAFE_EVAL, UNSAFE_INLINE
from django.http import HttpRequest, HttpResponse


class AdminContentSecurityPolicyMiddleware:
    """The admin theme evaluates its templates' expressions and styles inline; nothing else on the site may."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith("/admin/"):
            response._csp_update = {  # type: ignore[attr-defined]
                "script-src": ["'self'", UNSAFE_EVAL, UNSAFE_INLINE],
                "style-src": ["'self'", UNSAFE_INLINE],
            }
        return response
