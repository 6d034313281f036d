"""What a request to a board asks for: which snapshot, which of its entries, in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from leaderboard import selectors
from leaderboard.board_query import BoardQuery, Choices, UnclearQuery, parse
from leaderboard.models import Board, Snapshot
from leaderboard.selectors.rows import Row


@dataclass(frozen=True)
class Asked:
    """A snapshot that anybody may see; ``visible`` are its entries, ``entries`` those that were asked for, in order."""

    snapshot: Snapshot
    visible: Sequence[Row]
    entries: Sequence[Row]
    query: BoardQuery
    choices: Choices
    newest: Snapshot | None

    @property
    def newer(self) -> int | None:
        """The number of the board's newest published snapshot, if that is another one."""
        return newer_number(self.snapshot, self.newest)

    @property
    def permanent_query(self) -> str:
        """The query string that means the same for ever."""
        return self.query.encoded(snapshot=self.snapshot.number)


class NothingPublished(Http404):
    """The board has no published snapshot (any more), and none was asked for by its number."""


def public_board(slug: str) -> Board:
    """A board that anybody may see, or Http404."""
    return get_object_or_404(selectors.public_boards(), slug=slug)


def snapshot_of(board: Board, number: int | None) -> Snapshot:
    """The newest published snapshot, or the one of this number. Raises Http404."""
    found = selectors.published_snapshot(board, number)
    if found is None:
        raise Http404("There is no such snapshot.")
    return found


def read_asked(board: Board, request: HttpRequest) -> Asked:
    """What the query string asks for.

    Raises UnclearQuery, NothingPublished, or Http404 for a snapshot that is not there.
    """
    query = parse(request.GET.lists())
    newest = selectors.published_snapshot(board)
    if query.snapshot is not None:
        snapshot = snapshot_of(board, query.snapshot)
    elif newest is not None:
        snapshot = newest
    else:
        raise NothingPublished("Nothing is published on this board yet.")
    visible = selectors.visible_entries(snapshot)
    choices = Choices.of(visible)
    if query.target_model and query.target_model not in dict(choices.target_model):
        raise UnclearQuery({"target_model": "There is no entry of this target model on the board."})
    return Asked(snapshot, visible, query.apply(visible), query, choices, newest)


def snapshot_number(request: HttpRequest) -> int | None:
    """Of an address that knows no other parameter. Raises UnclearQuery."""
    query = parse(request.GET.lists())
    if others := sorted(set(request.GET) - {"snapshot"}):
        raise UnclearQuery(dict.fromkeys(others, "Unknown here. Known is snapshot."))
    return query.snapshot


def refuses_unclear_queries(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer 400, with what is wrong by parameter, where the view raises UnclearQuery."""

    @wraps(view)
    def wrapped(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        try:
            return view(request, *arguments, **options)
        except UnclearQuery as error:
            context = {"page": "leaderboard", "problems": error.problems, "address": request.path}
            return render(request, "leaderboard/unclear.html", context, status=400)

    return wrapped


def newer_number(snapshot: Snapshot, newest: Snapshot | None) -> int | None:
    """The number of ``newest``, the newest published snapshot of the board, if it is another one than ``snapshot``."""
    return newest.number if newest is not None and newest.pk != snapshot.pk else None


def titled(title: str, snapshot: Snapshot) -> str:
    """A window's or shared link's title; of a retracted snapshot it says so."""
    return f"{title}, {snapshot.label}" if snapshot.is_retracted else title
