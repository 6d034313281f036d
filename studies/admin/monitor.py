"""The live numbers of a study: a page that keeps itself up to date while somebody looks at it."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_safe
from unfold.admin import ModelAdmin

from scooter_site.common.admin_tools import change_url, list_url
from studies import selectors
from studies.admin.participation_report import in_words
from studies.flow import Outcome
from studies.models import Participation, Study
from studies.selectors import live


class MonitorPages(ModelAdmin):
    """Mixin of StudyAdmin: the page and the part of it that is asked for again and again."""

    def monitor_urls(self) -> list[URLPattern]:
        pages = [
            ("monitor", self.monitor_view, "<int:study_id>/monitor/"),
            ("monitor_live", self.monitor_live_view, "<int:study_id>/monitor/live/"),
        ]
        return [
            path(address, self.admin_site.admin_view(require_safe(view)), name=f"studies_study_{name}")
            for name, view, address in pages
        ]

    def monitor_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        study = self._monitored(request, study_id)
        context = {
            **self.admin_site.each_context(request),
            **monitor_context(study),
            "title": "Live numbers",
            "opts": self.opts,
            "original": study,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/studies/monitor.html", context)

    def monitor_live_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        return render(
            request, "admin/studies/monitor_numbers.html", monitor_context(self._monitored(request, study_id))
        )

    def _monitored(self, request: HttpRequest, study_id: int) -> Study:
        if not self.has_view_permission(request):
            raise PermissionDenied
        study = Study.objects.filter(pk=study_id).first()
        if study is None:
            raise Http404("There is no such study.")
        return study


def monitor_context(study: Study) -> dict[str, Any]:
    """Context of the live numbers; a fixed number of queries."""
    numbers = selectors.monitor(study)
    everybody = live.progress_of_all(study)
    arrivals = live.arrivals([one.started_at for one in everybody])
    highest = max((bar.count for bar in arrivals.bars), default=0)
    wanted = study.participants_per_dataset
    return {
        "study": study,
        "numbers": numbers,
        "arrived": len(everybody),
        "percent": min(100, round(100 * numbers.valid_participations / numbers.planned_participations)),
        "steps": [
            {"line": line, "percent": _percent(line.reached, len(everybody)), "time": _in_words(line.time)}
            for line in live.step_lines(study, everybody, timezone.now())
        ],
        "total_time": _in_words(live.total_times(everybody)),
        "outcomes": [(Outcome(outcome).label, count) for outcome, count in numbers.by_outcome.items()],
        "bars": [{"bar": bar, "percent": _percent(bar.count, highest)} for bar in arrivals.bars],
        "bar_width": _width(arrivals.minutes),
        "highest": highest,
        "checks": live.check_rates(study),
        "pay": live.pay(
            study,
            numbers.by_outcome,
            unfinished_places=sum(dataset.running for dataset in numbers.datasets),
            places_left=max(0, numbers.place_count - numbers.places_taken),
        ),
        "datasets": [
            {"dataset": dataset, "open": max(0, wanted - dataset.valid - dataset.running)}
            for dataset in numbers.datasets
        ],
        "needed_per_dataset": wanted,
        "participations_url": list_url(Participation, f"study__id__exact={study.pk}"),
        "study_url": change_url(study),
    }


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0


def _in_words(time: live.Quartiles | None) -> dict[str, str] | None:
    if time is None:
        return None
    return {"median": in_words(time.median), "lower": in_words(time.lower), "upper": in_words(time.upper)}


def _width(minutes: int) -> str:
    """For example "10 minutes", "hour" or "3 hours"."""
    for size, name in ((10_080, "week"), (1440, "day"), (60, "hour"), (1, "minute")):
        if minutes % size == 0:
            count = minutes // size
            return name if count == 1 else f"{count} {name}s"
    return f"{minutes} minutes"
