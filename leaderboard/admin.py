"""Results, to look at: nobody edits them, but they can be computed anew."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.decorators import display

from leaderboard import tasks
from leaderboard.models import Board, Entry
from leaderboard.services.requests import request_recomputation
from scooter_site.common.admin_tools import ReadOnlyAdmin, list_url
from scooter_site.common.tasks import enqueue


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin, ModelAdmin):
    list_display = (
        "__str__",
        "snapshot",
        "participants",
        "ratings",
        "mean_modified_shown",
        "mean_clean_shown",
        "difference_shown",
        "computed_at",
    )
    list_select_related = ("snapshot__board", "attack", "target_model")
    list_filter = (
        ("snapshot__board", RelatedDropdownFilter),
        ("attack", RelatedDropdownFilter),
        ("target_model", RelatedDropdownFilter),
    )
    list_filter_submit = True
    search_fields = ("attack__name", "target_model__name")
    actions = ("recompute_now",)
    fieldsets = (
        (None, {"fields": ("attack", "target_model", "snapshot", "computed_at")}),
        ("Counts", {"fields": ("participants", "ratings", "images_modified", "images_clean")}),
        (
            "Result",
            {
                "description": "In points of the board's scale, always \"higher = more certain that the image is "
                'modified".',
                "fields": (
                    ("mean_modified_shown", "sd_modified_shown", "ratings_modified"),
                    ("mean_clean_shown", "sd_clean_shown", "ratings_clean"),
                    "difference_shown",
                ),
            },
        ),
        ("Provenance", {"fields": ("input_digest",)}),
    )

    def has_recompute_permission(self, request: HttpRequest) -> bool:
        # Results themselves stay read-only; computing them again needs the right to change them.
        return request.user.has_perm("leaderboard.change_entry")

    @admin.action(description="Recompute now", permissions=["recompute"])
    def recompute_now(self, request: HttpRequest, queryset: QuerySet[Entry]) -> None:
        pairs = set(queryset.values_list("attack_id", "target_model_id"))
        for attack_id, target_model_id in sorted(pairs):
            request_recomputation(attack_id, target_model_id)
            enqueue(tasks.recompute_pair, attack_id, target_model_id)
        self.message_user(
            request,
            f"{len(pairs)} pair{'' if len(pairs) == 1 else 's'} will be recomputed within seconds; "
            "the column “computed at” shows when it is done.",
            messages.SUCCESS,
        )

    @display(description="mean modified", ordering="mean_modified")
    def mean_modified_shown(self, entry: Entry) -> str:
        return _two_decimals(entry.mean_modified)

    @display(description="mean clean", ordering="mean_clean")
    def mean_clean_shown(self, entry: Entry) -> str:
        return _two_decimals(entry.mean_clean)

    @display(description="SD modified")
    def sd_modified_shown(self, entry: Entry) -> str:
        return _two_decimals(entry.sd_modified)

    @display(description="SD clean")
    def sd_clean_shown(self, entry: Entry) -> str:
        return _two_decimals(entry.sd_clean)

    @display(description="difference", ordering="difference")
    def difference_shown(self, entry: Entry) -> str:
        return _two_decimals(entry.difference)


@admin.register(Board)
class BoardAdmin(ModelAdmin):
    """Boards come into being with the first result on a scale; name and description may be put better."""

    list_display = ("name", "scale", "entries_link")
    fields = ("name", "slug", "description", "scale_minimum", "scale_maximum")
    readonly_fields = ("scale_minimum", "scale_maximum")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).annotate(entry_count=Count("snapshots__entries"))

    @display(description="scale")
    def scale(self, board: Board) -> str:
        return f"{board.scale_minimum} to {board.scale_maximum}"

    @display(description="entries", ordering="entry_count")
    def entries_link(self, board: Any) -> SafeString:
        address = list_url(Entry, f"snapshot__board__id__exact={board.pk}")
        return format_html('<a class="text-link" href="{}">{}</a>', address, board.entry_count)


def _two_decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
