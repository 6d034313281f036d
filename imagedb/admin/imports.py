"""Imports: a ZIP is uploaded, and its page tells what became of every row."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from imagedb.admin.import_form import ImportForm
from imagedb.models import Image, ImportBatch, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.selectors.imports import (
    UNFINISHED,
    can_be_run_again,
    handled_count,
    result_label,
    rows_csv,
    visible_imports,
)
from imagedb.services.import_sources import has_bucket
from imagedb.services.importing import ImportRefused, cancel_import, request_import, request_new_import
from scooter_site.common.admin_tools import ReadOnlyAdmin, StayOnPage, add_url, change_url, list_url, signed_in

FAILED_ROWS_SHOWN = 100
GOOD_ROWS_SHOWN = 20
STATUS_LABELS = {
    ImportStatus.WAITING.label: "info",
    ImportStatus.PLANNING.label: "info",
    ImportStatus.RUNNING.label: "info",
    ImportStatus.DONE.label: "success",
    ImportStatus.FAILED.label: "danger",
    ImportStatus.CANCELLED.label: "warning",
    "Done, with errors": "warning",
    "Stopping": "warning",
}
RESULT_LABELS = {"Imported": "success", "Would be imported": "success", "Already there": "", "Failed": "danger"}


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
        "dry_run",
        "created_at",
        "created_by",
    )
    list_select_related = ("created_by",)
    list_filter = (("status", ChoicesDropdownFilter), "is_dry_run")
    list_filter_submit = True
    search_fields = ("source_name",)
    form = ImportForm
    change_form_outer_before_template = "admin/imagedb/import_panel.html"
    change_form_outer_after_template = "admin/imagedb/import_help.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ImportBatch]:
        return super().get_queryset(request).filter(pk__in=visible_imports(signed_in(request)))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> type[ModelForm]:
        form = super().get_form(request, obj, change=change, **kwargs)
        form.user = signed_in(request)  # the class is made for this request
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[str | None, dict[str, Any]]]:
        settings = ("visibility", "group", "licence", "attribution")
        if obj is None:
            files = ("archive", "prefix", "manifest_name") if has_bucket() else ("archive",)
            return [(None, {"fields": (*files, *settings, "is_dry_run")})]
        place = ("source", "location") if obj.location else ("source",)
        return [("Settings of this import", {"fields": (*settings, *place, "created_by")})]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # What was uploaded is a record: it can be looked at, not edited.
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ImportBatch, form: ModelForm, change: bool) -> None:
        given = form.cleaned_data
        upload = given["upload"]
        request_new_import(
            signed_in(request),
            obj,
            archive=given.get("archive"),
            upload=upload.public_id if upload else None,
            prefix=given.get("prefix", ""),
            manifest=given.get("manifest_name", ""),
        )

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().add_view(request, form_url, extra_context)
        except ImportRefused as refusal:  # what was right when the form was checked, and is not any more
            messages.error(request, str(refusal))
            return HttpResponseRedirect(add_url(ImportBatch))

    def get_urls(self) -> list[URLPattern]:
        views = {"live": self.live_view, "again": self.again_view, "cancel": self.cancel_view, "rows": self.rows_view}
        own = [
            path(f"<int:batch_id>/{name}/", self.admin_site.admin_view(view), name=f"imagedb_importbatch_{name}")
            for name, view in views.items()
        ]
        return own + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        batch = self.get_queryset(request).filter(pk=object_id).first() if object_id.isdigit() else None
        context = {} if batch is None else self.panel_context(request, batch)
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def live_view(self, request: HttpRequest, batch_id: int) -> HttpResponse:
        """The panel alone, for the script that keeps it up to date; says when there is nothing to wait for."""
        batch = self._batch(request, batch_id)
        response = render(request, "admin/imagedb/import_progress.html", self.panel_context(request, batch))
        if batch.status not in UNFINISHED:
            response["X-Refresh-Done"] = "1"
        return response

    def rows_view(self, request: HttpRequest, batch_id: int) -> HttpResponseBase:
        """What became of every row, as CSV."""
        batch = self._batch(request, batch_id)
        return StreamingHttpResponse(
            rows_csv(batch),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="import-{batch.pk}-rows.csv"'},
        )

    def again_view(self, request: HttpRequest, batch_id: int) -> HttpResponse:
        """Ask for the import once more: what is there already is not imported twice."""
        if not can_be_run_again(self._batch(request, batch_id)):
            raise Http404("Only the command line knows where these files are.")
        return self._changed(
            request,
            batch_id,
            request_import,
            "The import will run again. What is in the catalogue already is not imported twice.",
        )

    def cancel_view(self, request: HttpRequest, batch_id: int) -> HttpResponse:
        """Stop the import."""
        return self._changed(
            request,
            batch_id,
            cancel_import,
            "The import stops as soon as its workers have finished the rows they are at.",
        )

    def _changed(
        self, request: HttpRequest, batch_id: int, change: Callable[[ImportBatch], None], message: str
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_add_permission(request):
            raise PermissionDenied
        batch = self._batch(request, batch_id)
        change(batch)
        messages.success(request, message)
        return HttpResponseRedirect(change_url(batch))

    def _batch(self, request: HttpRequest, batch_id: int) -> ImportBatch:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return get_object_or_404(self.get_queryset(request), pk=batch_id)

    def panel_context(self, request: HttpRequest, batch: ImportBatch) -> dict[str, Any]:
        handled = handled_count(batch)
        failed = batch.rows.filter(result=ImportRow.Result.FAILED)
        good = batch.rows.filter(result__in=(ImportRow.Result.IMPORTED, ImportRow.Result.ALREADY_THERE))
        return {
            "batch": batch,
            "unfinished": batch.status in UNFINISHED,
            "handled": handled,
            "left": batch.row_count - handled,
            "percent": round(100 * handled / batch.row_count) if batch.row_count else 0,
            "failed_rows": failed[:FAILED_ROWS_SHOWN],
            "failed_rows_left_out": max(0, batch.failed_count - FAILED_ROWS_SHOWN),
            "good_rows": good[:GOOD_ROWS_SHOWN],
            "rows_url": list_url(ImportRow, f"batch__id__exact={batch.pk}"),
            "images_url": list_url(Image, f"import_batch__id__exact={batch.pk}"),
            "can_be_run_again": can_be_run_again(batch),
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

    @display(description="dry run", ordering="is_dry_run")
    def dry_run(self, batch: ImportBatch) -> str:
        return "Dry run" if batch.is_dry_run else ""

    @display(description="status", ordering="status", label=STATUS_LABELS)
    def status_label(self, batch: ImportBatch) -> str:
        if batch.status == ImportStatus.DONE and batch.failed_count:
            return "Done, with errors"
        if batch.status in UNFINISHED and batch.cancel_requested_at:
            return "Stopping"
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
    list_select_related = ("batch",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ImportRow]:
        return super().get_queryset(request).filter(batch__in=visible_imports(signed_in(request)))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    @display(description="result", ordering="result", label=RESULT_LABELS)
    def result_label(self, row: ImportRow) -> str:
        return result_label(row.result, is_dry_run=row.batch.is_dry_run)
