"""A study's page: its settings, and above them where it is in its life and what to do next."""

from decimal import Decimal
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from scooter_site.common.admin_tools import StayOnPage, change_url, list_url, signed_in
from studies import selectors
from studies.admin.actions import ACTIONS, StudyAction, available_actions
from studies.admin.exports import ExportPages
from studies.admin.forms import (
    PLACEHOLDER_HELP,
    TEXT_FIELDS,
    StudyCreateForm,
    StudyForm,
    random_slug,
    reveals_something,
)
from studies.admin.monitor import MonitorPages
from studies.admin.quality import QUALITY_FIELDSET, QualityPages
from studies.admin.recruitment import RecruitmentPages
from studies.flow import Outcome
from studies.models import (
    CompletionCode,
    PanelStudy,
    ParticipantMessage,
    Participation,
    Study,
    StudyStatus,
    TextKind,
)
from studies.pay import amount_due
from studies.selectors.counting import countable
from studies.selectors.messages import message_counts
from studies.services import life

BEFORE_LAUNCH = {StudyStatus.DRAFT, StudyStatus.READY}
STATUS_LABELS = {
    StudyStatus.DRAFT.label: "",
    StudyStatus.READY.label: "info",
    StudyStatus.RUNNING.label: "success",
    StudyStatus.PAUSED.label: "warning",
    StudyStatus.CLOSED.label: "",
    StudyStatus.ARCHIVED.label: "",
}


class CompletionCodeInline(TabularInline):
    """The codes that participants take back to the panel: one per outcome, made with the study."""

    model = CompletionCode
    fields = ("outcome", "code")
    readonly_fields = ("outcome",)
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("studies.change_study") and (obj is None or is_editable(obj))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("studies.view_study")


