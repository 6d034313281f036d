"""The snapshots of a board: all of them, and what changed between two."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard import selectors
from leaderboard.board_query import LARGEST_NUMBER, UnclearQuery
from leaderboard.formatting import decimals_of, format_interval, format_number
from leaderboard.models import Snapshot
from leaderboard.selectors import Change
from leaderboard.selectors.rows import AnyEntry
from leaderboard.views.asked import public_board, refuses_unclear_queries, snapshot_of
from scooter_site.common.page_meta import page_meta


@require_safe
@refuses_unclear_queries
def snapshots(request: HttpRequest, slug: str) -> HttpResponse:
    """All snapshots, newest first; with ``older`` and ``newer`` what changed between these two."""
    board = public_board(slug)
    found = list(selectors.snapshots_of(board))
    numbers = _numbers(request)
    context: dict[str, Any] = {
        "page": "leaderboard",
        "board": board,
        "snapshots": [
            (snapshot, found[place + 1].number if place + 1 < len(found) else None)
            for place, snapshot in enumerate(found)
        ],
        "numbers": [snapshot.number for snapshot in found],
        **page_meta(
            request,
            f"Snapshots of {board.name}",
            f"All published versions of {board.name}, and what changed between them.",
        ),
    }
    if numbers:
        older, newer = (snapshot_of(board, number) for number in numbers)
        context |= {"older": older, "newer": newer, "changes": _changes(older, newer)}
    return render(request, "leaderboard/snapshots.html", context)


def _numbers(request: HttpRequest) -> tuple[int, int] | None:
    """The two snapshots to compare, older first; None if none are given. Raises UnclearQuery."""
    if not request.GET:
        return None
    problems = dict.fromkeys(set(request.GET) - {"older", "newer"}, "Unknown. Known are older, newer.")
    numbers = []
    for name in ("older", "newer"):
        values = request.GET.getlist(name)
        if len(values) != 1 or not (values[0].isascii() and values[0].isdigit() and len(values[0]) <= 9):
            problems[name] = "Give the number of one snapshot."
        else:
            numbers.append(min(int(values[0]), LARGEST_NUMBER))
    if problems:
        raise UnclearQuery(problems)
    return min(numbers), max(numbers)


def _changes(older: Snapshot, newer: Snapshot) -> list[tuple[Change, str, str]]:
    """Each pair that differs, with how it was and how it is."""
    decimals = decimals_of(newer.board.scale_minimum, newer.board.scale_maximum)
    return [
        (change, _result(change.older, decimals), _result(change.newer, decimals))
        for change in selectors.changes_between(older, newer)
    ]


def _result(entry: AnyEntry | None, decimals: int) -> str:
    if entry is None:
        return "–"
    number = format_number(entry.difference, decimals, always_signed=True)
    interval = format_interval(entry.ci90_low, entry.ci90_high, decimals)
    return f"{number} {interval}, {entry.verdict_label.lower()}, {entry.participants} participants"
