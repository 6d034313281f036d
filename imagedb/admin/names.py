"""What images are sorted by: attacks, target models and classes."""

from typing import Any

from django import forms
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

from imagedb.admin.fields import BibtexField, ParametersField
from imagedb.admin.rules import RulesTold
from imagedb.models import Attack, Image, ImageClass, TargetModel
from imagedb.selectors import visible_images
from scooter_site.common.admin_tools import ReadOnlyAdmin, list_url


class NamedThingAdmin(RulesTold, ModelAdmin):
    """Attacks and target models: a name, what it is, and the way to its images.

    The images are counted as far as the signed-in user sees them: what the link leads to.
    """

    image_field: str
    search_fields: tuple[str, ...] = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("is_demo", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        counts = (
            visible_images(request.user)
            .filter(**{self.image_field: OuterRef("pk")})
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


class AttackForm(forms.ModelForm):
    parameters = ParametersField(required=False, help_text=f"As JSON, for example {ParametersField.EXAMPLE}.")
    bibtex = BibtexField(required=False, label="BibTeX", help_text="Shown for copying on the attack's public page.")


@admin.register(Attack)
class AttackAdmin(NamedThingAdmin):
    image_field = "attack"
    form = AttackForm
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}
    list_display = ("name", "family", "threat_model_label", "is_targeted", "venue", "year", "images", "is_demo")
    list_filter = (
        ("family", ChoicesDropdownFilter),
        ("threat_model", ChoicesDropdownFilter),
        ("is_targeted", BooleanRadioFilter),
        ("is_demo", BooleanRadioFilter),
    )
    list_filter_submit = True
    search_fields = ("name", "slug", "paper_title", "venue")
    fieldsets = (
        (None, {"fields": ("name", "slug", "family", "description")}),
        ("How it attacks", {"fields": ("threat_model", "is_targeted", "parameters")}),
        ("Publication", {"fields": ("paper_title", "venue", "year", "paper_url", "code_url", "bibtex")}),
        ("Record", {"fields": ("is_demo", "created_at")}),
    )

    @display(description="threat model", ordering="threat_model")
    def threat_model_label(self, attack: Attack) -> str:
        return attack.threat_model.replace("_", " ").capitalize()


class TargetModelForm(forms.ModelForm):
    def add_prefix(self, field_name: str) -> str:
        # The admin theme takes a form that posts "dataset" for an action on one of its tables, and saves nothing.
        return "trained_on" if field_name == "dataset" else super().add_prefix(field_name)


@admin.register(TargetModel)
class TargetModelAdmin(NamedThingAdmin):
    image_field = "target_model"
    form = TargetModelForm
    list_display = ("name", "architecture", "training", "dataset", "clean_accuracy", "images", "is_demo")
    list_filter = (("is_demo", BooleanRadioFilter),)
    list_filter_submit = True
    fieldsets = (
        (None, {"fields": ("name", "slug", "architecture", "training", "dataset", "clean_accuracy", "description")}),
        ("Where it comes from", {"fields": ("source", "weights_reference", "preprocessing")}),
        ("Record", {"fields": ("is_demo", "created_at")}),
    )


@admin.register(ImageClass)
class ImageClassAdmin(ReadOnlyAdmin, ModelAdmin):
    """The 1,000 classes are a fixed list; they come with the program."""

    list_display = ("index", "name", "synset", "synonyms")
    list_display_links = ("name",)
    search_fields = ("=index", "name", "synset", "synonyms")
    search_help_text = "Search by class index, name or WordNet synset"
