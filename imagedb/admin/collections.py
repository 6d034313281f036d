"""Collections and their versions: described, filled, curated, frozen; and the log of it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from imagedb.admin.collection_forms import CollectionForm, VersionForm
from imagedb.admin.collection_pages import VersionPages
from imagedb.admin.rules import RulesTold
from imagedb.models import Collection, CollectionVersion, CurationLogEntry
from imagedb.selectors.collections import visible_collections, visible_versions
from imagedb.services.collections import change_draft, create_collection, delete_draft
from scooter_site.common.admin_tools import ReadOnlyAdmin, StayOnPage, signed_in

FIXED_BY_FREEZING = ("name", "slug", "target_model", "min_confidence")


@admin.register(Collection)
class CollectionAdmin(RulesTold, StayOnPage, ModelAdmin):
    """Named sets of images. What is in one is a matter of its versions."""

    form = CollectionForm
    list_display = ("name", "target_model", "min_confidence", "newest", "seen_by", "is_demo")
    list_select_related = ("target_model", "group")
    list_filter = (("visibility", ChoicesDropdownFilter), ("is_demo", BooleanRadioFilter))
    list_filter_submit = True
    search_fields = ("name", "slug")
    autocomplete_fields = ("target_model",)
    change_form_outer_before_template = "admin/imagedb/collection_panel.html"
    readonly_fields = ("created_by", "created_at", "is_demo")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        collections = visible_collections(request.user).order_by(*self.get_ordering(request))
        return collections.prefetch_related("versions")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        form.user = signed_in(request)  # the class is made for this request
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Collection | None = None) -> Any:
        first = () if obj else ("first_version",)
        record = [("Record", {"fields": self.readonly_fields})] if obj else []
        return [
            (None, {"fields": ("name", "slug", "description", *first)}),
            ("Which clean images fit", {"fields": ("target_model", "min_confidence")}),
            ("Who may see it", {"fields": ("visibility", "group")}),
            *record,
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Collection | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, *FIXED_BY_FREEZING) if obj and _has_frozen(obj) else self.readonly_fields

    def get_prepopulated_fields(
        self, request: HttpRequest, obj: Collection | None = None
    ) -> dict[str, tuple[str, ...]]:
        return {} if obj else {"slug": ("name",)}

    def save_model(self, request: HttpRequest, obj: Collection, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        given = form.cleaned_data
        obj.pk = create_collection(signed_in(request), **given).collection_id
        obj.refresh_from_db()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        collection_id = int(object_id) if object_id.isdigit() else None
        versions = visible_versions(signed_in(request)).filter(collection=collection_id)
        context = {
            "versions": versions.order_by("-pk"),
            "may_add_version": request.user.has_perm("imagedb.add_collectionversion"),
        }
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    @display(description="newest version")
    def newest(self, collection: Collection) -> str:
        versions = sorted(collection.versions.all(), key=lambda version: version.pk)
        return f"{versions[-1].version} ({'frozen' if versions[-1].is_frozen else 'draft'})" if versions else "–"

    @display(description="visibility", ordering="visibility")
    def seen_by(self, collection: Collection) -> str:
        return f"{collection.visibility.capitalize()}{f' ({collection.group})' if collection.group else ''}"


@admin.register(CollectionVersion)
class CollectionVersionAdmin(VersionPages, RulesTold, StayOnPage, ModelAdmin):
    """One state of a collection: a draft that can be changed, or frozen for good."""

    form = VersionForm
    list_display = ("__str__", "state", "image_total", "frozen_at")
    list_filter = (("collection", RelatedDropdownFilter),)
    search_fields = ("collection__name", "collection__slug", "version")
    fields = ("version", "licence", "citation", "doi", "changelog")
    change_form_outer_before_template = "admin/imagedb/version_panel.html"
    change_form_outer_after_template = "admin/imagedb/version_log.html"

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False  # reached from the collection's page

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # made on the collection's page

    def has_change_permission(self, request: HttpRequest, obj: CollectionVersion | None = None) -> bool:
        return super().has_change_permission(request, obj) and not (obj and obj.is_frozen)

    def has_delete_permission(self, request: HttpRequest, obj: CollectionVersion | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not (obj and obj.is_frozen)

    def get_actions(self, request: HttpRequest) -> Any:
        return {}  # no deleting of several at once

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        # A draft goes with its log and its list of images, which nobody may delete by themselves.
        to_delete, model_count, _, protected = super().get_deleted_objects(objs, request)
        return to_delete, model_count, set(), protected

    def get_queryset(self, request: HttpRequest) -> QuerySet[CollectionVersion]:
        return visible_versions(request.user).order_by(*self.get_ordering(request))

    def save_model(self, request: HttpRequest, obj: CollectionVersion, form: Any, change: bool) -> None:
        change_draft(obj, **{name: form.cleaned_data[name] for name in form.changed_data})

    def delete_model(self, request: HttpRequest, obj: CollectionVersion) -> None:
        delete_draft(obj)

    def get_urls(self) -> list[URLPattern]:
        return self.own_urls() + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        version = visible_versions(signed_in(request)).filter(pk=object_id).first() if object_id.isdigit() else None
        context = {} if version is None else self.panel_context(request, version)
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    @display(description="state", label={"Frozen": "success", "Draft": "info"})
    def state(self, version: CollectionVersion) -> str:
        return "Frozen" if version.is_frozen else "Draft"

    @display(description="images")
    def image_total(self, version: Any) -> int:
        return version.total_count


@admin.register(CurationLogEntry)
class CurationLogEntryAdmin(ReadOnlyAdmin, ModelAdmin):
    """What was done to versions, why and by whom; reached from a version's page."""

    list_display = ("decided_at", "version", "action_label", "what", "replacement", "reason", "decided_by")
    list_display_links = None
    list_select_related = ("version__collection", "replacement", "decided_by")
    list_filter = (("action", ChoicesDropdownFilter),)
    search_fields = ("image_filename", "=image_public_id", "reason")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[CurationLogEntry]:
        return super().get_queryset(request).filter(version__in=visible_versions(request.user).values("pk"))

    @display(description="action", ordering="action")
    def action_label(self, entry: CurationLogEntry) -> str:
        return entry.get_action_display()

    @display(description="image")
    def what(self, entry: CurationLogEntry) -> str:
        return entry.image_filename or f"{entry.count:,} images"


def _has_frozen(collection: Collection) -> bool:
    return collection.versions.filter(frozen_at__isnull=False).exists()
