"""What holds for every address of the site, and response headers that depend on the part of it."""

from collections.abc import Callable

from csp.constants import HEADER, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware
from csp.utils import build_policy
from django.conf import settings
from django.core.files.storage import storages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase


class ContentSecurityPolicyMiddleware(CSPMiddleware):
    """django-csp's own, but what nearly all responses have in common is put together once.

    Doing it anew takes about a tenth of the time that an image needs.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        super().__init__(get_response)
        self._usual_policy = build_policy()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_changed = any(name.startswith("_csp_") for name in [*vars(request), *vars(response)])
        if is_changed or settings.DEBUG:  # with DEBUG on, Django's own error pages are exempt
            return super().process_response(request, response)
        response.headers.setdefault(HEADER, self._usual_policy)
        return response


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
