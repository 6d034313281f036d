"""The first page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from scooter_site.common.page_meta import page_meta


def home(request: HttpRequest) -> HttpResponse:
    """What Scooter is and how a study works."""
    meta = page_meta(
        request,
        "Is it really imperceptible?",
        "Scooter finds out, with real people, whether adversarial images are imperceptible.",
    )
    return render(request, "leaderboard/home.html", meta)
