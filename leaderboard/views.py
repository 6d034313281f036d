"""The public pages. They read stored rows and compute no statistics."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard import selectors
from leaderboard.tables import make_tables


def home(request: HttpRequest) -> HttpResponse:
    """What Scooter is and how a study works."""
    return render(request, "leaderboard/home.html")


def leaderboard(request: HttpRequest) -> HttpResponse:
    """Every stored result, one table per board."""
    tables = make_tables(selectors.entries())
    return render(request, "leaderboard/leaderboard.html", {"page": "leaderboard", "tables": tables})
