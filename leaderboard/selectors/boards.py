"""Boards and their snapshots, as the public sees them."""

from django.db.models import OuterRef, QuerySet, Subquery

from leaderboard.models import Board, Snapshot, SnapshotStatus
from scooter_site.common.prepared import PreparedQuery


def public_boards() -> QuerySet[Board]:
    """Boards that anybody may see, those of demonstrations last; with or without a published snapshot."""
    return Board.objects.filter(is_public=True).order_by("is_demo", "name")


def published_snapshots() -> QuerySet[Snapshot]:
    """The newest snapshot of every public board that has one."""
    newest = (
        Snapshot.objects.filter(board=OuterRef("board"), status=SnapshotStatus.PUBLISHED)
        .order_by("-number")
        .values("pk")[:1]
    )
    return (
        Snapshot.objects.filter(board__is_public=True, pk=Subquery(newest))
        .select_related("board")
        .order_by("board__is_demo", "board__name")
    )


def published_snapshot(board: Board, number: int | None = None) -> Snapshot | None:
    """The newest published snapshot of a board, or the one of that number, which may have been retracted since.

    None if there is none, or if the board is not public.
    """
    if not board.is_public:
        return None
    if number is None:
        newest: Snapshot | None = _NEWEST.first(board.pk)
        return newest
    return snapshots_of(board).filter(number=number).first()


def snapshots_of(board: Board) -> QuerySet[Snapshot]:
    """All that were ever published, newest first; retracted ones too, which say so."""
    return board.snapshots.exclude(status=SnapshotStatus.DRAFT).select_related("board").order_by("-number")


# Every page of a board asks for it.
_NEWEST = PreparedQuery(
    lambda board: (
        Snapshot.objects.filter(board=board, status=SnapshotStatus.PUBLISHED)
        .select_related("board")
        .order_by("-number")[:1]
    ),
    2**40,
)
