"""Images: looked at, found, their visibility and licence corrected, put into collections."""

import re
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
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

from imagedb.admin.image_actions import ImageActions
from imagedb.admin.image_forms import ImageForm
from imagedb.admin.rules import RulesTold
from imagedb.models import CollectionImage, Image, ImageKind, Prediction
from imagedb.selectors import clean_images_taken_for_another_class, is_as_intended, visible_images
from imagedb.selectors.collections import may_curate, visible_versions
from imagedb.selectors.ids_first import ids_first
from imagedb.selectors.search import search_images
from imagedb.services.images import delete_images
from imagedb.services.importing import own_groups
from scooter_site.common.admin_tools import BoundedPaginator, ReadOnlyAdmin, StayOnPage, signed_in

VERSIONS_SHOWN = 24
FACTS_OF_FROZEN = ("licence", "attribution")


class VerifiedFilter(DropdownFilter):
    """Whether a target model's answer for the image is stored, and whether the attack worked."""

    title = "verification"
    parameter_name = "verified"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("yes", "Verified: the target model is misled (modified) or right (clean)"),
            ("wrong", "Clean, but some model takes it for another class"),
            ("no", "Not verified: no prediction stored"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "yes":
                return queryset.filter(verified=True, is_as_intended=True)
            case "wrong":
                return queryset.filter(ids_first(Q(pk__in=clean_images_taken_for_another_class())))
            case "no":
                return queryset.filter(verified=False)
            case _:
                return queryset


class CollectionVersionFilter(DropdownFilter):
    """Images of a version that the signed-in user may see."""

    title = "collection"
    parameter_name = "collection_version"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        versions = visible_versions(signed_in(request)).order_by("collection__name", "pk")
        names = versions.values_list("pk", "collection__name", "version")
        return [(str(pk), f"{collection} {version}") for pk, collection, version in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value or value not in {key for key, _ in self.lookup_choices}:
            return queryset
        return queryset.filter(pk__in=CollectionImage.objects.filter(version=value).values("image"))


class GroupFilter(DropdownFilter):
    """Images that belong to one of the signed-in user's groups, or to none."""

    title = "group"
    parameter_name = "of_group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        groups = own_groups(signed_in(request)).order_by("name")
        return [("none", "No group"), *[(str(group.pk), group.name) for group in groups]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value or value not in {key for key, _ in self.lookup_choices}:
            return queryset
        return queryset.filter(group=None) if value == "none" else queryset.filter(group=value)


class PredictionInline(ReadOnlyAdmin, TabularInline):
    model = Prediction
    extra = 0
    fields = ("target_model", "predicted_class", "confidence")
    verbose_name_plural = "What target models say"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Prediction]:
        return super().get_queryset(request).select_related("target_model", "predicted_class")


@admin.register(Image)
class ImageAdmin(ImageActions, RulesTold, StayOnPage, ModelAdmin):
    """Images come by import; here they are looked at, and their visibility and licence corrected.

    Staff see what ``visible_images`` lets them see, as everywhere.
    """

    form = ImageForm
    list_display = (
        "thumbnail_image",
        "original_filename",
        "kind_label",
        "image_class",
        "attack",
        "target_model",
        "distances",
        "verdict",
        "seen_by",
    )
    list_display_links = ("thumbnail_image", "original_filename")
    list_select_related = ("image_class", "attack", "target_model", "group")
    list_filter = (
        ("kind", ChoicesDropdownFilter),
        ("attack", RelatedDropdownFilter),
        ("target_model", RelatedDropdownFilter),
        ("image_class", AutocompleteSelectFilter),
        CollectionVersionFilter,
        VerifiedFilter,
        ("visibility", ChoicesDropdownFilter),
        GroupFilter,
        ("is_demo", BooleanRadioFilter),
    )
    list_filter_submit = True
    list_per_page = 50
    show_full_result_count = False
    paginator = BoundedPaginator
    # By file name an index gives the order; by anything else all images would be sorted for a page.
    sortable_by = ("original_filename",)
    search_fields = ("original_filename",)  # that there is a search; see get_search_results
    search_help_text = (
        "Words of the class, attack, target model, file name or attribution; or a whole SHA-256 or public id"
    )
    inlines = (PredictionInline,)
    change_form_outer_before_template = "admin/imagedb/image_comparison.html"
    changeable_fields = ("visibility", "group", "licence", "attribution")
    fieldsets = (
        ("Can be changed", {"fields": changeable_fields}),
        (
            "What it is",
            {"fields": ("kind", "image_class", "source_link", "attack", "target_model", "import_batch", "uploaded_by")},
        ),
        (
            "Distances from its source",
            {"fields": ("comparison_words", "linf", "l2", "changed_share", "ssim", "ciede2000")},
        ),
        (
            "The file",
            {
                "fields": (
                    "original_filename",
                    "size",
                    "original_format",
                    "original_mode",
                    "original_profile_words",
                    "original_bytes",
                    "original_sha256",
                    "public_id",
                    "created_at",
                )
            },
        ),
    )
    readonly_fields = tuple(name for _, options in fieldsets[1:] for name in options["fields"])

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        source = visible_images(request.user).filter(pk=OuterRef("source_id"))
        return (
            visible_images(request.user)
            .order_by(*self.get_ordering(request))
            .annotate(
                is_as_intended=is_as_intended(),
                visible_source=Subquery(source.values("pk")),
                visible_source_name=Subquery(source.values("original_filename")),
            )
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The search of the API and the pages; and what identifies one image."""
        term = search_term.strip()
        if re.fullmatch(r"[0-9a-fA-F]{64}", term):
            return queryset.filter(original_sha256=term.lower()), False
        try:
            return queryset.filter(public_id=UUID(term)), False
        except ValueError:
            return (search_images(queryset, term) if term else queryset), False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        form.user = signed_in(request)  # the class is made for this request
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Image | None = None) -> Any:
        is_clean = obj is not None and obj.kind == ImageKind.CLEAN
        return [(title, options) for title, options in self.fieldsets if not (is_clean and title and "Dist" in title)]

    def get_readonly_fields(self, request: HttpRequest, obj: Image | None = None) -> tuple[str, ...]:
        if obj is not None and _frozen_versions_of(obj):
            return (*self.readonly_fields, *FACTS_OF_FROZEN)
        return self.readonly_fields

    def delete_model(self, request: HttpRequest, obj: Image) -> None:
        delete_images(Image.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        delete_images(Image.objects.filter(pk__in=queryset.values("pk")))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        user = signed_in(request)
        seen = visible_images(user)
        image = seen.filter(pk=object_id).first() if object_id.isdigit() else None
        context: dict[str, Any] = {"image": image}
        if image is not None:
            context["source"] = seen.filter(modified_versions=image).first()
            versions = seen.filter(source=image).select_related("attack").order_by("id")
            context["versions"] = versions[:VERSIONS_SHOWN]
            context["collection_versions"] = visible_versions(user).filter(memberships__image=image).order_by("pk")
            context["may_curate"] = may_curate(user)
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

    @display(description="distances", ordering="linf")
    def distances(self, image: Image) -> str:
        if image.linf is None or image.ssim is None:
            return "–"
        return f"L∞ {image.linf}, SSIM {image.ssim:.3f}"

    @display(description="verified", label={"Yes": "success", "No": "", "Wrong": "danger"})
    def verdict(self, image: Any) -> str:
        if not image.verified:
            return "No"
        return "Yes" if image.is_as_intended else "Wrong"

    @display(description="visibility", ordering="visibility")
    def seen_by(self, image: Image) -> str:
        return f"{image.visibility.capitalize()}{f' ({image.group})' if image.group else ''}"

    @display(description="size")
    def size(self, image: Image) -> str:
        return f"{image.width} x {image.height} pixels"

    @display(description="compared")
    def comparison_words(self, image: Image) -> str:
        return image.get_comparison_display() or "Not measured"

    @display(description="colour profile")
    def original_profile_words(self, image: Image) -> str:
        return image.original_profile or "None: taken for sRGB"

    @display(description="source")
    def source_link(self, image: Any) -> SafeString | str:
        if image.source_id is None:
            return "–"
        if image.visible_source is None:
            return "An image that you may not see"
        address = reverse("admin:imagedb_image_change", args=[image.visible_source])
        return format_html('<a class="text-link" href="{}">{}</a>', address, image.visible_source_name)


def _frozen_versions_of(image: Image) -> bool:
    return CollectionImage.objects.filter(image=image, version__frozen_at__isnull=False).exists()