@admin.register(Study)
class StudyAdmin(MonitorPages, ExportPages, QualityPages, RecruitmentPages, StayOnPage, ModelAdmin):
    list_display = ("title", "status_label", "attack", "target_model", "valid_of_planned", "created_at")
    list_select_related = ("attack", "target_model")
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("attack", RelatedDropdownFilter),
        ("target_model", RelatedDropdownFilter),
        ("is_demo", BooleanRadioFilter),
    )
    list_filter_submit = True
    search_fields = ("title", "slug", "attack__name", "target_model__name")
    actions = ()
    form = StudyForm
    autocomplete_fields = ("attack", "target_model")
    change_form_outer_before_template = "admin/studies/study_panel_holder.html"
    add_fieldsets = (
        (
            None,
            {
                "description": "Five answers make a study. All other numbers and the texts come from the preset; you "
                "can change each of them on the next page.",
                "fields": ("title", "attack", "target_model", "preset_name", "slug"),
            },
        ),
    )
    fieldsets: Any = (
        ("Name", {"fields": ("title", "public_title", "slug", "attack", "target_model", "contact_email")}),
        (
            "Rating scale",
            {
                "fields": (
                    "scale_widget",
                    "scale_direction",
                    ("scale_minimum", "scale_maximum"),
                    "label_minimum",
                    "label_maximum",
                )
            },
        ),
        (
            "Plan",
            {
                "description": "Images are divided into sets; each participant rates one set. Enough people for every "
                "set, and some more because a few will fail a check.",
                "fields": (
                    ("dataset_count", "participants_per_dataset"),
                    ("clean_per_dataset", "modified_per_dataset"),
                    ("buffer_percent", "seed"),
                ),
            },
        ),
        (
            "Checks",
            {
                "description": "Before the main study: colour vision, then whether the instructions were understood. "
                "In it: attention.",
                "fields": (
                    ("plate_count", "plates_required"),
                    ("comprehension_pair_count", "comprehension_required"),
                    "comprehension_tries",
                    ("corrupted_check_count", "instructed_check_count"),
                    ("instructed_tolerance", "attention_failures_allowed"),
                    "attention_policy",
                ),
            },
        ),
        QUALITY_FIELDSET,
        ("Main study", {"fields": ("may_go_back", ("minimum_viewing_ms", "break_every"))}),
        (
            "Devices and time",
            {
                "fields": (
                    "phones_allowed",
                    ("minimum_viewport_width", "minimum_viewport_height"),
                    "lease_minutes",
                )
            },
        ),
        (
            "Recruitment and pay",
            {
                "fields": (
                    "panel",
                    "prolific_study_id",
                    ("participant_parameter", "session_parameter"),
                    "return_url",
                    ("hourly_rate", "currency"),
                    "minutes_complete",
                    ("minutes_colour_check", "minutes_comprehension"),
                )
            },
        ),
        ("Texts", {"description": PLACEHOLDER_HELP, "fields": tuple(TEXT_FIELDS)}),
    )
    inlines = (CompletionCodeInline,)

    # --- Permissions ------------------------------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is edited while datasets are being drawn from the settings."""
        return super().has_change_permission(request, obj) and (obj is None or not is_building(obj))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """From launch on, everything that an answer may depend on; and what Prolific has given the study."""
        made_there = ("prolific_study_id",) if obj and PanelStudy.objects.filter(study=obj).exists() else ()
        if obj is None or obj.status in BEFORE_LAUNCH:
            return made_there
        frozen = (name for name in flatten_fieldsets(self.fieldsets) if name not in life.NEVER_FROZEN)
        return (*frozen, *made_there)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only a draft without materials: from then on a study is archived, not deleted."""
        if obj is None or obj.status != StudyStatus.DRAFT or obj.materials_requested_at:
            return False
        return super().has_delete_permission(request, obj)

    # --- List -------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Study]:
        valid = countable("participations__") & Q(participations__is_valid=True)
        return super().get_queryset(request).annotate(valid_count=Count("participations", filter=valid))

    @display(description="status", ordering="status", label=STATUS_LABELS)
    def status_label(self, study: Study) -> str:
        return study.get_status_display()

    @display(description="valid participants", ordering="valid_count")
    def valid_of_planned(self, study: Any) -> str:
        return f"{study.valid_count} of {study.planned_participations}"

    # --- Forms ------------------------------------------------------------------------------------------------

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> type[ModelForm]:
        if obj is None:
            kwargs["form"] = StudyCreateForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        return self.inlines if obj else ()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"slug": random_slug(), **super().get_changeform_initial_data(request)}

    def save_model(self, request: HttpRequest, obj: Study, form: Any, change: bool) -> None:
        if change:
            settings = {name: form.cleaned_data[name] for name in form.changed_data if name not in TEXT_FIELDS}
            life.change_settings(obj, **settings)
            for kind, body in form.changed_texts().items():
                life.update_text(obj, kind, body)
        else:
            answers = dict(form.cleaned_data)
            preset = answers.pop("preset_name")
            created = life.create_study_from_preset(preset=preset, created_by=signed_in(request), **answers)
            obj.pk = created.pk
            obj.refresh_from_db()
        if reveals_something(obj):
            messages.warning(
                request,
                f"Participants see “{obj.slug}” in their link, and it may tell them what the study is about. "
                "Consider another slug.",
            )

    @display(description="Consent")
    def text_consent(self, study: Study) -> str:
        return _newest_text(study, TextKind.CONSENT)

    @display(description="Instructions")
    def text_instructions(self, study: Study) -> str:
        return _newest_text(study, TextKind.INSTRUCTIONS)

    @display(description="Question above the scale")
    def text_question(self, study: Study) -> str:
        return _newest_text(study, TextKind.QUESTION)

    @display(description="Feedback questions")
    def text_feedback(self, study: Study) -> str:
        return _newest_text(study, TextKind.FEEDBACK)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except life.StudyStateError as error:
            # Launched in another window meanwhile: the transaction is rolled back, the page says why.
            messages.error(request, str(error))
            return HttpResponseRedirect(request.path)

    # --- Pages ------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        pages = [
            ("live", self.live_view, "<int:study_id>/live/"),
            ("do", self.action_view, "<int:study_id>/do/<slug:name>/"),
        ]
        own = [
            path(address, self.admin_site.admin_view(view), name=f"studies_study_{name}")
            for name, view, address in pages
        ]
        return own + self.monitor_urls() + self.export_urls() + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        study = _studies().filter(pk=object_id).first() if object_id.isdigit() else None
        context = {} if study is None else panel_context(study, request)
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def live_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """The panel alone, while materials are being built; says when there is nothing to wait for."""
        study = self._viewable(request, study_id)
        response = render(request, "admin/studies/study_panel.html", panel_context(study, request))
        if not is_building(study):
            response["X-Refresh-Done"] = "1"
        return response

    def action_view(self, request: HttpRequest, study_id: int, name: str) -> HttpResponse:
        """Asked for with GET, the question; with POST, the deed. Only a POST changes anything."""
        action = ACTIONS.get(name)
        if action is None:
            raise Http404(f"There is no action {name}.")
        study = self._viewable(request, study_id)
        if not request.user.has_perm(f"studies.{action.permission}_study"):
            raise PermissionDenied
        if request.method != "POST":
            return self._question(request, study, action)
        try:
            next_study = action.run(study, request) or study
        except life.StudyStateError as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(change_url(study))
        self.log_change(request, study, action.label)
        messages.success(request, action.done)
        return HttpResponseRedirect(change_url(next_study))

    def _question(self, request: HttpRequest, study: Study, action: StudyAction) -> HttpResponse:
        lines = selectors.readiness(study, look_for_files=True) if action.name == "launch" else []
        context = {
            **self.admin_site.each_context(request),
            "title": action.label,
            "opts": self.opts,
            "original": study,
            "study": study,
            "action": action,
            "back_url": change_url(study),
            "fits": study.status in action.states,
            "amounts": amounts(study),
            "unready": [line for line in lines if not line.ok],
            "doubtful": [line for line in lines if line.look_at],
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/studies/study_question.html", context)

    def _viewable(self, request: HttpRequest, study_id: int) -> Study:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return get_object_or_404(_studies(), pk=study_id)


def _studies() -> QuerySet[Study]:
    return Study.objects.select_related("attack", "target_model", "copied_from")


def _newest_text(study: Study, kind: TextKind) -> str:
    text = selectors.study_text(study, kind)
    return text.body if text else ""


def is_building(study: Study) -> bool:
    """Whether datasets and check images were asked for and are neither there nor given up."""
    requested, built = study.materials_requested_at, study.materials_built_at
    return bool(requested and not study.materials_error and (built is None or built < requested))


def is_editable(study: Study) -> bool:
    return study.status in BEFORE_LAUNCH and not is_building(study)


def amounts(study: Study) -> dict[str, Any]:
    """What one participant is due per outcome, and all places together, in the study's currency."""
    full = amount_due(Outcome.COMPLETED, study.rates)
    return {
        "full": full,
        "colour_check": amount_due(Outcome.COLOUR_CHECK_FAILED, study.rates),
        "comprehension": amount_due(Outcome.COMPREHENSION_FAILED, study.rates),
        "places": study.place_count,
        "total": full * Decimal(study.place_count),
    }


