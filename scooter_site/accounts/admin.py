"""Tokens of the API in the admin: seen and revoked. They are made on the account page, by who uses them."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from scooter_site.accounts.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    list_display = ("user", "name", "prefix", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("user__username", "name", "prefix")
    fields = ("user", "name", "prefix", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
