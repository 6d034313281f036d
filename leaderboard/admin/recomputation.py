"""What waits to be computed, and what failed."""

from django.contrib import admin, messages
from django.db.models import F, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from leaderboard.admin.shared import looked_at, recompute_soon
from leaderboard.models import Recomputation
from scooter_site.common.admin_tools import ReadOnlyAdmin


@admin.register(Recomputation)
class RecomputationAdmin(ReadOnlyAdmin, ModelAdmin):
    """Each pair whose results were ever computed."""

    list_display = ("__str__", "state", "requested_at", "runs", "failures", "problem")
    list_display_links = None
    list_select_related = ("attack", "target_model")
    search_fields = ("attack__name", "target_model__name")
    # PostgreSQL takes nothing for the largest value: what waits would stand below what does not.
    ordering = ("-failures", F("requested_at").desc(nulls_last=True), "pk")
    actions = ("recompute_now",)

    def has_recompute_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("leaderboard.change_entry")

    @admin.action(description="Recompute now", permissions=["recompute"])
    def recompute_now(self, request: HttpRequest, queryset: QuerySet[Recomputation]) -> None:
        pairs = sorted(queryset.order_by().values_list("attack_id", "target_model_id"))
        recompute_soon(pairs)
        self.message_user(request, f"{looked_at(len(pairs))}.", messages.SUCCESS)

    @display(description="status", label={"Up to date": "success", "Waits": "info", "Failed": "danger"})
    def state(self, row: Recomputation) -> str:
        if row.failures:
            return "Failed"
        return "Up to date" if row.requested_at is None else "Waits"
