"""Imports: a ZIP is uploaded, and its page tells what became of every row."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from imagedb.models import Image, ImportBatch, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services.uploads import request_import
from scooter_site.common.admin_tools import ReadOnlyAdmin, StayOnPage, add_url, change_url, list_url, signed_in

FAILED_ROWS_SHOWN = 100
GOOD_ROWS_SHOWN = 20
UNFINISHED = {ImportStatus.WAITING, ImportStatus.RUNNING}
STATUS_LABELS = {
    ImportStatus.WAITING.label: "info",
    ImportStatus.RUNNING.label: "info",
    ImportStatus.DONE.label: "success",
    ImportStatus.FAILED.label: "danger",
    "Done, with errors": "warning",
}


@admin.register(ImportBatch)
class ImportBatchAdmin(StayOnPage, ModelAdmin):
    """Uploads of a ZIP with a manifest; a worker imports it, and this page shows what became of every row."""

    list_display = (
        "__str__",
        "status_label",
        "rows_in_all",
        "new",
        "already_there",
        "failed",
        "created_at",
        "created_by",
    )
    list_select_related = ("created_by",)
    list_filter = (("status", ChoicesDropdownFilter),)
    list_filter_submit = True
    search_fields = ("source_name",)
    fields = ("archive", "visibility", "licence", "attribution")
    change_form_outer_before_template = "admin/imagedb/import_panel.html"
    change_form_outer_after_template = "admin/imagedb/import_help.html"

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> type[ModelForm]:
        form = super().get_form(request, obj, change=change, **kwargs)
        if "archive" in form.base_fields:
            form.base_fields["archive"].required = True
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[str | None, dict[str, Any]]]:
        if obj is None:
            return [(None, {"fields": self.fields})]
        return [("Settings of this import", {"fields": ("visibility", "licence", "attribution", "created_by")})]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # What was uploaded is a record: it can be looked at, not edited.
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ImportBatch, form: ModelForm, change: bool) -> None:
        obj.created_by = signed_in(request)
        obj.source_name = form.cleaned_data["archive"].name[:255]
        super().save_model(request, obj, form, change)
        request_import(obj)

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("<int:batch_id>/live/", self.admin_site.admin_view(self.live_view), name="imagedb_importbatch_live"),
            path(
                "<int:batch_id>/again/", self.admin_site.admin_view(self.again_view), name="imagedb_importbatch_again"
            ),
        ]
        return own + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        batch = ImportBatch.objects.filter(pk=object_id).first() if object_id.isdigit() else None
        context = {} if batch is None else self.panel_context(request, batch)
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def live_view(self, request: HttpRequest, batch_id: int) -> HttpResponse:
        """The panel alone, for the script that keeps it up to date; says when there is nothing to wait for."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        batch = get_object_or_404(ImportBatch, pk=batch_id)
        response = render(request, "admin/imagedb/import_progress.html", self.panel_context(request, batch))
        if batch.status not in UNFINISHED:
            response["X-Refresh-Done"] = "1"
        return response

    def again_view(self, request: HttpRequest, batch_id: int) -> HttpResponse:
        """Ask for the import once more: what is there already is not imported twice."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_add_permission(request):
            raise PermissionDenied
        batch = get_object_or_404(ImportBatch, pk=batch_id)
        request_import(batch)
        messages.success(request, "The import will run again. What is in the catalogue already is not imported twice.")
        return HttpResponseRedirect(change_url(batch))

    def panel_context(self, request: HttpRequest, batch: ImportBatch) -> dict[str, Any]:
        handled = batch.imported_count + batch.already_there_count + batch.failed_count
        failed = batch.rows.filter(result=ImportRow.Result.FAILED)
        return {
            "batch": batch,
            "unfinished": batch.status in UNFINISHED,
            "handled": handled,
            "percent": round(100 * handled / batch.row_count) if batch.row_count else 0,
            "failed_rows": failed[:FAILED_ROWS_SHOWN],
            "failed_rows_left_out": max(0, batch.failed_count - FAILED_ROWS_SHOWN),
            "good_rows": batch.rows.exclude(result=ImportRow.Result.FAILED)[:GOOD_ROWS_SHOWN],
            "rows_url": list_url(ImportRow, f"batch__id__exact={batch.pk}"),
            "images_url": list_url(Image, f"import_batch__id__exact={batch.pk}"),
            "may_import": self.has_add_permission(request),
            "upload_url": add_url(ImportBatch),
        }

    @display(description="rows", ordering="row_count")
    def rows_in_all(self, batch: ImportBatch) -> int:
        return batch.row_count

    @display(description="new", ordering="imported_count")
    def new(self, batch: ImportBatch) -> int:
        return batch.imported_count

    @display(description="already there", ordering="already_there_count")
    def already_there(self, batch: ImportBatch) -> int:
        return batch.already_there_count

    @display(description="failed", ordering="failed_count")
    def failed(self, batch: ImportBatch) -> int:
        return batch.failed_count

    @display(description="status", ordering="status", label=STATUS_LABELS)
    def status_label(self, batch: ImportBatch) -> str:
        if batch.status == ImportStatus.DONE and batch.failed_count:
            return "Done, with errors"
        return batch.get_status_display()


@admin.register(ImportRow)
class ImportRowAdmin(ReadOnlyAdmin, ModelAdmin):
    """Every row of every manifest, reached from an import's page."""

    list_display = ("row_number", "filename", "result_label", "message")
    list_filter = (("result", ChoicesDropdownFilter), ("batch", RelatedDropdownFilter))
    list_filter_submit = True
    search_fields = ("filename", "message")
    fields = ("batch", "row_number", "filename", "result", "message", "image")
    show_full_result_count = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    @display(
        description="result", ordering="result", label={"Imported": "success", "Already there": "", "Failed": "danger"}
    )
    def result_label(self, row: ImportRow) -> str:
        return row.get_result_display()
