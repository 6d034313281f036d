"""Images: looked at, found, their visibility and licence corrected."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
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

from imagedb.models import Image, Prediction, Visibility
from imagedb.selectors import is_as_intended, is_verified
from imagedb.services.images import delete_images, set_visibility
from scooter_site.common.admin_tools import ReadOnlyAdmin, StayOnPage

VERSIONS_SHOWN = 24


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
