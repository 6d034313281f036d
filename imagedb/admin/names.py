"""What images are sorted by: attacks, target models and classes."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter
from unfold.decorators import display

from imagedb.models import Attack, Image, ImageClass, TargetModel
from scooter_site.common.admin_tools import ReadOnlyAdmin, list_url


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
