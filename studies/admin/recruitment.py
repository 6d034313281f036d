"""A study on Prolific, on the researchers' pages: what is asked for, how it stands there, and what to do next."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods
from unfold.admin import ModelAdmin

from scooter_site.common.admin_tools import add_url, change_url, list_url, may, signed_in
from studies import selectors
from studies.admin.recruitment_actions import (
    ACTIONS,
    RecruitmentAction,
    fingerprint,
    landing_url,
    number_of,
    spending,
)
from studies.admin.recruitment_form import RecruitmentForm
from studies.flow import Outcome
from studies.models import Panel, PanelStudy, ParticipationKind, Study, StudyStatus, Submission, Workspace
from studies.pay import amount_due
from studies.recruitment.errors import ProlificError
from studies.recruitment.filters import WANTED, Candidate
from studies.recruitment.money import to_major
from studies.recruitment.payloads import completion_codes
from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus
from studies.selectors.recruitment import is_out_of_slots, screen_outs, submission_counts
from studies.services import recruitment
from studies.services.places import PlacesRefused, raise_places
from studies.services.recruitment import RecruitmentError

ACTION_LABELS = {
    "MANUALLY_REVIEW": "waits for review",
    "REQUEST_RETURN": "is asked to return",
    "FIXED_SCREEN_OUT_PAYMENT": "is paid at once by Prolific",
}
LIFE = (
    PanelStudyStatus.UNPUBLISHED,
    PanelStudyStatus.ACTIVE,
    PanelStudyStatus.AWAITING_REVIEW,
    PanelStudyStatus.COMPLETED,
)


class RecruitmentPages(ModelAdmin):
    """Mixin of StudyAdmin."""

    def get_urls(self) -> list[URLPattern]:
        pages = [
            ("recruitment", self.recruitment_view, "<int:study_id>/recruitment/"),
            ("recruitment_do", self.recruitment_do_view, "<int:study_id>/recruitment/do/<slug:name>/"),
            ("recruitment_places", self.recruitment_places_view, "<int:study_id>/recruitment/places/"),
            ("recruitment_filters", self.recruitment_filters_view, "<int:study_id>/recruitment/filters/"),
        ]
        own = [
            path(
                address,
                require_http_methods(["GET", "HEAD", "POST"])(self.admin_site.admin_view(view)),
                name=f"studies_study_{name}",
            )
            for name, view, address in pages
        ]
        return own + super().get_urls()

    def recruitment_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """With POST, what is asked for is saved; nothing is sent to Prolific."""
        study = self._recruited(request, study_id)
        panel_study = PanelStudy.objects.select_related("workspace").filter(study=study).first()
        form = None
        may_ask = study.panel == Panel.PROLIFIC and Workspace.objects.exists() and may(request, "change", PanelStudy)
        if may_ask and is_open_to_change(panel_study):
            form = RecruitmentForm(
                request.POST if request.method == "POST" else None,
                study=study,
                instance=panel_study,
                initial=None if panel_study else recruitment.suggested(study),
            )
        if request.method == "POST":
            if form is None:
                raise PermissionDenied
            if form.is_valid():
                form.save()
                self.log_change(request, study, "Changed what is asked for on Prolific.")
                messages.success(request, "Saved. Nothing has been sent to Prolific yet.")
                return self._to_recruitment(study)
        context = {
            **self._page(request, study, "Recruitment"),
            **recruitment_context(study, panel_study, request),
            "form": form,
        }
        return TemplateResponse(request, "admin/studies/recruitment.html", context)

    def recruitment_do_view(self, request: HttpRequest, study_id: int, name: str) -> HttpResponse:
        """Asked for with GET, the question; with POST, the deed."""
        study = self._recruited(request, study_id)
        panel_study = get_object_or_404(PanelStudy.objects.select_related("workspace"), study=study)
        panel_study.study = study
        action = ACTIONS.get(name)
        if action is None:
            raise Http404(f"There is no action {name}.")
        if not may_do(request, action):
            raise PermissionDenied
        try:
            if action.spends and request.method != "POST" and panel_study.panel_id:
                recruitment.read(panel_study)
            spends = spending(panel_study, name, request)
        except (ProlificError, RecruitmentError) as error:
            messages.error(request, in_words(error))
            return self._to_recruitment(study)
        if request.method != "POST":
            context = {
                **self._page(request, study, action.label),
                **recruitment_context(study, panel_study, request),
                "action": action,
                "spends": spends,
                "seen": fingerprint(panel_study, spends) if action.spends else "",
                "number": request.GET.get("number", ""),
                "fits": panel_study.status in action.states,
                "back_url": reverse("admin:studies_study_recruitment", args=[study.pk]),
            }
            return TemplateResponse(request, "admin/studies/recruitment_question.html", context)
        if action.spends and request.POST.get("seen") != fingerprint(panel_study, spends):
            messages.error(request, "What it costs has changed since you were asked. Read the numbers again.")
            return self._to_recruitment(study)
        # Before it is asked for: it may be done, and its answer be lost.
        wanted = f": {request.POST.get('number', '')[:10]}" if action.number else ""
        self.log_change(request, study, f"On Prolific: {action.label}{wanted}.")
        places_before = study.place_count
        if said := failure_of(lambda: action.run(panel_study, request)):
            self.log_change(request, study, f"On Prolific: {action.label} was refused, or not answered.")
            messages.error(request, said)
        else:
            messages.success(request, action.done)
        if study.place_count != places_before:
            self.log_change(request, study, f"Raised the places to {study.place_count}.")
        return self._to_recruitment(study)

    def recruitment_places_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """With POST, more places here; on Prolific nothing changes."""
        study = self._recruited(request, study_id)
        if not may(request, "change", Study):
            raise PermissionDenied
        if request.method == "POST":
            try:
                raise_places(study, number_of(request))
            except (RecruitmentError, PlacesRefused) as error:
                messages.error(request, str(error))
            else:
                self.log_change(request, study, f"Raised the places to {study.place_count}.")
                messages.success(request, f"There are {study.place_count} places now.")
        return self._to_recruitment(study)

    def recruitment_filters_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """The service's own prescreeners, read and confirmed by a person; answers are proposed by their words."""
        study = self._recruited(request, study_id)
        panel_study = get_object_or_404(PanelStudy.objects.select_related("workspace"), study=study)
        if not may(request, "change", PanelStudy):
            raise PermissionDenied
        try:
            found = recruitment.filter_candidates(panel_study.workspace)
            if request.method == "POST":
                chosen = [(one, request.POST.getlist(f"filter-{one.filter.id}")) for one in found]
                count = recruitment.confirm_filters(panel_study, chosen, signed_in(request).get_username())
                self.log_change(request, study, "Confirmed the filters for Prolific.")
                people = f"{count:,}" if count else "fewer than 25"
                messages.success(request, f"The filters are confirmed: {people} people on Prolific may take part.")
                return self._to_recruitment(study)
        except (ProlificError, RecruitmentError, ValueError) as error:
            messages.error(request, in_words(error))
            return self._to_recruitment(study)
        context = {
            **self._page(request, study, "Filters"),
            "wanted": [{"wanted": one, "candidates": _choices(found, one.name, panel_study)} for one in WANTED],
            "panel_study": panel_study,
            "back_url": reverse("admin:studies_study_recruitment", args=[study.pk]),
        }
        return TemplateResponse(request, "admin/studies/recruitment_filters.html", context)

    def _page(self, request: HttpRequest, study: Study, title: str) -> dict[str, Any]:
        request.current_app = self.admin_site.name
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "original": study,
            "study": study,
        }

    def _recruited(self, request: HttpRequest, study_id: int) -> Study:
        if not self.has_view_permission(request) or not may(request, "view", PanelStudy):
            raise PermissionDenied
        return get_object_or_404(Study.objects.select_related("attack", "target_model"), pk=study_id)

    def _to_recruitment(self, study: Study) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:studies_study_recruitment", args=[study.pk]))


