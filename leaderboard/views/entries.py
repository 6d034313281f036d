"""The page of one entry, its plots and its badge."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from imagedb.models import Visibility
from imagedb.selectors.visibility import visible_images
from leaderboard import selectors
from leaderboard.board_plots import ENTRY_PLOTS
from leaderboard.board_table import interval_picture, scale_ends
from leaderboard.citation import cite_entry
from leaderboard.entry_facts import (
    check_rows,
    checks_of_participants,
    ends_of_participations,
    image_extremes,
    reliability_rows,
    value_rows,
)
from leaderboard.formatting import deciding_interval, decimals_of, format_interval, format_number
from leaderboard.kept import kept
from leaderboard.models import EntryVerdict
from leaderboard.plots.badge import draw_badge
from leaderboard.plots.row_interval import RowIntervals, shared_axis
from leaderboard.plots.svg import svg
from leaderboard.selectors.history import history_of
from leaderboard.selectors.rows import Row
from leaderboard.statistics.equivalence import default_bound
from leaderboard.views.asked import (
    newer_number,
    public_board,
    refuses_unclear_queries,
    snapshot_number,
    snapshot_of,
    titled,
)
from leaderboard.views.board_files import picture, plot_response
from scooter_site.common.page_meta import page_meta

BADGE_SECONDS = 300  # others embed it: it may be this old


def _entry(request: HttpRequest, slug: str, attack: str, target_model: str) -> tuple[Row, list[Row]]:
    """The entry that an address means, and all visible ones of its snapshot. Raises Http404 or UnclearQuery."""
    snapshot = snapshot_of(public_board(slug), snapshot_number(request))
    visible = selectors.visible_entries(snapshot)
    for entry in visible:
        if entry.attack.slug == attack and entry.target_model.slug == target_model:
            return entry, visible
    raise Http404("There is no such entry in this snapshot.")


@require_safe
@refuses_unclear_queries
def entry(request: HttpRequest, slug: str, attack: str, target_model: str) -> HttpResponse:
    """All that is known of one pair on a board."""
    entry, visible = _entry(request, slug, attack, target_model)
    snapshot = entry.snapshot
    board = snapshot.board
    details = selectors.entry_details(entry)
    decimals = decimals_of(board.scale_minimum, board.scale_maximum)
    here = reverse("entry", args=[slug, attack, target_model])
    permanent = f"snapshot={snapshot.number}"
    address = request.build_absolute_uri(f"{here}?{permanent}")
    axis = shared_axis([entry.difference, entry.ci90_low, entry.ci90_high], snapshot.bound)
    drawn = {name.replace("-", "_"): _drawn(name, entry, details) for name in ENTRY_PLOTS}
    images = image_extremes(details, visible_images(request.user), decimals)
    number = format_number(entry.difference, decimals, always_signed=True)
    interval = format_interval(entry.ci90_low, entry.ci90_high, decimals)
    title = titled(f"{entry}: {board.name}", snapshot)
    description = (
        f"{'Retracted: ' if snapshot.is_retracted else ''}{entry}: {entry.verdict_label.lower()}, difference {number} "
        f"{interval} by {entry.participants} participants ({board.name})."
    )
    context = {
        "page": "leaderboard",
        "entry": entry,
        "snapshot": snapshot,
        "board": board,
        "scale": scale_ends(board),
        "count": len(visible),
        "ranked": sum(one.rank is not None for one in visible),
        "newer": newer_number(snapshot, selectors.published_snapshot(snapshot.board)),
        "deciding": deciding_interval(snapshot.alpha),
        "default_bound": default_bound(board.scale_minimum, board.scale_maximum),
        "number": number,
        "interval": interval,
        "picture": interval_picture(entry, RowIntervals(axis, snapshot.bound), decimals),
        "values": value_rows(entry, decimals),
        "details": details,
        "drawn": drawn,
        "reliability": reliability_rows(details),
        "checks": check_rows(entry, details, decimals),
        "participant_checks": checks_of_participants(details),
        "participation_ends": ends_of_participations(details),
        "disagreements": details.get("robustness", {}).get("disagreements", []),
        "images": images,
        "history": [
            (
                version,
                format_number(version.difference, decimals, always_signed=True),
                format_interval(version.ci90_low, version.ci90_high, decimals),
            )
            for version in history_of(entry)
        ],
        "here": here,
        "permanent": permanent,
        "citation": cite_entry(entry, address),
        "badge": request.build_absolute_uri(f"{here}badge.svg"),
        "badge_target": request.build_absolute_uri(here),
        **page_meta(request, title, description, query=permanent, **_public_picture(images, here, permanent)),
    }
    return render(request, "leaderboard/entry.html", context)


def _drawn(name: str, entry: Row, details: dict[str, Any]) -> str:
    return mark_safe(svg(ENTRY_PLOTS[name](entry, details), is_file=False))  # noqa: S308 - escaped there


def _public_picture(images: dict[str, Any], here: str, permanent: str) -> dict[str, str]:
    """For those who share a link: a modified image that anybody may see, or else the distributions."""
    for pictured in images.get("convincing", []):
        if pictured.image.visibility == Visibility.PUBLIC:
            return {
                "image": reverse("imagedb:image-file", args=[pictured.image.public_id]),
                "image_description": f"A modified image of the class {pictured.image.image_class.name}",
            }
    return {
        "image": f"{here}plots/distributions.png?{permanent}",
        "image_description": "How people rated clean and modified images",
    }


@require_safe
@refuses_unclear_queries
def entry_plot_file(
    request: HttpRequest, slug: str, attack: str, target_model: str, name: str, kind: str
) -> HttpResponse:
    """A plot of an entry, as SVG or PNG."""
    if name not in ENTRY_PLOTS:
        raise Http404("There is no such plot.")
    entry, _ = _entry(request, slug, attack, target_model)
    content = kept(
        entry.snapshot,
        [entry],
        name,
        kind,
        compute=lambda: picture(ENTRY_PLOTS[name](entry, selectors.entry_details(entry)), kind),
    )
    return plot_response(content, kind, f"{attack}-{target_model}-snapshot-{entry.snapshot.number}-{name}")


@require_safe
@refuses_unclear_queries
def entry_badge(request: HttpRequest, slug: str, attack: str, target_model: str) -> HttpResponse:
    """Rank and verdict in a small picture for other pages; without a snapshot it follows the newest."""
    entry, _ = _entry(request, slug, attack, target_model)
    decimals = decimals_of(entry.snapshot.board.scale_minimum, entry.snapshot.board.scale_maximum)
    number = format_number(entry.difference, decimals, always_signed=True)
    rank = "" if entry.rank is None else f"#{entry.rank} · "
    verdict = entry.verdict_label.lower()
    text = verdict if entry.difference is None else f"{rank}{verdict} ({number})"
    colour = entry.verdict
    if entry.snapshot.is_retracted:
        colour, text = EntryVerdict.NOT_ESTIMABLE, "retracted"
    left = "Scooter demo" if entry.snapshot.board.is_demo else "Scooter"
    response = HttpResponse(svg(draw_badge(left, colour, text), margin=0), content_type="image/svg+xml; charset=utf-8")
    patch_cache_control(response, public=True, max_age=BADGE_SECONDS)
    return response
