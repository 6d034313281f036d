"""What is done to several images of the list at once. Each action is one call of a service."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from imagedb.admin.image_forms import CurationForm, PrivateForm, QuestionForm
from imagedb.models import Image, Visibility
from imagedb.selectors.collections import may_curate
from imagedb.services.collections import CollectionError, add_images, remove_images
from imagedb.services.images import ImageConflict, set_visibility
from scooter_site.common.admin_tools import signed_in


class ImageActions:
    """Mixin for the admin of images."""

    admin_site: Any
    opts: Any
    actions = ("make_public", "make_registered", "make_private", "add_to_collection", "remove_from_collection")

    def has_curate_permission(self, request: HttpRequest) -> bool:
        """Whether the signed-in user may change drafts of collections."""
        return may_curate(signed_in(request))

    @admin.action(description="Make public: anyone may see them", permissions=["change"])
    def make_public(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        self._make(request, queryset, Visibility.PUBLIC)

    @admin.action(description="Make registered: only accounts may see them", permissions=["change"])
    def make_registered(self, request: HttpRequest, queryset: QuerySet[Image]) -> None:
        self._make(request, queryset, Visibility.REGISTERED)

    @admin.action(description="Make private to a group…", permissions=["change"])
    def make_private(self, request: HttpRequest, queryset: QuerySet[Image]) -> HttpResponse | None:
        form = self._asked(request, PrivateForm)
        if not form.is_valid():
            return self._question(request, queryset, form, "make_private", "Make private", "Make them private")
        self._make(request, queryset, Visibility.PRIVATE, group=form.cleaned_data["group"])
        return None

    @admin.action(description="Add to a collection…", permissions=["curate"])
    def add_to_collection(self, request: HttpRequest, queryset: QuerySet[Image]) -> HttpResponse | None:
        form = self._asked(request, CurationForm)
        if not form.is_valid():
            return self._question(request, queryset, form, "add_to_collection", "Add to a collection", "Add")
        version = form.cleaned_data["version"]
        try:
            report = add_images(version, queryset, form.cleaned_data["reason"], signed_in(request))
        except CollectionError as error:
            messages.error(request, str(error))
            return None
        level = messages.SUCCESS if report.added else messages.WARNING
        there = f" {_images(report.already_there, 'was', 'were')} in it already." if report.already_there else ""
        messages.add_message(request, level, f"{_images(report.added, 'is', 'are')} now in {version}.{there}")
        for refusal in report.refusals:
            messages.warning(request, f"{refusal}.")
        return None

    @admin.action(description="Remove from a collection…", permissions=["curate"])
    def remove_from_collection(self, request: HttpRequest, queryset: QuerySet[Image]) -> HttpResponse | None:
        form = self._asked(request, CurationForm)
        if not form.is_valid():
            return self._question(
                request, queryset, form, "remove_from_collection", "Remove from a collection", "Remove"
            )
        version = form.cleaned_data["version"]
        try:
            count = remove_images(version, queryset, form.cleaned_data["reason"], signed_in(request))
        except CollectionError as error:
            messages.error(request, str(error))
            return None
        level = messages.SUCCESS if count else messages.WARNING
        messages.add_message(request, level, f"{_images(count, 'was', 'were')} removed from {version}.")
        return None

    def _make(self, request: HttpRequest, queryset: QuerySet[Image], visibility: Visibility, group: Any = None) -> None:
        try:
            count = set_visibility(queryset, visibility, group=group)
        except ImageConflict as conflict:
            messages.error(request, str(conflict))
            return
        of_group = f" to {group}" if group else ""
        messages.success(request, f"{_images(count, 'is', 'are')} now {visibility.value}{of_group}.")

    def _asked(self, request: HttpRequest, form_class: type[QuestionForm]) -> QuestionForm:
        """The question's form: as sent, or empty when the action has just been chosen."""
        sent = request.POST if "answered" in request.POST else None
        return form_class(signed_in(request), sent)

    def _question(
        self,
        request: HttpRequest,
        queryset: QuerySet[Image],
        form: QuestionForm,
        action: str,
        title: str,
        button: str,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "form": form,
            "action": action,
            "button": button,
            "count": queryset.count(),
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
            "index": request.POST.get("index", "0"),
            "back_url": request.get_full_path(),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/imagedb/images_question.html", context)


def _images(count: int, one: str, several: str) -> str:
    return f"1 image {one}" if count == 1 else f"{count:,} images {several}"
