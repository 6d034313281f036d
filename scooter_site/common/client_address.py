"""Where a request comes from, for the log-in's protection against guessing; stored nowhere else."""

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The client's address: behind our own proxy what that proxy wrote last, else the connection's other end.

    Earlier entries of X-Forwarded-For are the client's own words and are not believed. Without this, everybody behind
    the proxy would have one address, and anybody could lock an account for all.
    """
    if settings.BEHIND_TLS_PROXY:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", 1)[-1].strip()
        if forwarded:
            return forwarded
    return request.META.get("REMOTE_ADDR", "")