def failure_of(deed: Any) -> str:
    """Do it; what went wrong, in words, or "" if nothing."""
    try:
        deed()
    except (ProlificError, RecruitmentError) as error:
        return in_words(error)
    return ""


def in_words(error: Exception) -> str:
    return f"Prolific: {error.text}" if isinstance(error, ProlificError) else str(error)


def is_open_to_change(panel_study: PanelStudy | None) -> bool:
    return panel_study is None or panel_study.status in {"", PanelStudyStatus.UNPUBLISHED}


def may_do(request: HttpRequest, action: RecruitmentAction) -> bool:
    if not may(request, "change", PanelStudy):
        return False
    return not action.spends or request.user.has_perm("studies.spend_panelstudy")


def recruitment_context(study: Study, panel_study: PanelStudy | None, request: HttpRequest) -> dict[str, Any]:
    context: dict[str, Any] = {
        "is_prolific": study.panel == Panel.PROLIFIC,
        "panel_study": panel_study,
        "links": selectors.study_links(study, request.build_absolute_uri("/")),
        "study_url": change_url(study),
        "places_taken_here": selectors.places_taken(study, ParticipationKind.REAL),
        "may_raise_places": study.status in {StudyStatus.RUNNING, StudyStatus.PAUSED} and may(request, "change", Study),
        "codes": _codes(study, panel_study, request),
        "has_workspace": Workspace.objects.exists(),
        "add_workspace_url": add_url(Workspace) if may(request, "add", Workspace) else "",
        "reward": amount_due(Outcome.COMPLETED, study.rates),
        "screen_outs": [(outcome.label, amount) for outcome, amount in screen_outs(study).items()],
        "currency": study.currency,
    }
    if panel_study is None:
        return context
    counts = submission_counts(panel_study)
    offered = {
        name: action
        for name, action in ACTIONS.items()
        if panel_study.status in action.states
        and may_do(request, action)
        and (name != "slots" or panel_study.slots_there is not None)
        # Of a published study only what it costs after a change, where that could not be asked then.
        and (name != "estimate" or is_open_to_change(panel_study) or panel_study.estimated_cost_minor is None)
    }
    estimate = panel_study.estimated_cost_minor
    out_of_slots = is_out_of_slots(panel_study)
    review = Submission.objects.filter(study=study).exclude(review_reason="").count()
    return {
        **context,
        "actions": offered,
        "life": _life(panel_study),
        "counts": [(SubmissionStatus(status).label, count) for status, count in sorted(counts.items())],
        "screened_out": counts.get(SubmissionStatus.SCREENED_OUT, 0),
        "enough_places": enough_places(panel_study),
        "too_many_there": max(0, (panel_study.places_there or 0) - study.place_count),
        "out_of_slots": out_of_slots,
        "slots_variant": "primary" if out_of_slots else "default",
        "estimate": to_major(estimate) if estimate is not None else None,
        "rewards_total": to_major(panel_study.reward_minor) * panel_study.places,
        "screen_outs_total": to_major(recruitment.screen_out_minor(panel_study)),
        "bonuses_total": to_major(recruitment.bonuses_minor(panel_study)),
        "bonus_people": recruitment.failures_reckoned_with(panel_study.places),
        "review_count": review,
        "submissions_url": list_url(Submission, f"study__id__exact={study.pk}"),
        "review_url": list_url(Submission, f"study__id__exact={study.pk}&review=waiting"),
    }


