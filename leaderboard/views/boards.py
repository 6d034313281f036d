"""Boards: the list of them, one of them, and its plots with the tables behind them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from leaderboard import selectors
from leaderboard.board_plots import BOARD_PLOTS, heat_map_table
from leaderboard.board_query import FILTERS, BoardQuery
from leaderboard.board_table import by_snapshot, make_table, scale_ends, verdict_mark
from leaderboard.citation import cite_snapshot
from leaderboard.columns import ALWAYS, COLUMNS
from leaderboard.kept import kept
from leaderboard.models import EntryVerdict, Snapshot
from leaderboard.plots.svg import svg
from leaderboard.selectors.rows import Row
from leaderboard.views.asked import (
    Asked,
    NothingPublished,
    public_board,
    read_asked,
    refuses_unclear_queries,
    titled,
)
from scooter_site.common.page_meta import page_meta

LABELS = {
    "target_model": "Target model",
    "family": "Family of attacks",
    "verdict": "Verdict",
    "year": "Year of the attack",
    "min_raters": "Participants, at least",
}
# Of each board, so many entries stand on the list of boards.
FIRST_ENTRIES = 5
FIRST_COLUMNS = ("rank", "attack", "target_model", "difference", "interval", "verdict")
# A plot of more rows is no part of the page, but a picture of its own.
SHORT_PLOT = 40


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """All boards with their first entries; if there is only one, that board."""
    boards = list(selectors.public_boards())
    if len(boards) == 1:
        query = request.GET.urlencode()
        return redirect(reverse("board", args=[boards[0].slug]) + (f"?{query}" if query else ""))
    entries = by_snapshot(selectors.published_entries())
    summaries = [
        {
            "snapshot": snapshot,
            "count": len(of_board),
            "tally": tally(of_board),
            "table": make_table(snapshot, of_board[:FIRST_ENTRIES], BoardQuery(columns=FIRST_COLUMNS)),
        }
        for snapshot, of_board in entries
    ]
    shown = {snapshot.board_id for snapshot, _ in entries}
    context = {
        "page": "leaderboard",
        "summaries": summaries,
        "empty_boards": [board for board in boards if board.pk not in shown],
        **page_meta(
            request,
            "Leaderboard",
            "How perceptible the modifications of each attack are to people, by attack and target model.",
        ),
    }
    return render(request, "leaderboard/boards.html", context)


@require_safe
@refuses_unclear_queries
def board(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest published snapshot of a board, or the one asked for."""
    board = public_board(slug)
    description = (
        board.description or f"{board.name}: how perceptible adversarial images are to people, attack by attack."
    )
    try:
        asked = read_asked(board, request)
    except NothingPublished:
        context = {"page": "leaderboard", "board": board, **page_meta(request, board.name, description)}
        return render(request, "leaderboard/board_empty.html", context)
    if request.GET.urlencode() != (spelling := asked.query.encoded()):
        # What a form sends: empty fields, and columns as they are anyway.
        return redirect(reverse("board", args=[slug]) + (f"?{spelling}" if spelling else ""))
    address = request.build_absolute_uri(reverse("board", args=[slug]))
    body = kept(
        asked.snapshot,
        asked.visible,
        "board",
        address,
        asked.newer,
        asked.query.encoded(),
        is_common=asked.query.is_common,
        compute=lambda: render_to_string("leaderboard/board_body.html", _body(asked, address)),
    )
    picture = reverse("board-plot-file", args=[slug, "intervals", "png"])
    context = {
        "page": "leaderboard",
        "body": mark_safe(body),  # noqa: S308 - a rendered template
        "feed": reverse("board-feed"),
        **page_meta(
            request,
            titled(board.name, asked.snapshot),
            description,
            query=asked.query.encoded(),
            image=f"{picture}?{asked.permanent_query}",
            image_description="The differences of all pairs with their intervals",
        ),
    }
    return render(request, "leaderboard/board.html", context)


