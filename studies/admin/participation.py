"""What participants did: to read, never to edit."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import BooleanRadioFilter, ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from scooter_site.common.admin_tools import ReadOnlyAdmin
from studies.admin.participation_report import in_words, report
from studies.admin.quality import DecisionPages
from studies.flow import Outcome, Step
from studies.models import Participation

KIND_LABELS = {"Real": "success", "Test": "warning", "Preview": ""}
PLACE_LABELS = {outcome.label: "danger" for outcome in Outcome} | {
    Outcome.COMPLETED.label: "success",
    Outcome.DECLINED.label: "",
    Outcome.TIMED_OUT.label: "",
    Outcome.REPLACED.label: "",
    Outcome.RETURNED.label: "",
}


@admin.register(Participation)
class ParticipationAdmin(ReadOnlyAdmin, DecisionPages, ModelAdmin):
    list_display = (
        "short_id",
        "study",
        "kind_label",
        "place",
        "is_valid",
        "dataset",
        "started_at",
        "duration",
    )
    list_select_related = ("study", "dataset", "identity")
    list_filter = (
        ("study", RelatedDropdownFilter),
        ("kind", ChoicesDropdownFilter),
        ("outcome", ChoicesDropdownFilter),
        ("step", ChoicesDropdownFilter),
        ("is_valid", BooleanRadioFilter),
    )
    list_filter_submit = True
    list_per_page = 50
    list_fullwidth = True
    search_help_text = "Search by the beginning of an id"
    show_full_result_count = False
    change_form_outer_before_template = "admin/studies/participation_report.html"

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        if not may_see_identities(request):
            return self.list_display
        return (self.list_display[0], "panel_id", *self.list_display[1:])

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        # Searching by panel id would tell whether somebody took part.
        if not may_see_identities(request):
            return ("^public_id",)
        return ("^public_id", "=identity__participant_id", "=identity__session_id")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[str | None, dict[str, Any]]]:
        identity = ("panel_id", "session_id") if may_see_identities(request) else ()
        return [
            (
                "Participation",
                {
                    "fields": (
                        "public_id",
                        *identity,
                        "study",
                        "kind",
                        "dataset",
                        "is_valid",
                        "completion_code",
                        "lease_expires_at",
                    )
                },
            ),
            (
                "Consent and device",
                {
                    "fields": (
                        "consent_text",
                        "consented_at",
                        "viewport_width",
                        "viewport_height",
                        "device_pixel_ratio",
                        "last_seen_at",
                    )
                },
            ),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        participation = (
            Participation.objects.filter(pk=object_id).select_related("study").first() if object_id.isdigit() else None
        )
        context = {} if participation is None else report(participation)
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    @display(description="participant")
    def short_id(self, participation: Participation) -> str:
        return str(participation.public_id)[:8]

    @display(description="panel id")
    def panel_id(self, participation: Participation) -> str:
        identity = getattr(participation, "identity", None)
        return identity.participant_id if identity else ""

    @display(description="session id")
    def session_id(self, participation: Participation) -> str:
        identity = getattr(participation, "identity", None)
        return identity.session_id if identity else ""

    @display(description="kind", ordering="kind", label=KIND_LABELS)
    def kind_label(self, participation: Participation) -> str:
        return participation.kind.capitalize()

    @display(description="where", ordering="step", label=PLACE_LABELS)
    def place(self, participation: Participation) -> str:
        if participation.outcome:
            return participation.get_outcome_display()
        return Step(participation.step).label

    @display(description="duration")
    def duration(self, participation: Participation) -> str:
        return in_words(participation.last_seen_at - participation.started_at)


def may_see_identities(request: HttpRequest) -> bool:
    return request.user.has_perm("studies.view_participantidentity")
