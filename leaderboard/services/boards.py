"""Boards and their drafts."""

from collections.abc import Iterable

from django.db.models import Q

from leaderboard.models import Board, PublicationPolicy, Snapshot, SnapshotStatus


def boards_for(*, scale_minimum: int, scale_maximum: int, is_demo: bool, target_model_id: int) -> list[Board]:
    """The boards that ratings of this kind may appear on; of those for one protocol only its ratings.

    Without any board of the scale the first result makes one, which is not stored yet.
    """
    of_scale = Board.objects.filter(scale_minimum=scale_minimum, scale_maximum=scale_maximum, is_demo=is_demo)
    boards = list(of_scale.filter(Q(target_models=None) | Q(target_models=target_model_id)).distinct().order_by("pk"))
    if boards or of_scale.exists():
        return boards
    return [_default_board(scale_minimum, scale_maximum, is_demo)]


def stored_board(board: Board) -> Board:
    """The board itself or, if it is new, the one that was stored by now; storing it if need be."""
    if board.pk is not None:
        return board
    for number in range(1, 100):
        ending = "" if number == 1 else f"-{number}"
        stored, _ = Board.objects.get_or_create(
            slug=f"{board.slug}{ending}",
            defaults={
                "name": f"{board.name}{ending.replace('-', ' ')}",
                "scale_minimum": board.scale_minimum,
                "scale_maximum": board.scale_maximum,
                "is_demo": board.is_demo,
                "publication_policy": board.publication_policy,
            },
        )
        if (stored.scale_minimum, stored.scale_maximum, stored.is_demo) == (
            board.scale_minimum,
            board.scale_maximum,
            board.is_demo,
        ):
            return stored
    raise ValueError(f"no free address for a board like {board.slug}")


def draft_of(board: Board) -> Snapshot:
    """The one draft of a board."""
    return Snapshot.objects.get_or_create(board=board, status=SnapshotStatus.DRAFT)[0]


def lock_drafts(drafts: Iterable[Snapshot]) -> None:
    """Let nobody else store in these drafts or publish them until the transaction ends.

    Publishing copies the names of files that storing replaces: whoever deletes a replaced file must see every copy.
    """
    ids = {draft.pk for draft in drafts}
    # In the order of their ids, so that two who lock several never wait for each other.
    list(Snapshot.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))


def _default_board(minimum: int, maximum: int, is_demo: bool) -> Board:
    """Real results are published by a person. A demonstration shows at once what happens."""
    scale = f"cale {minimum} to {maximum}".replace("-", "\N{MINUS SIGN}")
    slug = f"scale-{minimum}-to-{maximum}".replace("--", "-minus-")
    return Board(
        name=f"Demonstration: s{scale}" if is_demo else f"S{scale}",
        slug=f"demo-{slug}" if is_demo else slug,
        scale_minimum=minimum,
        scale_maximum=maximum,
        is_demo=is_demo,
        publication_policy=PublicationPolicy.AT_ONCE if is_demo else PublicationPolicy.MANUAL,
    )
