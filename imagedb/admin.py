"""The catalogue's pages for researchers: attacks, target models, classes, images and imports."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    BooleanRadioFilter,
    ChoicesDropdownFilter,
    DropdownFilter,
    RelatedDropdownFilter,
)
from unfold.decorators import display

from imagedb.models import (
    Attack,
    Image,
    ImageClass,
    ImportBatch,
    ImportRow,
    Prediction,
    TargetModel,
    Visibility,
)
from imagedb.models.imports import ImportStatus
from imagedb.selectors import is_as_intended, is_verified
from imagedb.services.images import delete_images, set_visibility
from imagedb.services.uploads import request_import
from scooter_site.common.admin_tools import ReadOnlyAdmin, StayOnPage, add_url, change_url, list_url, signed_in

FAILED_ROWS_SHOWN = 100
GOOD_ROWS_SHOWN = 20
VERSIONS_SHOWN = 24
UNFINISHED = {ImportStatus.WAITING, ImportStatus.RUNNING}
STATUS_LABELS = {
    ImportStatus.WAITING.label: "info",
    ImportStatus.RUNNING.label: "info",
    ImportStatus.DONE.label: "success",
    ImportStatus.FAILED.label: "danger",
    "Done, with errors": "warning",
}


class NamedThingAdmin(ModelAdmin):
    """Attacks and target models: a name, what it is, and the way to its images."""

    image_field: str
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("is_demo", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counts = (
            Image.objects.filter(**{self.image_field: OuterRef("pk")})
            .order_by()
            .values(self.image_field)
            .annotate(count=Count("pk"))
            .values("count")
        )
        return super().get_queryset(request).annotate(image_count=Coalesce(Subquery(counts), 0))

    @display(description="images", ordering="image_count")
    def images(self, obj: Any) -> SafeString:
        address = list_url(Image, f"{self.image_field}__id__exact={obj.pk}")
        return format_html('<a class="text-link" href="{}">{}</a>', address, obj.image_count)


@admin.register(Attack)
class AttackAdmin(NamedThingAdmin):
    image_field = "attack"
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}
    list_display = ("name", "family", "year", "images", "is_demo")
    list_filter = (("family", ChoicesDropdownFilter), ("is_demo", BooleanRadioFilter))
    list_filter_submit = True
    fieldsets = (
        (None, {"fields": ("name", "slug", "family", "description")}),
        ("Publication", {"fields": ("paper_title", "venue", "year", "paper_url", "code_url")}),
        ("Record", {"fields": ("is_demo", "created_at")}),
    )


@admin.register(TargetModel)
class TargetModelAdmin(NamedThingAdmin):
    image_field = "target_model"
    list_display = ("name", "architecture", "training", "images", "is_demo")
    list_filter = (("is_demo", BooleanRadioFilter),)
    list_filter_submit = True
    fieldsets = (
        (None, {"fields": ("name", "slug", "architecture", "training", "source", "description")}),
        ("Record", {"fields": ("is_demo", "created_at")}),
    )


@admin.register(ImageClass)
class ImageClassAdmin(ReadOnlyAdmin, ModelAdmin):
    """The 1,000 classes are a fixed list; they come with the program."""

    list_display = ("index", "name", "synset", "synonyms")
    list_display_links = ("name",)
    search_fields = ("=index", "name", "synset", "synonyms")
    search_help_text = "Search by class index, name or WordNet synset"


class VerifiedFilter(DropdownFilter):
    """Whether a target model's answer for the image is stored, and whether the attack worked."""

    title = "verification"
    parameter_name = "verified"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("yes", "Verified: the target model is misled (modified) or right (clean)"),
            ("wrong", "Does not do what it should"),
            ("no", "Not verified: no prediction stored"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "yes":
                return queryset.filter(is_verified=True, is_as_intended=True)
            case "wrong":
                return queryset.filter(is_verified=True, is_as_intended=False)
            case "no":
                return queryset.filter(is_verified=False)
            case _:
                return queryset


class PredictionInline(ReadOnlyAdmin, TabularInline):
    model = Prediction
    extra = 0
    fields = ("target_model", "predicted_class", "confidence")
    verbose_name_plural = "What target models say"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Prediction]:
        return super().get_queryset(request).select_related("target_model", "predicted_class")


