"""Boards: their rules, the draft beside what is published, and publishing."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget

from leaderboard.admin.shared import PublishForm, decimals, looked_at, question_page, recompute_soon
from leaderboard.models import Board, Entry, ExternalResult, Recomputation, Snapshot, SnapshotStatus
from leaderboard.selectors.changes import Change
from leaderboard.selectors.rows import AnyEntry
from leaderboard.services.publication import (
    NothingToPublish,
    OutdatedDraft,
    draft_state,
    newest_snapshot,
    pending_changes,
    publish,
)
from leaderboard.services.requests import pairs_of_board
from scooter_site.common.admin_tools import StayOnPage, add_url, change_url, list_url, signed_in
from studies.protocols import protocols

SCALE = ("scale_minimum", "scale_maximum")


class BoardForm(forms.ModelForm):
    protocol = forms.ChoiceField(
        required=False,
        choices=lambda: [("", "Any"), *((known.preset.name, known.preset.label) for known in protocols())],
        widget=UnfoldAdminSelectWidget,
        help_text="Only studies made from this preset.",
    )


@admin.register(Board)
class BoardAdmin(StayOnPage, ModelAdmin):
    """The first result on a scale makes a board; further ones look at the same ratings by other rules."""

    form = BoardForm
    list_display = ("name", "scale", "protocol_shown", "publication_policy", "newest", "draft_link", "is_public")
    list_filter = (("is_demo", BooleanRadioFilter), ("publication_policy", ChoicesDropdownFilter))
    list_filter_submit = True
    search_fields = ("name", "slug")
    autocomplete_fields = ("target_models",)
    change_form_outer_before_template = "admin/leaderboard/board_panel.html"
    fieldsets = (
        (None, {"fields": ("name", "slug", "description")}),
        ("What is compared", {"fields": (SCALE, "protocol", "target_models")}),
        (
            "By which rules",
            {
                "description": "Whoever changes these has all results of the draft computed anew. What is published "
                "keeps the rules that it was made by.",
                "fields": (
                    ("equivalence_bound", "alpha"),
                    ("minimum_participants", "ranks_few_raters"),
                    "verified_images_only",
                ),
            },
        ),
        ("How it is shown", {"fields": ("publication_policy", "is_public")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        newest = (
            Snapshot.objects.filter(board=OuterRef("pk"), status=SnapshotStatus.PUBLISHED)
            .order_by("-number")
            .values("number")[:1]
        )
        in_draft = Count("snapshots__entries", filter=Q(snapshots__status=SnapshotStatus.DRAFT))
        return super().get_queryset(request).annotate(newest_number=Subquery(newest), in_draft=in_draft)

    def get_readonly_fields(self, request: HttpRequest, obj: Board | None = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        was_published = obj.snapshots.exclude(status=SnapshotStatus.DRAFT).exists()
        return (*SCALE, "slug") if was_published else SCALE

    def get_prepopulated_fields(self, request: HttpRequest, obj: Board | None = None) -> dict[str, tuple[str, ...]]:
        return {} if obj else {"slug": ("name",)}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if set(form.changed_data) - {"name", "slug", "description", "publication_policy", "is_public"}:
            pairs = pairs_of_board(form.instance)
            recompute_soon(pairs)
            if pairs:
                messages.info(request, f"{looked_at(len(pairs))}.")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        board = Board.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
        context = {} if board is None else self._panel(request, board)
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        views = (("publish", self.publish_view), ("recompute", self.recompute_view))
        own = [
            path(f"<int:board_id>/{name}/", self.admin_site.admin_view(view), name=f"leaderboard_board_{name}")
            for name, view in views
        ]
        return own + super().get_urls()

    def publish_view(self, request: HttpRequest, board_id: int) -> HttpResponse:
        """Asked for with GET, what would change; with POST, the deed."""
        board = self._board(request, board_id, "leaderboard.publish_board")
        # Read before the changes that the page shows: what comes in between is noticed.
        form = PublishForm(request.POST if request.method == "POST" else None, initial={"seen": draft_state(board)})
        if request.method == "POST" and form.is_valid():
            try:
                snapshot = publish(
                    board, by=signed_in(request), note=form.cleaned_data["note"], seen=form.cleaned_data["seen"]
                )
            except (NothingToPublish, OutdatedDraft) as error:
                messages.error(request, str(error))
            else:
                self.log_change(request, board, f"Published snapshot {snapshot.number}")
                messages.success(request, f"{snapshot} is published. Its digest is {snapshot.input_digest}.")
            return HttpResponseRedirect(change_url(board))
        return question_page(
            request,
            self,
            "board_publish.html",
            "Publish",
            form=form,
            original=board,
            back_url=change_url(board),
            **self._panel(request, board),
        )

    def recompute_view(self, request: HttpRequest, board_id: int) -> HttpResponse:
        """Have all pairs of the board computed anew."""
        board = self._board(request, board_id, "leaderboard.change_entry")
        if request.method == "POST":
            pairs = pairs_of_board(board)
            recompute_soon(pairs)
            messages.success(request, f"{looked_at(len(pairs))}.")
        return HttpResponseRedirect(change_url(board))

    def _board(self, request: HttpRequest, board_id: int, permission: str) -> Board:
        if not request.user.has_perm(permission):
            raise PermissionDenied
        return get_object_or_404(Board, pk=board_id)

    def _panel(self, request: HttpRequest, board: Board) -> dict[str, Any]:
        """The draft beside the newest snapshot, and what waits."""
        pairs = set(pairs_of_board(board))
        waiting: list[Recomputation] = []
        failed: list[Recomputation] = []
        for row in Recomputation.objects.filter(Q(requested_at__isnull=False) | Q(failures__gt=0)).select_related(
            "attack", "target_model"
        ):
            if (row.attack_id, row.target_model_id) in pairs:
                (failed if row.failures else waiting).append(row)
        newest = newest_snapshot(board)
        draft = board.snapshots.filter(status=SnapshotStatus.DRAFT).first()
        return {
            "board": board,
            "newest": newest,
            "newest_url": change_url(newest) if newest else "",
            "rules_changed": newest is not None and newest.rules != board.rules,
            "draft_count": draft.entries.count() if draft else 0,
            "changes": [_change_row(change) for change in pending_changes(board)],
            "waiting": waiting,
            "failed": failed,
            "draft_url": list_url(Entry, f"snapshot__id__exact={draft.pk}") if draft else "",
            "snapshots_url": list_url(Snapshot, f"board__id__exact={board.pk}"),
            "publish_url": reverse("admin:leaderboard_board_publish", args=[board.pk]),
            "recompute_url": reverse("admin:leaderboard_board_recompute", args=[board.pk]),
            "external_url": add_url(ExternalResult, f"board={board.pk}"),
            "may_publish": request.user.has_perm("leaderboard.publish_board"),
            "may_recompute": request.user.has_perm("leaderboard.change_entry"),
            "may_add_external": request.user.has_perm("leaderboard.add_externalresult") and not board.is_demo,
        }

    @display(description="scale")
    def scale(self, board: Board) -> str:
        return f"{board.scale_minimum} to {board.scale_maximum}".replace("-", "\N{MINUS SIGN}")

    @display(description="protocol", ordering="protocol")
    def protocol_shown(self, board: Board) -> str:
        return board.protocol or "any"

    @display(description="newest snapshot")
    def newest(self, board: Any) -> str:
        return "–" if board.newest_number is None else str(board.newest_number)

    @display(description="entries in the draft", ordering="in_draft")
    def draft_link(self, board: Any) -> SafeString:
        address = list_url(Entry, f"snapshot__board__id__exact={board.pk}&snapshot__status__exact=draft")
        return format_html('<a class="text-link" href="{}">{}</a>', address, board.in_draft)


def _change_row(change: Change) -> dict[str, str]:
    """A change as the panel's table shows it: published value, then the draft's."""

    def told(entry: AnyEntry | None) -> str:
        if entry is None:
            return "–"
        difference = decimals(entry.difference, signed=True)
        return f"{difference}, {entry.verdict_label.lower()}, {entry.participants} people"

    return {
        "kind": change.kind,
        "pair": str(change.entry),
        "published": told(change.older),
        "draft": told(change.newer),
        "rank": f"{_rank(change.older)} → {_rank(change.newer)}",
    }


def _rank(entry: AnyEntry | None) -> str:
    return "–" if entry is None or entry.rank is None else str(entry.rank)
