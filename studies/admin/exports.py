"""Downloads of a study's data, from the study's own page. Whoever may look at participants may have the ratings; the
panel's ids and payment files are for those who may see the ids.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_safe
from unfold.admin import ModelAdmin

from scooter_site.common.admin_tools import change_url, may
from studies.flow import Outcome
from studies.models import Panel, PanelStudy, ParticipantIdentity, Participation, Study
from studies.pay import amount_due
from studies.selectors import exports
from studies.selectors.ratings import countable_participations

# What one call of Prolific's API takes (submissions/bulk-approve, submissions/bonus-payments).
IDS_PER_APPROVAL = 1000
IDS_PER_BONUS_FILE = 200


@dataclass(frozen=True)
class PaymentLine:
    """What is due for one outcome, and the files that pay it: (label, address)."""

    outcome: Outcome
    people: int
    amount: Decimal
    total: Decimal
    files: list[tuple[str, str]]


class ExportPages(ModelAdmin):
    """Mixin of StudyAdmin: the page of exports and its files."""

    def export_urls(self) -> list[URLPattern]:
        pages: list[tuple[str, Callable[..., HttpResponseBase], str]] = [
            ("exports", self.exports_view, "<int:study_id>/exports/"),
            ("ratings_file", self.ratings_file_view, "<int:study_id>/exports/ratings.<slug:format>"),
            ("participants_file", self.participants_file_view, "<int:study_id>/exports/participants.csv"),
            ("payment_file", self.payment_file_view, "<int:study_id>/exports/payment/<slug:outcome>/<slug:use>/"),
        ]
        return [
            path(
                address,
                self.admin_site.admin_view(require_safe(view)),
                name=_name(name),
            )
            for name, view, address in pages
        ]

    def exports_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """What can be downloaded, and what it is for."""
        study = self._exportable(request, study_id)
        counted = countable_participations(study)
        may_pay = may(request, "view", ParticipantIdentity)
        context = {
            **self.admin_site.each_context(request),
            "title": "Exports",
            "opts": self.opts,
            "original": study,
            "study": study,
            "study_url": change_url(study),
            "participant_count": counted.count(),
            "valid_count": counted.filter(is_valid=True).count(),
            "high_means": "modified" if study.rating_scale.higher_is_modified else "clean",
            "may_pay": may_pay,
            "is_paid_by_runs": is_paid_by_runs(study),
            "payments": payment_lines(study) if may_pay else [],
            "ratings_name": _file_name(study, "ratings", "csv"),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/studies/exports.html", context)

    def ratings_file_view(self, request: HttpRequest, study_id: int, format: str) -> HttpResponseBase:
        """All ratings that count, or with ``?rows=all`` those of every real participant."""
        study = self._exportable(request, study_id)
        if format not in exports.FILE_FORMATS:
            raise Http404(f"There is no format {format}.")
        rows = request.GET.get("rows", "counting")
        if rows not in {"counting", "all"}:
            raise Http404("rows is counting or all.")
        name = "ratings" if rows == "counting" else "all-ratings"
        content_type, written = exports.FILE_FORMATS[format]
        ratings = exports.rating_rows(study, counting_only=rows == "counting")
        return _download(written(exports.RATING_COLUMNS, ratings), content_type, _file_name(study, name, format))

    def participants_file_view(self, request: HttpRequest, study_id: int) -> HttpResponseBase:
        """One row per participant; with ``?panel_ids=1`` the panel's ids in columns of their own."""
        study = self._exportable(request, study_id)
        panel_ids = request.GET.get("panel_ids") == "1"
        if panel_ids:
            self._refuse_unless_may_pay(request)
            self.log_change(request, study, "Downloaded participants with panel ids.")
        content_type, written = exports.FILE_FORMATS["csv"]
        name = "participants-with-panel-ids" if panel_ids else "participants"
        pieces = written(
            exports.participant_columns(panel_ids=panel_ids), exports.participant_rows(study, panel_ids=panel_ids)
        )
        return _download(pieces, content_type, _file_name(study, name, "csv"))

    def payment_file_view(self, request: HttpRequest, study_id: int, outcome: str, use: str) -> HttpResponseBase:
        """``use``: list (a table for people), approve or bonus (for Prolific, in parts of what it takes at once)."""
        study = self._exportable(request, study_id)
        self._refuse_unless_may_pay(request)
        if outcome not in set(Outcome):
            raise Http404(f"There is no outcome {outcome}.")
        ended = Outcome(outcome)
        amount = amount_due(ended, study.rates)
        if use not in _uses(study, amount, by_runs=is_paid_by_runs(study)):
            raise Http404(f"There is no such payment file for {ended.label.lower()}.")
        self.log_change(request, study, f"Downloaded a payment file ({use}): {ended.label}.")
        if use == "list":
            content_type, written = exports.FILE_FORMATS["csv"]
            pieces = written(exports.PAYMENT_COLUMNS, exports.payment_rows(study, ended))
            return _download(pieces, content_type, _file_name(study, f"payment-{outcome}", "csv"))
        part = request.GET.get("part", "1")
        if not (part.isascii() and part.isdigit() and 0 < int(part) < 1000):
            raise Http404("Parts are 1, 2, ...")
        size = IDS_PER_APPROVAL if use == "approve" else IDS_PER_BONUS_FILE
        start = (int(part) - 1) * size
        lines = exports.prolific_lines(
            study, ended, amount=None if use == "approve" else amount, start=start, stop=start + size
        )
        name = _file_name(study, f"{use}-{outcome}-{int(part)}", "txt" if use == "approve" else "csv")
        return _download(lines, "text/plain; charset=utf-8" if use == "approve" else "text/csv; charset=utf-8", name)

    def _exportable(self, request: HttpRequest, study_id: int) -> Study:
        if not (self.has_view_permission(request) and may(request, "view", Participation)):
            raise PermissionDenied
        study = Study.objects.select_related("attack", "target_model").filter(pk=study_id).first()
        if study is None:
            raise Http404("There is no such study.")
        return study

    def _refuse_unless_may_pay(self, request: HttpRequest) -> None:
        if not may(request, "view", ParticipantIdentity):
            raise PermissionDenied