def enough_places(panel_study: PanelStudy) -> int:
    """The total of places to ask for there, where Prolific lets nobody in any more and places here are free; else 0.

    All there had been taken, and then people gave theirs back.
    """
    study, there = panel_study.study, panel_study
    if there.status not in {PanelStudyStatus.AWAITING_REVIEW, PanelStudyStatus.COMPLETED}:
        return 0
    free = selectors.places_left(study, ParticipationKind.REAL) if study.status == StudyStatus.RUNNING else 0
    # Only a larger total opens it again.
    return max((there.places_there or 0) + 1, (there.places_taken or 0) + free) if free else 0


def _life(panel_study: PanelStudy) -> list[PanelStudyStatus]:
    """The usual way, with the present state in it."""
    status = panel_study.status
    if status in {PanelStudyStatus.PAUSED, PanelStudyStatus.SCHEDULED, PanelStudyStatus.UNKNOWN}:
        usual_for = PanelStudyStatus.UNPUBLISHED if status == PanelStudyStatus.SCHEDULED else PanelStudyStatus.ACTIVE
        return [PanelStudyStatus(status) if one == usual_for else one for one in LIFE]
    return list(LIFE)


def _codes(study: Study, panel_study: PanelStudy | None, request: HttpRequest) -> list[dict[str, Any]]:
    """Each outcome's code, and what Prolific does with who brings it."""
    rows: list[dict[str, Any]] = [
        {"outcome": Outcome(code.outcome).label, "code": code.code, "action": "", "amount": None}
        for code in study.completion_codes.all()
    ]
    if panel_study is None:
        return rows
    plan = recruitment.plan_of(panel_study, landing_url(panel_study, request))
    for row, sent in zip(rows, completion_codes(plan), strict=True):
        [action] = sent["actions"]
        row["action"] = ACTION_LABELS[action["action"]]
        if "fixed_screen_out_reward" in action:
            row["amount"] = to_major(action["fixed_screen_out_reward"])
    return rows


def _choices(found: list[Candidate], name: str, panel_study: PanelStudy) -> list[dict[str, Any]]:
    """Candidates with their answers; ticked is what was confirmed before, else what is proposed."""
    confirmed = {one["filter_id"]: one["selected_values"] for one in panel_study.filters}
    was_confirmed = panel_study.filters_confirmed_at is not None
    rows = []
    for one in (candidate for candidate in found if candidate.wanted.name == name):
        ticked = confirmed.get(one.filter.id, []) if was_confirmed else one.proposed
        # What looks right first: the service's lists are long.
        answers = sorted(one.filter.choices.items(), key=lambda item: (item[0] not in one.proposed, item[1]))
        rows.append({"filter": one.filter, "answers": [(key, label, key in ticked) for key, label in answers]})
    return rows
