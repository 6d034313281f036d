"""A study's demographics on the researchers' pages: a file in, and summaries of groups that are large enough out."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods, require_POST
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminFileFieldWidget

from scooter_site.common.admin_tools import ReadOnlyAdmin, change_url, may
from scooter_site.common.words import counted
from studies.models import Demographics, Participation, Study
from studies.recruitment.demographics import SMALLEST_GROUP, UnreadableExport
from studies.selectors.demographics import known_people, summary
from studies.services.demographics import delete_demographics, import_demographics

LARGEST_FILE_MIB = 20


class ExportForm(forms.Form):
    file = forms.FileField(label="Prolific's demographic export (CSV)", widget=UnfoldAdminFileFieldWidget())

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > LARGEST_FILE_MIB * 1024 * 1024:
            raise forms.ValidationError(f"The file is larger than {LARGEST_FILE_MIB} MiB: is it the export?")
        return file


@admin.register(Demographics)
class DemographicsAdmin(ReadOnlyAdmin, ModelAdmin):
    """No list and no row is ever shown: only summaries."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        page = require_http_methods(["GET", "HEAD", "POST"])(self.admin_site.admin_view(self.study_view))
        delete = require_POST(self.admin_site.admin_view(self.delete_view))
        return [
            path("study/<int:study_id>/", page, name="studies_demographics_study"),
            path("study/<int:study_id>/delete/", delete, name="studies_demographics_delete_of_study"),
            *super().get_urls(),  # lists and rows, which nobody has the permission for
        ]

    def study_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """The summaries; with POST, a file is taken over."""
        study = self._study(request, study_id)
        may_import = may(request, "add", Demographics)
        form = ExportForm(request.POST or None, request.FILES or None) if may_import else None
        if request.method == "POST":
            if form is None:
                raise PermissionDenied
            if form.is_valid() and self._import(request, study, form):
                return HttpResponseRedirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": "Demographics",
            "opts": self.opts,
            "original": study,
            "study": study,
            "study_url": change_url(study),
            "form": form,
            "known": known_people(study),
            "summaries": summary(study),
            "smallest": SMALLEST_GROUP,
            "may_delete": may(request, "delete", Demographics),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/studies/demographics.html", context)

    def _import(self, request: HttpRequest, study: Study, form: ExportForm) -> bool:
        try:
            imported = import_demographics(study, form.cleaned_data["file"].read())
        except UnreadableExport as error:
            form.add_error("file", str(error))
            return False
        text = f"Demographics of {counted(imported.people, 'submission')} taken over."
        if imported.unknown:
            text += f" {imported.unknown} of the file are not among this study's submissions and were left out."
        self.log_change(request, study, "Imported demographics.")
        messages.success(request, text)
        return True

    def delete_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        study = self._study(request, study_id)
        if not may(request, "delete", Demographics):
            raise PermissionDenied
        count = delete_demographics(study)
        self.log_change(request, study, "Deleted demographics.")
        messages.success(request, f"Demographics of {counted(count, 'submission')} deleted.")
        return HttpResponseRedirect(reverse("admin:studies_demographics_study", args=[study.pk]))

    def _study(self, request: HttpRequest, study_id: int) -> Study:
        if not (may(request, "view", Study) and may(request, "view", Participation)):
            raise PermissionDenied
        return get_object_or_404(Study, pk=study_id)