def panel_context(study: Study, request: HttpRequest) -> dict[str, Any]:
    """Context of the panel above a study's settings."""
    actions = available_actions(study, request)
    if is_building(study):
        actions.pop("build", None)
    lines = selectors.readiness(study) if is_editable(study) else []
    is_ready = study.status == StudyStatus.READY and all(line.ok for line in lines)
    if not is_ready:
        actions.pop("launch", None)
    may_change = request.user.has_perm("studies.change_study")
    message_count, waiting_count = message_counts(study)
    return {
        "study": study,
        "actions": actions,
        "building": is_building(study),
        "editable": is_editable(study),
        "launched": study.status not in BEFORE_LAUNCH,
        "readiness": lines,
        "problem_count": sum(not line.ok for line in lines),
        "attention_count": sum(line.look_at for line in lines),
        "is_ready": is_ready,
        "life": [status for status in StudyStatus if status != StudyStatus.PAUSED or study.status == status],
        "amounts": amounts(study),
        "links": selectors.study_links(study, request.build_absolute_uri("/")),
        "may_preview": may_change
        and study.status in {StudyStatus.READY, StudyStatus.RUNNING, StudyStatus.PAUSED}
        and not is_building(study),
        "texts": selectors.newest_texts(study) if may_change else [],
        "participations_url": list_url(Participation, f"study__id__exact={study.pk}"),
        "message_count": message_count,
        "waiting_count": waiting_count,
        "messages_url": list_url(ParticipantMessage, f"participation__study__id__exact={study.pk}"),
        "copied_from_url": change_url(study.copied_from) if study.copied_from else "",
    }
