"""Results from elsewhere: upload a file of ratings with its citation; withdraw it, with a reason."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminURLInputWidget

from leaderboard.admin.shared import ReasonForm, question_page, recompute_soon
from leaderboard.models import Board, ExternalResult
from leaderboard.services.external import (
    LARGEST_FILE,
    add_external_result,
    check_external,
    refusals,
    withdraw_external_result,
)
from leaderboard.statistics.ratings_file import UnreadableRatings
from scooter_site.common.admin_tools import StayOnPage, change_url, signed_in


class ExternalResultForm(forms.ModelForm):
    """Looks into the file before anything is stored."""

    source_url = forms.URLField(
        label="Where it is published", required=False, assume_scheme="https", widget=UnfoldAdminURLInputWidget
    )

    class Meta:
        model = ExternalResult
        fields = [
            "board",
            "attack",
            "target_model",
            "file",
            "high_means",
            "citation",
            "source_url",
            "attack_success_rate",
        ]
        help_texts = {
            "board": "Its scale must be that of the ratings. Boards of the demonstration hold no real results: if none "
            "is offered, make a board first.",
            "file": "CSV in UTF-8 with the columns rating, pid, image_type (modified, real or clean) and image_id. The "
            "ids of participants are never published; image_id is, as it is written in the file.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "board" in self.fields:
            self.fields["board"].queryset = Board.objects.filter(is_demo=False)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        file, board = given.get("file"), given.get("board")
        if board is not None and given.get("target_model") is not None:
            for field, reason in refusals(board, given["target_model"]).items():
                self.add_error(field, reason)
            board = given.get("board")
        if file is None or board is None or not given.get("high_means"):
            return given
        if file.size > LARGEST_FILE:
            self.add_error("file", f"Larger than {LARGEST_FILE // 1024**2} MB: give the ratings of one pair only.")
            return given
        given["content"] = file.read()
        try:
            check_external(given["content"], file.name, board, given["high_means"])
        except UnreadableRatings as error:
            self.add_error("file", str(error))
        return given


@admin.register(ExternalResult)
class ExternalResultAdmin(StayOnPage, ModelAdmin):
    form = ExternalResultForm
    list_display = ("__str__", "board", "state", "added_by", "added_at")
    list_select_related = ("board", "attack", "target_model", "added_by")
    list_filter = (("board", RelatedDropdownFilter), ("attack", RelatedDropdownFilter))
    list_filter_submit = True
    search_fields = ("attack__name", "target_model__name", "citation")
    autocomplete_fields = ("attack", "target_model")
    change_form_outer_before_template = "admin/leaderboard/external_panel.html"
    fieldsets = (
        ("Where it belongs", {"fields": ("board", "attack", "target_model")}),
        ("The ratings", {"fields": ("file", "high_means")}),
        ("Where they are from", {"fields": ("citation", "source_url", "attack_success_rate")}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: ExternalResult | None = None) -> Any:
        if obj is None:
            return self.fieldsets
        what, _, whence = self.fieldsets
        kept = ("high_means", "file_sha256", "file_bytes", "added_by", "added_at")
        gone = ("withdrawn_at", "withdrawal_reason") if obj.withdrawn_at else ()
        return (what, whence, ("Record", {"fields": (*kept, *gone)}))

    def has_change_permission(self, request: HttpRequest, obj: ExternalResult | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: ExternalResult | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ExternalResult, form: Any, change: bool) -> None:
        given = form.cleaned_data
        added = add_external_result(
            board=given["board"],
            attack=given["attack"],
            target_model=given["target_model"],
            content=given["content"],
            name=given["file"].name,
            high_means=given["high_means"],
            citation=given["citation"],
            source_url=given["source_url"],
            attack_success_rate=given["attack_success_rate"],
            added_by=signed_in(request),
        )
        obj.pk = added.pk
        obj.refresh_from_db()
        recompute_soon([(added.attack_id, added.target_model_id)])
        messages.info(request, "Its entry is in the board's draft within seconds.")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.withdraw_view)
        return [path("<int:external_id>/withdraw/", view, name="leaderboard_external_withdraw"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        external = ExternalResult.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
        context: dict[str, Any] = {}
        if external is not None:
            context = {
                "external": external,
                "board_url": change_url(external.board),
                "withdraw_url": reverse("admin:leaderboard_external_withdraw", args=[external.pk]),
                "may_withdraw": external.withdrawn_at is None
                and request.user.has_perm("leaderboard.change_externalresult"),
            }
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def withdraw_view(self, request: HttpRequest, external_id: int) -> HttpResponse:
        """Asked for with GET, the question; with POST and a reason, the deed."""
        if not request.user.has_perm("leaderboard.change_externalresult"):
            raise PermissionDenied
        external = get_object_or_404(ExternalResult.objects.select_related("board"), pk=external_id)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            try:
                withdraw_external_result(external, reason=form.cleaned_data["reason"])
            except ValidationError as error:
                messages.error(request, " ".join(error.messages))
            else:
                recompute_soon([(external.attack_id, external.target_model_id)])
                self.log_change(request, external, f"Withdrawn: {form.cleaned_data['reason']}")
                messages.success(request, f"{external} is withdrawn: it is shown nowhere any more.")
            return HttpResponseRedirect(change_url(external))
        return question_page(
            request,
            self,
            "external_withdraw.html",
            "Withdraw",
            form=form,
            original=external,
            external=external,
            back_url=change_url(external),
        )

    @display(description="status", label={"Shown": "success", "Withdrawn": "danger"})
    def state(self, external: ExternalResult) -> str:
        return "Withdrawn" if external.withdrawn_at else "Shown"
