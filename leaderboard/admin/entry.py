"""Results, to look at: nobody edits them, but they can be computed anew."""

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from leaderboard.admin.shared import decimals, looked_at, recompute_soon
from leaderboard.formatting import format_interval
from leaderboard.models import Entry
from leaderboard.selectors.entries import HEAVY_FIELDS
from scooter_site.common.admin_tools import ReadOnlyAdmin

VERDICT_COLOURS = {
    "Imperceptible": "success",
    "Perceptible": "warning",
    "Inconclusive": "info",
    "Not estimable": "default",
}


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin, ModelAdmin):
    list_display = (
        "__str__",
        "snapshot",
        "rank",
        "difference_shown",
        "interval",
        "verdict_shown",
        "participants",
        "flags_shown",
        "computed_at",
    )
    list_select_related = ("snapshot__board", "attack", "target_model")
    list_filter = (
        ("snapshot__board", RelatedDropdownFilter),
        ("snapshot__status", ChoicesDropdownFilter),
        ("attack", RelatedDropdownFilter),
        ("target_model", RelatedDropdownFilter),
        ("verdict", ChoicesDropdownFilter),
    )
    list_filter_submit = True
    search_fields = ("attack__name", "target_model__name")
    actions = ("recompute_now",)
    fieldsets = (
        (None, {"fields": ("attack", "target_model", "snapshot", "external_result", "flags_shown", "computed_at")}),
        (
            "Result",
            {
                "description": "In points of the board's scale, always “higher = more certain that the image is "
                "modified”. A draft's entries get their rank and Holm's p value when they are published.",
                "fields": (
                    ("difference_shown", "verdict_shown"),
                    ("standard_error", "degrees_of_freedom"),
                    ("interval", "interval95"),
                    ("p_lower", "p_upper"),
                    ("holm_p_value", "supported_bound"),
                    ("rank", "ranks_between"),
                ),
            },
        ),
        (
            "Ratings",
            {
                "fields": (
                    ("participants", "ratings"),
                    ("mean_modified_shown", "mean_clean_shown"),
                    ("sd_modified", "sd_clean"),
                    ("ratings_modified", "ratings_clean"),
                    ("images_modified", "images_clean"),
                    "images_unverified",
                )
            },
        ),
        (
            "Detection and reliability",
            {
                "fields": (
                    ("auc", "auc_interval"),
                    ("accuracy_modified", "accuracy_clean"),
                    "d_prime",
                    ("icc_single", "icc_mean"),
                    ("krippendorff_alpha", "split_half"),
                    ("attack_success_rate", "fools_unnoticed"),
                    ("images_attacked", "images_fooling"),
                )
            },
        ),
        ("Provenance", {"fields": ("input_digest", "inputs_sha256", "inputs_bytes", "code_version", "data_cutoff")}),
        ("Details", {"classes": ("collapse",), "fields": ("details_shown",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        entries = super().get_queryset(request)
        # The list shows many rows, and no details.
        return entries if request.resolver_match and request.resolver_match.kwargs else entries.defer(*HEAVY_FIELDS)

    def has_recompute_permission(self, request: HttpRequest) -> bool:
        # Results themselves stay read-only; computing them again needs the right to change them.
        return request.user.has_perm("leaderboard.change_entry")

    @admin.action(description="Recompute now", permissions=["recompute"])
    def recompute_now(self, request: HttpRequest, queryset: QuerySet[Entry]) -> None:
        pairs = sorted(set(queryset.order_by().values_list("attack_id", "target_model_id")))
        recompute_soon(pairs)
        self.message_user(
            request,
            f"{looked_at(len(pairs))}, in the drafts; what is published stays as it is.",
            messages.SUCCESS,
        )

    @display(description="difference", ordering="difference")
    def difference_shown(self, entry: Entry) -> str:
        return decimals(entry.difference, signed=True)

    @display(description="90 % interval")
    def interval(self, entry: Entry) -> str:
        return format_interval(entry.ci90_low, entry.ci90_high, 2)

    @display(description="95 % interval")
    def interval95(self, entry: Entry) -> str:
        return format_interval(entry.ci95_low, entry.ci95_high, 2)

    @display(description="95 % interval of the AUC")
    def auc_interval(self, entry: Entry) -> str:
        return format_interval(entry.auc_low, entry.auc_high, 2)

    @display(description="ranks with 90 % probability")
    def ranks_between(self, entry: Entry) -> str:
        return "–" if entry.rank_low is None else f"{entry.rank_low} to {entry.rank_high}"

    @display(description="verdict", ordering="verdict", label=VERDICT_COLOURS)
    def verdict_shown(self, entry: Entry) -> str:
        return entry.get_verdict_display()

    @display(description="mean modified", ordering="mean_modified")
    def mean_modified_shown(self, entry: Entry) -> str:
        return decimals(entry.mean_modified)

    @display(description="mean clean", ordering="mean_clean")
    def mean_clean_shown(self, entry: Entry) -> str:
        return decimals(entry.mean_clean)

    @display(description="flags")
    def flags_shown(self, entry: Entry) -> str:
        return ", ".join(entry.flag_labels) or "–"

    @display(description="as stored")
    def details_shown(self, entry: Any) -> SafeString:
        return format_html('<pre class="scooter-citation">{}</pre>', json.dumps(entry.details, indent=1)[:20000])
