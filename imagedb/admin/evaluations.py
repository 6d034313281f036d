"""How often attacks fooled target models when they were tried."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.decorators import display

from imagedb.models import AttackEvaluation


@admin.register(AttackEvaluation)
class AttackEvaluationAdmin(ModelAdmin):
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}
    list_display = ("pair", "images_attacked", "images_fooling", "rate", "citation")
    list_select_related = ("attack", "target_model")
    list_filter = (("attack", RelatedDropdownFilter), ("target_model", RelatedDropdownFilter))
    list_filter_submit = True
    search_fields = ("attack__name", "target_model__name", "citation")
    autocomplete_fields = ("attack", "target_model")
    fieldsets = (
        (None, {"fields": ("attack", "target_model", "images_attacked", "images_fooling")}),
        ("Where it is from", {"fields": ("citation", "source_url")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: AttackEvaluation | None = None) -> Any:
        """Only its own pair hears of a change, so the pair stays."""
        return ("attack", "target_model") if obj else ()

    @display(description="attack and target model", ordering="attack__name")
    def pair(self, evaluation: AttackEvaluation) -> str:
        return f"{evaluation.attack} on {evaluation.target_model}"

    @display(description="success rate")
    def rate(self, evaluation: AttackEvaluation) -> str:
        return f"{100 * evaluation.images_fooling / evaluation.images_attacked:.1f} %"
