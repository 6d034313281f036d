"""The Atom feed of published and retracted snapshots."""

from datetime import datetime

from django.contrib.syndication.views import Feed
from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.urls import reverse, reverse_lazy
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from leaderboard.models import Snapshot, SnapshotStatus

NEWEST = 50


class SnapshotFeed(Feed):
    """What happened last on all public boards: publications, and retractions, however old what they retract.

    Demonstrations, which may publish every few minutes, are left out.
    """

    feed_type = Atom1Feed
    title = "Scooter: published leaderboards"
    subtitle = "Every snapshot of a board that was published, or retracted."
    link = reverse_lazy("leaderboard")
    feed_url = reverse_lazy("board-feed")

    def items(self) -> QuerySet[Snapshot]:
        found = Snapshot.objects.exclude(status=SnapshotStatus.DRAFT).filter(
            board__is_public=True, board__is_demo=False
        )
        last_change = Coalesce("retracted_at", "published_at")
        return found.select_related("board").order_by(last_change.desc(), "-pk")[:NEWEST]

    def item_title(self, item: Snapshot) -> str:
        return f"{item.board.name}, {item.label}"

    def item_description(self, item: Snapshot) -> str:
        # Atom's summaries are HTML; what people write is not.
        if item.is_retracted:
            return escape(f"Retracted: {item.retraction_reason}")
        return escape(item.note or f"Snapshot {item.number} of {item.board.name} was published.")

    def item_link(self, item: Snapshot) -> str:
        return f"{reverse('board', args=[item.board.slug])}?snapshot={item.number}"

    def item_guid(self, item: Snapshot) -> str:
        return f"tag:scooter,2026:board/{item.board.pk}/snapshot/{item.number}"

    def item_pubdate(self, item: Snapshot) -> datetime | None:
        return item.published_at

    def item_updateddate(self, item: Snapshot) -> datetime | None:
        return item.retracted_at or item.published_at
