"""The Atom feed of published snapshots."""

from datetime import datetime

from django.contrib.syndication.views import Feed
from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy
from django.utils.feedgenerator import Atom1Feed

from leaderboard.models import Snapshot, SnapshotStatus

NEWEST = 50


class SnapshotFeed(Feed):
    """The newest snapshots of all public boards. A retracted one stays, and says so."""

    feed_type = Atom1Feed
    title = "Scooter: published leaderboards"
    subtitle = "Every snapshot of a board that was published, or retracted."
    link = reverse_lazy("leaderboard")
    feed_url = reverse_lazy("board-feed")

    def items(self) -> QuerySet[Snapshot]:
        found = Snapshot.objects.exclude(status=SnapshotStatus.DRAFT).filter(board__is_public=True)
        return found.select_related("board").order_by("-published_at", "-pk")[:NEWEST]

    def item_title(self, item: Snapshot) -> str:
        retracted = " (retracted)" if item.status == SnapshotStatus.RETRACTED else ""
        return f"{item.board.name}, snapshot {item.number}{retracted}"

    def item_description(self, item: Snapshot) -> str:
        if item.status == SnapshotStatus.RETRACTED:
            return f"Retracted: {item.retraction_reason}"
        return item.note or f"Snapshot {item.number} of {item.board.name} was published."

    def item_link(self, item: Snapshot) -> str:
        return f"{reverse('board', args=[item.board.slug])}?snapshot={item.number}"

    def item_guid(self, item: Snapshot) -> str:
        return f"tag:scooter,2026:board/{item.board.pk}/snapshot/{item.number}"

    def item_pubdate(self, item: Snapshot) -> datetime | None:
        return item.published_at

    def item_updateddate(self, item: Snapshot) -> datetime | None:
        return item.retracted_at or item.published_at
