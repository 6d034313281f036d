"""Who has accepted the ImageNet terms, and when."""

from django.contrib import admin
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AllValuesCheckboxFilter

from imagedb.models import TermsAcceptance
from scooter_site.common.admin_tools import ReadOnlyAdmin


@admin.register(TermsAcceptance)
class TermsAcceptanceAdmin(ReadOnlyAdmin, ModelAdmin):
    """A record of accounts' own acts: it can be looked at, not changed."""

    list_display = ("user", "version", "accepted_at")
    list_select_related = ("user",)
    list_filter = (("version", AllValuesCheckboxFilter),)
    list_filter_submit = True
    search_fields = ("user__username", "user__email")
    fields = ("user", "version", "accepted_at")
