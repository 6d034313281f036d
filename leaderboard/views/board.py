"""Home and leaderboard."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard import selectors
from leaderboard.tables import make_tables
from scooter_site.common.page_meta import page_meta


def home(request: HttpRequest) -> HttpResponse:
    """What Scooter is and how a study works."""
    meta = page_meta(
        request,
        "Is it really imperceptible?",
        "Scooter finds out, with real people, whether adversarial images are imperceptible.",
    )
    return render(request, "leaderboard/home.html", meta)


def leaderboard(request: HttpRequest) -> HttpResponse:
    """Every stored result, one table per board."""
    tables = make_tables(selectors.published_entries())
    description = "How perceptible the modifications of each attack are to people, by attack and target model."
    context = {"page": "leaderboard", "tables": tables, **page_meta(request, "Leaderboard", description)}
    return render(request, "leaderboard/leaderboard.html", context)
