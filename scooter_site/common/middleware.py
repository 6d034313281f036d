"""What holds for every address of the site, and response headers that depend on the part of it."""

from collections.abc import Callable

from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.files.storage import storages
from django.http import Http404, HttpRequest, HttpResponse


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


class NoNullInPathMiddleware:
    """Nothing has an address with U+0000 in it, which PostgreSQL would refuse to look for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\0" in request.path_info:
            raise Http404
        return self.get_response(request)