def _body(asked: Asked, address: str) -> dict[str, Any]:
    snapshot, entries, query = asked.snapshot, asked.entries, asked.query
    permanent = asked.permanent_query
    return {
        "snapshot": snapshot,
        "board": snapshot.board,
        "scale": scale_ends(snapshot.board),
        "newer": asked.newer,
        "count": len(asked.visible),
        "shown": len(entries),
        "tally": tally(asked.visible),
        "participants": sum(entry.participants for entry in asked.visible),
        "query": query,
        "fields": _fields(asked),
        "columns": [(column, column.key in query.columns, column.key in ALWAYS) for column in COLUMNS],
        "table": make_table(snapshot, entries, query),
        "plots": [
            {
                "plot": plot,
                "meaning": plot.meaning_at(snapshot.alpha),
                # None: fetched by the browser when it comes into view, for its size.
                "picture": mark_safe(svg(plot.draw(snapshot, entries), is_file=False))  # noqa: S308 - escaped there
                if len(entries) <= SHORT_PLOT
                else None,
            }
            for plot in BOARD_PLOTS.values()
            if plot.has_points(entries)
        ],
        "permanent": permanent,
        "citation": cite_snapshot(snapshot, f"{address}?snapshot={snapshot.number}"),
        "meanings": [(column, column.meaning_at(snapshot.alpha)) for column in COLUMNS],
    }


def tally(entries: Sequence[Row]) -> list[tuple[str, str, int]]:
    """How many entries have each verdict: mark, label, number. The undecidable ones only if there are any."""
    counts = Counter(entry.verdict for entry in entries)
    return [
        (verdict_mark(verdict), label, counts[verdict])
        for verdict, label in EntryVerdict.choices
        if verdict != EntryVerdict.NOT_ESTIMABLE or counts[verdict]
    ]


def _fields(asked: Asked) -> list[dict[str, Any]]:
    """The filters of the form: with options to choose from, or a number to type."""
    return [
        {
            "name": name,
            "label": LABELS[name],
            "value": "" if (value := getattr(asked.query, name)) is None else str(value),
            "options": getattr(asked.choices, name, None),
        }
        for name in FILTERS
    ]


@require_safe
@refuses_unclear_queries
def board_plot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """One plot by itself, with the table behind it."""
    plot = BOARD_PLOTS.get(name)
    if plot is None:
        raise Http404("There is no such plot.")
    asked = read_asked(public_board(slug), request)
    file = reverse("board-plot-file", args=[slug, name, "png"])
    title = titled(f"{plot.title}: {asked.snapshot.board.name}", asked.snapshot)
    meaning = plot.meaning_at(asked.snapshot.alpha)
    context = {
        "page": "leaderboard",
        "plot": plot,
        "meaning": meaning,
        "snapshot": asked.snapshot,
        "board": asked.snapshot.board,
        "newer": asked.newer,
        "permanent": asked.permanent_query,
        "picture": mark_safe(svg(plot.draw(asked.snapshot, asked.entries), is_file=False)),  # noqa: S308
        "table": _table_behind(name, asked.snapshot, asked.entries, asked.query),
        "map": heat_map_table(asked.snapshot, asked.entries) if name == "heat-map" else None,
        **page_meta(
            request,
            title,
            meaning,
            query=asked.query.encoded(),
            image=f"{file}?{asked.permanent_query}",
            image_description=plot.title,
        ),
    }
    return render(request, "leaderboard/board_plot.html", context)


def _table_behind(name: str, snapshot: Snapshot, entries: Sequence[Row], query: BoardQuery) -> Any:
    if name == "heat-map":
        return None
    columns: tuple[str, ...] = ("rank", "attack", "target_model", "difference", "verdict")
    if name == "scatter":
        columns = (*columns, "attack_success_rate", "fools_unnoticed")
        entries = [e for e in entries if e.difference is not None and e.attack_success_rate is not None]
    return make_table(snapshot, entries, BoardQuery(columns=columns, sort=query.sort))
