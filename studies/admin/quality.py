"""Quality on the researchers' pages: what the rules say about a study and a participant, and the decisions."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST, require_safe
from unfold.admin import ModelAdmin

from scooter_site.common.admin_tools import change_url, signed_in
from scooter_site.common.words import counted
from studies.models import Decision, Participation, Study, StudyStatus, Verdict
from studies.quality import DESCRIPTIONS, Action, Finding, Rule, amount
from studies.selectors.quality import (
    ParticipationQuality,
    decisions_about,
    quality_findings,
    same_person,
    standing_decision,
    study_quality,
)
from studies.services.decisions import LONGEST_REASON, DecisionRefused, decide, exclude_each, why_not_decidable

DECIDE = "studies.decide_participation"
SHOWN = {"flagged": "Flagged", "out": "Not counting", "decided": "Decided by a person", "all": "Everybody"}
LATEST_DECISIONS = 50
MOST_AT_ONCE = 200  # exclusions in one request: each is a transaction of its own

QUALITY_FIELDSET = (
    "Quality",
    {
        "description": "What points at people who do not look. A rule that excludes does so when somebody finishes; "
        "a person can undo it. Failed attention checks have their threshold above.",
        "fields": (
            "attention_rule",
            ("fast_median_rule", "fast_median_seconds"),
            ("fast_share_rule", "fast_answer_seconds", "fast_share_percent"),
            ("long_string_rule", "long_string_percent"),
            ("variance_rule", "variance_percent"),
            ("no_difference_rule", "no_difference_percent"),
            ("focus_rule", "focus_percent"),
        ),
    },
)


class QualityPages(ModelAdmin):
    """Mixin of StudyAdmin: what the rules say about a study's participants."""

    def get_urls(self) -> list[URLPattern]:
        pages = [
            ("quality", require_safe(self.quality_view), "<int:study_id>/quality/"),
            ("exclude", require_POST(self.exclude_view), "<int:study_id>/quality/exclude/"),
        ]
        own = [
            path(address, self.admin_site.admin_view(view), name=f"studies_study_{name}")
            for name, view, address in pages
        ]
        return own + super().get_urls()

    def quality_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        if not self.has_view_permission(request) or not request.user.has_perm("studies.view_participation"):
            raise PermissionDenied
        study = get_object_or_404(Study.objects.select_related("attack", "target_model"), pk=study_id)
        context = {
            **self.admin_site.each_context(request),
            **study_context(study, request.GET.get("show", "")),
            "may_decide": request.user.has_perm(DECIDE) and study.status != StudyStatus.ARCHIVED,
            "longest_reason": LONGEST_REASON,
            "title": "Quality",
            "opts": self.opts,
            "original": study,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/studies/quality.html", context)

    def exclude_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """Exclude the participants that were ticked. Each is posted with the newest decision that was shown of it."""
        may_see = self.has_view_permission(request) and request.user.has_perm("studies.view_participation")
        if not may_see or not request.user.has_perm(DECIDE):
            raise PermissionDenied
        study = get_object_or_404(Study, pk=study_id)
        ticked = dict(_ticked(each) for each in request.POST.getlist("participation"))
        of_study = Participation.objects.filter(study=study, pk__in=ticked).in_bulk()
        if not of_study:
            messages.error(request, "Nobody was excluded: tick the participants first.")
        elif len(of_study) > MOST_AT_ONCE:
            messages.error(request, f"Nobody was excluded: tick at most {MOST_AT_ONCE} at once.")
        else:
            seen = {number: ticked[number] for number in of_study}
            made, refused = exclude_each(seen, reason=request.POST.get("reason", ""), author=signed_in(request))
            if made:
                count = counted(len(made), "participant")
                messages.success(request, f"{count} excluded, and the places are free. Codes and pay stay as they are.")
            for number, error in refused.items():
                messages.error(request, f"{of_study[number]}: {error}")
        query = urlencode({"show": request.POST.get("show", "")})
        return HttpResponseRedirect(f"{reverse('admin:studies_study_quality', args=[study.pk])}?{query}")


class DecisionPages(ModelAdmin):
    """Mixin of ParticipationAdmin: the quality panel of a participant, and deciding."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.decide_view))
        return [path("<int:participation_id>/decide/", view, name="studies_participation_decide"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        participation = (
            Participation.objects.filter(pk=object_id).select_related("study", "identity").first()
            if object_id.isdigit()
            else None
        )
        context = {} if participation is None else {"quality": participation_context(participation, request)}
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def decide_view(self, request: HttpRequest, participation_id: int) -> HttpResponse:
        if not self.has_view_permission(request) or not request.user.has_perm(DECIDE):
            raise PermissionDenied
        participation = get_object_or_404(Participation, pk=participation_id)
        seen = request.POST.get("seen", "")
        try:
            decision = decide(
                participation.pk,
                request.POST.get("verdict", ""),
                reason=request.POST.get("reason", ""),
                author=signed_in(request),
                seen=int(seen) if _is_id(seen) else None,
            )
        except DecisionRefused as error:
            messages.error(request, str(error))
        else:
            messages.success(request, said(decision))
        return HttpResponseRedirect(change_url(participation))


def _ticked(posted: str) -> tuple[int, int | None]:
    """The id of a participation, and that of the newest decision about it: "12:34", or "12:" before any."""
    participation, _, newest = posted.partition(":")
    return (
        int(participation) if _is_id(participation) else 0,
        int(newest) if _is_id(newest) else None,
    )


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def said(decision: Decision) -> str:
    """What a decision did, in a sentence or two."""
    participation = Participation.objects.select_related("study", "dataset").get(pk=decision.participation_id)
    if not participation.is_valid:
        return "The ratings no longer count, and the place is free. Code and pay stay as they are."
    dataset, planned = participation.dataset, participation.study.participants_per_dataset
    valid = Participation.objects.filter(dataset=dataset, kind=participation.kind, is_valid=True).count()
    number = dataset.number if dataset else ""
    if valid > planned:
        return (
            f"The ratings count. Set {number} now has {counted(valid, 'valid participant')} where {planned} "
            f"{'was' if planned == 1 else 'were'} planned: more than planned does no harm."
        )
    return f"The ratings count. Set {number} has {valid} of {counted(planned, 'valid participant')}."


# --- What the pages show --------------------------------------------------------------------------------------


def study_context(study: Study, show: str) -> dict[str, Any]:
    show = show if show in SHOWN else "flagged"
    everybody = study_quality(study)
    policy = study.quality_policy
    used = [rule for rule in Rule if policy.actions[rule] != Action.OFF]
    people = {
        "flagged": [each for each in everybody if each.flagged],
        "out": [each for each in everybody if each.participation.outcome and not each.participation.is_valid],
        "decided": [each for each in everybody if each.decision and each.decision.author_id],
        "all": everybody,
    }
    return {
        "study": study,
        "study_url": change_url(study),
        "rules": [
            {
                **rule_words(rule),
                "threshold": amount(policy.thresholds[rule], DESCRIPTIONS[rule].unit),
                "action": policy.actions[rule].label,
                "judged": sum(_value(each, rule) is not None for each in everybody),
                "flagged": sum(any(finding.rule == rule for finding in each.flagged) for each in everybody),
            }
            for rule in Rule
        ],
        "columns": [{"label": DESCRIPTIONS[rule].label, "unit": DESCRIPTIONS[rule].unit} for rule in used],
        "tabs": [
            {"name": name, "label": label, "count": len(people[name]), "is_current": name == show}
            for name, label in SHOWN.items()
        ],
        "people": [_line(each) for each in people[show]],
        "show": show,
        "may_exclude": any(each.participation.is_valid for each in people[show]),
        "count": len(everybody),
        "flagged_count": len(people["flagged"]),
        "out_count": len(people["out"]),
        "decisions": Decision.objects.filter(participation__study=study)
        .select_related("author", "participation")
        .order_by("-id")[:LATEST_DECISIONS],
    }


def participation_context(participation: Participation, request: HttpRequest) -> dict[str, Any]:
    """The quality panel of one participant. ``verdicts``: (value, label) of what may be decided now."""
    decisions = decisions_about(participation)
    standing = standing_decision(decisions)
    obstacle = why_not_decidable(participation)
    verdicts = []
    if not obstacle:
        verdicts.append((Verdict.EXCLUDE, "Exclude") if participation.is_valid else (Verdict.INCLUDE, "Include"))
        if standing is not None:
            verdicts.append((Verdict.UNDO, f"Undo “{standing.get_verdict_display().lower()}”"))
    policy = participation.study.quality_policy
    return {
        "lines": [
            {**rule_words(finding.rule), **_measured(finding), "action": policy.actions[finding.rule].label}
            for finding in quality_findings(participation)
        ],
        "decisions": list(reversed(decisions)),
        "standing": standing,
        "seen": decisions[-1].pk if decisions else "",
        "obstacle": obstacle,
        "verdicts": verdicts,
        "may_decide": request.user.has_perm(DECIDE),
        "longest_reason": LONGEST_REASON,
        "same_person": list(same_person(participation).order_by("id")),
    }


def rule_words(rule: Rule) -> dict[str, Any]:
    description = DESCRIPTIONS[rule]
    return {
        "label": description.label,
        "beyond": "above" if description.above else "below",
        "measures": description.measures,
        "source": description.source,
        "fair": description.fair,
    }


def _measured(finding: Finding) -> dict[str, Any]:
    unit = DESCRIPTIONS[finding.rule].unit
    return {
        "value": "–" if finding.value is None else amount(finding.value, unit),
        "number": "–" if finding.value is None else amount(finding.value, ""),
        "threshold": amount(finding.threshold, unit),
        "is_flagged": finding.is_flagged,
    }


def _line(quality: ParticipationQuality) -> dict[str, Any]:
    participation = quality.participation
    decisions = participation.decisions.all()  # prefetched, oldest first
    return {
        "participation": participation,
        "newest": decisions[len(decisions) - 1].pk if decisions else "",
        "values": [_measured(finding) for finding in quality.findings],
        "decision": quality.decision,
        "state": "Counts" if participation.is_valid else participation.get_outcome_display() or "Under way",
    }


def _value(quality: ParticipationQuality, rule: Rule) -> float | None:
    return next((finding.value for finding in quality.findings if finding.rule == rule), None)
