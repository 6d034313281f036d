"""Submissions on Prolific beside what happened here, and the queue of those that a person has to decide about."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import display

from scooter_site.common.admin_tools import ReadOnlyAdmin, change_url, may, signed_in
from studies.admin.participation import may_see_identities
from studies.admin.recruitment import in_words
from studies.models import Submission
from studies.recruitment.errors import ProlificError
from studies.recruitment.review import Offer
from studies.recruitment.statuses import NO_CODE
from studies.services.recruitment import RecruitmentError
from studies.services.recruitment_sync import fingerprint, read_meaning, settle


class ReviewFilter(admin.SimpleListFilter):
    title = "decision"
    parameter_name = "review"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", "Waits for a decision"), ("settled", "Decided")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Submission]) -> QuerySet[Submission]:
        match self.value():
            case "waiting":
                return queryset.exclude(review_reason="")
            case "settled":
                return queryset.filter(settled_at__isnull=False)
        return queryset


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin, ModelAdmin):
    list_display = ("reference", "study", "status_there", "outcome_here", "decision", "completed_at")
    list_select_related = ("study", "participation")
    list_filter = (
        ReviewFilter,
        ("study", RelatedDropdownFilter),
        ("status", ChoicesDropdownFilter),
        ("review_reason", ChoicesDropdownFilter),
    )
    list_per_page = 50
    list_fullwidth = True
    show_full_result_count = False
    change_form_outer_before_template = "admin/studies/submission_panel.html"

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        # Searching by panel id would tell whether somebody took part.
        if not may_see_identities(request):
            return ("^participation__public_id",)
        return ("^participation__public_id", "=participant_id", "=submission_id")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[str | None, dict[str, Any]]]:
        ids = ("participant_id", "submission_id") if may_see_identities(request) else ()
        there = ("raw_status", "code_in_words", "return_requested", "bonuses_in_words", "started_at", "completed_at")
        return [
            ("On Prolific", {"fields": (*ids, *there, "read_at")}),
            ("Here", {"fields": ("study", "participation", "outcome_here")}),
            ("Decision", {"fields": ("decision", "settled_by", "settled_at")}),
        ]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.settle_view))
        return [path("<int:submission_pk>/settle/", view, name="studies_submission_settle"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        submission = (
            Submission.objects.filter(pk=object_id)
            .select_related("participation__completion_code", "participation__identity")
            .first()
            if object_id.isdigit()
            else None
        )
        context: dict[str, Any] = {}
        if submission is not None:
            read = read_meaning(submission)
            context = {
                "submission": submission,
                "offers": read.offers if submission.review_reason and may_settle(request) else (),
                "seen": fingerprint(submission),
            }
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def settle_view(self, request: HttpRequest, submission_pk: int) -> HttpResponse:
        if not may_settle(request):
            raise PermissionDenied
        submission = get_object_or_404(Submission, pk=submission_pk)
        try:
            offer = Offer(request.POST.get("offer", ""))
            settle(submission_pk, offer, signed_in(request).get_username(), seen=request.POST.get("seen", ""))
        except ValueError:
            messages.error(request, "Choose what is to be done.")
        except (ProlificError, RecruitmentError) as error:
            messages.error(request, in_words(error))
        else:
            self.log_change(request, submission, f"Decided: {offer.label}.")
            messages.success(request, f"Decided: {offer.label}.")
        return HttpResponseRedirect(change_url(submission))

    @display(description="submission")
    def reference(self, submission: Submission) -> str:
        if submission.participation is None:
            return f"no. {submission.pk}, never seen here"
        return str(submission.participation.public_id)[:8]

    @display(description="on Prolific", ordering="status")
    def status_there(self, submission: Submission) -> str:
        return submission.get_status_display()

    @display(description="outcome here")
    def outcome_here(self, submission: Submission) -> str:
        participation = submission.participation
        if participation is None:
            return "never seen"
        return participation.get_outcome_display() if participation.outcome else "not ended"

    @display(description="decision")
    def decision(self, submission: Submission) -> str:
        if submission.review_reason:
            return f"Waits: {submission.get_review_reason_display()}"
        return submission.get_settled_with_display() if submission.settled_with else "–"

    @display(description="code they came with")
    def code_in_words(self, submission: Submission) -> str:
        """With what it stands for: it may be another one than was shown here, or come from nobody who was here."""
        entered = submission.entered_code
        if entered in {"", NO_CODE}:
            return entered or "none"
        code = submission.study.completion_codes.filter(code=entered).first()
        return f"{entered}: {code.get_outcome_display()}" if code else f"{entered}: none of this study's"

    @display(description="bonuses in pence or cents")
    def bonuses_in_words(self, submission: Submission) -> str:
        if submission.bonuses_minor is None:
            return "not read"
        return ", ".join(str(amount) for amount in submission.bonuses_minor) or "none"


def may_settle(request: HttpRequest) -> bool:
    return may(request, "change", Submission)
