"""Response headers that depend on the part of the site."""

from collections.abc import Callable

from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.files.storage import storages
from django.http import HttpRequest, HttpResponse


class AdminContentSecurityPolicyMiddleware:
    """The admin theme evaluates its templates' expressions and styles inline; nothing else on the site may.

    Its import page also sends parts of uploads straight to the bucket, where files are kept in one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith("/admin/"):
            response._csp_update = {  # type: ignore[attr-defined]
                "script-src": [SELF, UNSAFE_EVAL, UNSAFE_INLINE],
                "style-src": [SELF, UNSAFE_INLINE],
            }
            if bucket := getattr(storages["private"], "origin", None):
                response._csp_update["connect-src"] = [SELF, bucket]  # type: ignore[attr-defined]
        return response