@admin.register(Image)
class ImageAdmin(StayOnPage, ModelAdmin):
    """Images come by import; here they are looked at, and their visibility and licence corrected."""

    list_display = (
        "thumbnail_image",
        "original_filename",
        "kind_label",
        "image_class",
        "attack",
        "target_model",
        "verdict",
        "seen_by",
    )
    list_display_links = ("thumbnail_image", "original_filename")
    list_select_related = ("image_class", "attack", "target_model")
    list_filter = (
        ("kind", ChoicesDropdownFilter),
        ("attack", RelatedDropdownFilter),
        ("target_model", RelatedDropdownFilter),
        ("image_class", AutocompleteSelectFilter),
        VerifiedFilter,
        ("visibility", ChoicesDropdownFilter),
        ("is_demo", BooleanRadioFilter),
    )
    list_filter_submit = True
    list_per_page = 50
    search_fields = ("original_filename", "^original_sha256", "image_class__name", "=public_id")
    search_help_text = "Search by file name, SHA-256, class name or public id"
    inlines = (PredictionInline,)
    change_form_outer_before_template = "admin/imagedb/image_comparison.html"
    fieldsets = (
        ("Can be changed", {"fields": ("visibility", "licence", "attribution")}),
        (
            "What it is",
            {"fields": ("kind", "image_class", "source", "attack", "target_model", "import_batch", "uploaded_by")},
        ),
        (
            "The file",
            {
                "fields": (
                    "original_filename",
                    "size",
                    "original_format",
                    "original_bytes",
                    "original_sha256",
                    "public_id",
                    "created_at",
                )
            },
        ),
    )
    readonly_fields = (
        "kind",
        "image_class",
        "source",
        "attack",
        "target_model",
        "import_batch",
        "uploaded_by",
        "original_filename",
        "size",
        "original_format",
        "original_bytes",
        "original_sha256",
        "public_id",
        "created_at",
    )

    actions = ("make_public", "make_registered", "make_private")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Image) -> None:
        delete_images(Image.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        delete_images(Image.objects.filter(pk__in=queryset.values("pk")))

    @admin.action(description="Make public: anyone may see them", permissions=["change"])
    def make_public(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        self._make(request, queryset, Visibility.PUBLIC)

    @admin.action(description="Make registered: only accounts may see them", permissions=["change"])
    def make_registered(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        self._make(request, queryset, Visibility.REGISTERED)

    @admin.action(description="Make private: only uploader and staff may see them", permissions=["change"])
    def make_private(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        self._make(request, queryset, Visibility.PRIVATE)

    def _make(self, request: HttpRequest, queryset: QuerySet[Image], visibility: Visibility) -> None:
        count = set_visibility(Image.objects.filter(pk__in=queryset.values("pk")), visibility)
        changed = "1 image is" if count == 1 else f"{count} images are"
        self.message_user(request, f"{changed} now {visibility.value}.", messages.SUCCESS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Image]:
        return super().get_queryset(request).annotate(is_verified=is_verified(), is_as_intended=is_as_intended())

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        image = Image.objects.filter(pk=object_id).select_related("source").first() if object_id.isdigit() else None
        versions = Image.objects.filter(source=image, source__isnull=False).select_related("attack").order_by("id")
        context = {"image": image, "versions": versions[:VERSIONS_SHOWN]}
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    @display(description="")
    def thumbnail_image(self, image: Image) -> SafeString:
        return format_html(
            '<img class="scooter-thumbnail" src="{}" alt="" width="64" height="64" loading="lazy">',
            reverse("imagedb:thumbnail", args=[image.public_id]),
        )

    @display(description="kind", ordering="kind", label={"Clean": "success", "Modified": "warning"})
    def kind_label(self, image: Image) -> str:
        return image.get_kind_display()

    @display(description="verified", label={"Yes": "success", "No": "", "Wrong": "danger"})
    def verdict(self, image: Any) -> str:
        if not image.is_verified:
            return "No"
        return "Yes" if image.is_as_intended else "Wrong"

    @display(description="visibility", ordering="visibility")
    def seen_by(self, image: Image) -> str:
        return image.visibility.capitalize()

    @display(description="size")
    def size(self, image: Image) -> str:
        return f"{image.width} x {image.height} pixels"


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
