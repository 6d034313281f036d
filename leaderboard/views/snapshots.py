"""The snapshots of a board: all of them, and what changed between two."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard import selectors
from leaderboard.board_query import LARGEST_NUMBER, UnclearQuery
from leaderboard.formatting import decimals_of, format_interval, format_number
from leaderboard.models import Board, Snapshot
from leaderboard.selectors import Change
from leaderboard.selectors.rows import AnyEntry
from leaderboard.views.asked import public_board, refuses_unclear_queries, snapshot_of
from scooter_site.common.page_meta import page_meta

ON_A_PAGE = 50


@require_safe
@refuses_unclear_queries
def snapshots(request: HttpRequest, slug: str) -> HttpResponse:
    """Snapshots, newest first, those below ``before``; with ``older`` and ``newer`` what changed between these two."""
    board = public_board(slug)
    published = selectors.snapshots_of(board)
    before = None
    numbers: list[int] = []
    if "before" in request.GET:
        (before,) = _numbers(request, "before")
    elif request.GET:
        numbers = sorted(_numbers(request, "older", "newer"))
    listed = published if before is None else published.filter(number__lt=before)
    # One more than is shown: the last one shown names it, and it begins the next page.
    found = list(listed[: ON_A_PAGE + 1])
    context: dict[str, Any] = {
        "page": "leaderboard",
        "board": board,
        "snapshots": [
            (snapshot, found[place + 1].number if place + 1 < len(found) else None)
            for place, snapshot in enumerate(found[:ON_A_PAGE])
        ],
        "earlier": found[ON_A_PAGE - 1].number if len(found) > ON_A_PAGE else None,
        "before": before,
        "newest": published.values_list("number", flat=True).first(),
        **page_meta(
            request,
            f"Snapshots of {board.name}",
            f"All published versions of {board.name}, and what changed between them.",
        ),
    }
    if numbers:
        older, newer = (snapshot_of(board, number) for number in numbers)
        context |= {"older": older, "newer": newer, "rules": _rules(older, newer), "changes": _changes(older, newer)}
    return render(request, "leaderboard/snapshots.html", context)


def _numbers(request: HttpRequest, *names: str) -> list[int]:
    """The numbers that a query string gives under these names, and under no other. Raises UnclearQuery."""
    problems = dict.fromkeys(set(request.GET) - {*names}, "Unknown here. Known are before; older and newer.")
    numbers = []
    for name in names:
        values = request.GET.getlist(name)
        if len(values) != 1 or not (values[0].isascii() and values[0].isdigit() and len(values[0]) <= 9):
            problems[name] = "Give the number of one snapshot."
        else:
            numbers.append(min(int(values[0]), LARGEST_NUMBER))
    if problems:
        raise UnclearQuery(problems)
    return numbers


def _rules(older: Snapshot, newer: Snapshot) -> list[tuple[str, str, str]]:
    """What both were computed and ranked by, where it differs: its name, how it was, and how it is."""
    found = []
    for name, value in newer.rules.items():
        if older.rules.get(name) != value:
            field: Any = Board._meta.get_field(name)
            found.append((str(field.verbose_name), _rule(older.rules.get(name)), _rule(value)))
    if older.code_version != newer.code_version:
        found.append(("program", older.code_version or "unknown", newer.code_version or "unknown"))
    return found


def _rule(value: Any) -> str:
    if value in ("", None, []):
        return "any"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


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
