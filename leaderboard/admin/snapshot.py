"""Snapshots: to look at, and to retract."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from leaderboard.admin.shared import ReasonForm, question_page
from leaderboard.models import Entry, Snapshot, SnapshotStatus
from leaderboard.services.publication import retract
from scooter_site.common.admin_tools import ReadOnlyAdmin, change_url, list_url, signed_in


@admin.register(Snapshot)
class SnapshotAdmin(ReadOnlyAdmin, ModelAdmin):
    """A published snapshot never changes; all that can be done is to say that it should not be relied on."""

    list_display = ("__str__", "state", "entries_link", "published_at", "published_by", "data_cutoff")
    list_select_related = ("board", "published_by")
    list_filter = (("board", RelatedDropdownFilter), ("status", ChoicesDropdownFilter))
    list_filter_submit = True
    change_form_outer_before_template = "admin/leaderboard/snapshot_panel.html"
    fieldsets = (
        (None, {"fields": ("board", "number", "state", "note")}),
        ("What it follows from", {"fields": ("data_cutoff", "code_version", "seed", "input_digest", "rules")}),
        ("Published", {"fields": ("published_at", "published_by")}),
        ("Retracted", {"fields": ("retracted_at", "retracted_by", "retraction_reason")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).annotate(stored_entries=Count("entries"))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.retract_view)
        return [path("<int:snapshot_id>/retract/", view, name="leaderboard_snapshot_retract"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        snapshot = Snapshot.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
        context: dict[str, Any] = {}
        if snapshot is not None:
            context = {
                "snapshot": snapshot,
                "entries_url": list_url(Entry, f"snapshot__id__exact={snapshot.pk}"),
                "board_url": change_url(snapshot.board),
                "retract_url": reverse("admin:leaderboard_snapshot_retract", args=[snapshot.pk]),
                "may_retract": snapshot.status == SnapshotStatus.PUBLISHED
                and request.user.has_perm("leaderboard.publish_board"),
            }
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def retract_view(self, request: HttpRequest, snapshot_id: int) -> HttpResponse:
        """Asked for with GET, the question; with POST and a reason, the deed."""
        if not request.user.has_perm("leaderboard.publish_board"):
            raise PermissionDenied
        snapshot = get_object_or_404(Snapshot.objects.select_related("board"), pk=snapshot_id)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            try:
                retract(snapshot, by=signed_in(request), reason=form.cleaned_data["reason"])
            except ValidationError as error:
                messages.error(request, " ".join(error.messages))
            else:
                self.log_change(request, snapshot, f"Retracted: {form.cleaned_data['reason']}")
                messages.success(request, f"{snapshot} is retracted. It stays readable and says why.")
            return HttpResponseRedirect(change_url(snapshot))
        return question_page(
            request,
            self,
            "snapshot_retract.html",
            "Retract",
            form=form,
            original=snapshot,
            snapshot=snapshot,
            back_url=change_url(snapshot),
        )

    @display(
        description="status",
        ordering="status",
        label={"Published": "success", "Draft": "info", "Retracted": "danger"},
    )
    def state(self, snapshot: Snapshot) -> str:
        return snapshot.get_status_display()

    @display(description="entries", ordering="stored_entries")
    def entries_link(self, snapshot: Any) -> SafeString:
        address = list_url(Entry, f"snapshot__id__exact={snapshot.pk}")
        return format_html('<a class="text-link" href="{}">{}</a>', address, snapshot.stored_entries)