def _name(name: str) -> str:
    return f"studies_study_{name}"


def _file_name(study: Study, what: str, ending: str) -> str:
    return f"{study.slug}-{what}.{ending}"


def _download(pieces: Iterable[str], content_type: str, name: str) -> StreamingHttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(pieces, content_type=content_type, headers=headers)


def _uses(study: Study, amount: Decimal, *, by_runs: bool) -> list[str]:
    """Which payment files there are for an outcome that pays ``amount``: who gets the study's reward is approved."""
    if not amount:
        return []
    if study.panel != Panel.PROLIFIC or by_runs:
        return ["list"]
    is_reward = amount == amount_due(Outcome.COMPLETED, study.rates)
    return ["list", "approve" if is_reward else "bonus"]


def is_paid_by_runs(study: Study) -> bool:
    """Whether payment runs pay it, which would know nothing of what was paid with a file."""
    return PanelStudy.objects.filter(study=study).exists()


LABELS = {"list": "Payment list", "approve": "Ids to approve", "bonus": "Bonus file"}


def payment_lines(study: Study) -> list[PaymentLine]:
    """Every outcome that is paid; one query for each."""
    lines, by_runs = [], is_paid_by_runs(study)
    for outcome in Outcome:
        amount = amount_due(outcome, study.rates)
        if not amount:
            continue
        people = exports.paid_participations(study, outcome).count()
        files = []
        for use in _uses(study, amount, by_runs=by_runs) if people else []:
            size = {"approve": IDS_PER_APPROVAL, "bonus": IDS_PER_BONUS_FILE}.get(use, people)
            address = reverse("admin:" + _name("payment_file"), args=[study.pk, outcome.value, use])
            parts = range(1, -(-people // size) + 1)
            for part in parts:
                label = LABELS[use] + (f", part {part}" if len(parts) > 1 else "")
                files.append((label, f"{address}?part={part}" if part > 1 else address))
        lines.append(PaymentLine(outcome, people, amount, people * amount, files))
    return lines
