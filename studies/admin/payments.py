"""Payment runs on the researchers' pages: what is due, one page to check and confirm it, and how far it has got.

Only a POST changes anything, and only ``confirm`` leads to money being paid.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST, require_safe
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.decorators import display

from scooter_site.common.admin_tools import ReadOnlyAdmin, change_url, list_url, may, signed_in
from scooter_site.common.tasks import enqueue
from studies.models import PanelStudy, Payment, PaymentRun, PaymentState, Submission
from studies.recruitment.errors import ProlificError
from studies.recruitment.money import to_major
from studies.recruitment.payloads import SHORTEST_REJECTION
from studies.recruitment.payments import GROUNDS, Way
from studies.selectors.payments import asked_to_return, due_now, spent, totals, unclear_bonuses, unseen_verdicts
from studies.selectors.recruitment import submissions_to_review
from studies.services import payment_execution, payments
from studies.services.payments import PaymentRefused
from studies.services.recruitment import RecruitmentError
from studies.tasks import execute_payment_run

CONFIRM = "studies.confirm_paymentrun"
SEE_IDS = "studies.view_participantidentity"
# What does not happen: given up, or a bonus on top of a reward that was rejected instead.
NOT_COUNTED = {PaymentState.FAILED, PaymentState.WITHDRAWN}
STATES = {"Waits for confirmation": "warning", "Being carried out": "info", "Carried out": "success", "Withdrawn": ""}


def state_of(run: PaymentRun) -> str:
    if run.withdrawn_at:
        return "Withdrawn"
    if run.confirmed_at is None:
        return "Waits for confirmation"
    return "Carried out" if run.finished_at else "Being carried out"


@admin.register(PaymentRun)
class PaymentRunAdmin(ReadOnlyAdmin, ModelAdmin):
    list_display = ("number", "study", "state", "prepared_by", "prepared_at", "confirmed_by", "confirmed_at")
    list_select_related = ("panel_study__study", "prepared_by", "confirmed_by")
    list_filter = (("panel_study", RelatedDropdownFilter),)
    list_fullwidth = True

    def get_urls(self) -> list[URLPattern]:
        deeds: list[tuple[str, Callable[..., HttpResponse]]] = [
            ("confirm", self.confirm_view),
            ("withdraw", self.withdraw_view),
            ("unpaid", self.unpaid_view),
            ("unseen", self.unseen_view),
        ]
        return [
            path(
                "study/<int:study_id>/",
                self.admin_site.admin_view(require_safe(self.study_view)),
                name="studies_paymentrun_study",
            ),
            path(
                "study/<int:study_id>/prepare/",
                self.admin_site.admin_view(require_POST(self.prepare_view)),
                name="studies_paymentrun_prepare",
            ),
            *(
                path(
                    f"<int:run_id>/{name}/",
                    self.admin_site.admin_view(require_POST(view)),
                    name=f"studies_paymentrun_{name}",
                )
                for name, view in deeds
            ),
            path(
                "<int:run_id>/payment/<int:payment_id>/<slug:deed>/",
                self.admin_site.admin_view(require_POST(self.verdict_view)),
                name="studies_paymentrun_verdict",
            ),
            *super().get_urls(),
        ]

    # --- Pages ------------------------------------------------------------------------------------------------

    def study_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        """What a study has paid and what is due now."""
        panel_study = self._panel_study(request, study_id)
        due = due_now(panel_study)
        paid = spent(panel_study)
        currency = panel_study.workspace.currency
        runs = PaymentRun.objects.filter(panel_study=panel_study).select_related("prepared_by", "confirmed_by")
        context = {
            "title": "Payments",
            "original": panel_study.study,
            "study": panel_study.study,
            "study_url": change_url(panel_study.study),
            "currency": currency,
            "spent": [
                ("Approved", paid.approved, to_major(paid.approved_minor)),
                ("Screened out, paid by Prolific", paid.screened_out, to_major(paid.screened_out_minor)),
                ("Bonuses", paid.bonuses, to_major(paid.bonuses_minor)),
            ],
            "spent_total": to_major(paid.total_minor),
            "estimate": _major(panel_study.estimated_cost_minor),
            "due_count": len({submission.pk for submission, _ in due}),
            "due_total": to_major(sum(instruction.amount_minor for _, instruction in due)),
            "review_count": submissions_to_review().filter(study=panel_study.study_id).count(),
            "review_url": list_url(Submission, f"study__id__exact={panel_study.study_id}"),
            "asked_to_return": asked_to_return(panel_study),
            "runs": [{"run": run, "state": state_of(run), "url": change_url(run)} for run in runs],
            "waiting": any(run.confirmed_at is None and run.withdrawn_at is None for run in runs),
            "may_prepare": may(request, "add", PaymentRun),
        }
        return self._page(request, "admin/studies/payments.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page on which a run is checked and confirmed, and afterwards how it went."""
        if not object_id.isdecimal():
            raise Http404("There is no such payment run.")
        run = self._run(request, int(object_id))
        return self._page(request, "admin/studies/payment_run.html", run_context(run, request))

    # --- Deeds ------------------------------------------------------------------------------------------------

    def prepare_view(self, request: HttpRequest, study_id: int) -> HttpResponse:
        panel_study = self._panel_study(request, study_id)
        if not may(request, "add", PaymentRun):
            raise PermissionDenied
        try:
            run = payments.prepare(panel_study, signed_in(request))
        except PaymentRefused as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(study_url(panel_study))
        self.log_change(request, run, "Prepared.")
        return HttpResponseRedirect(change_url(run))

    def confirm_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        def deed(run: PaymentRun) -> str:
            with transaction.atomic():
                payments.confirm(run, signed_in(request), seen=request.POST.get("seen", ""))
                enqueue(execute_payment_run, run.pk)
            return "Confirmed. The payments are being carried out; this page says how far they are."

        return self._do(request, run_id, deed, CONFIRM, "Confirmed.")

    def withdraw_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        def deed(run: PaymentRun) -> str:
            payments.withdraw(run, signed_in(request))
            return "Withdrawn. Nothing was paid, and what is due can be prepared again."

        return self._do(request, run_id, deed, "studies.add_paymentrun", "Withdrawn.")

    def unpaid_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        def deed(run: PaymentRun) -> str:
            count = payment_execution.declare_unpaid(run, signed_in(request).get_username(), seen=_seen(request))
            return f"{count} bonus{'' if count == 1 else 'es'} noted as not paid: due again, in a new run."

        return self._do(request, run_id, deed, CONFIRM, "Unclear bonuses noted as not paid.")

    def unseen_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        def deed(run: PaymentRun) -> str:
            count = payment_execution.give_up_verdicts(run, signed_in(request).get_username(), seen=_seen(request))
            return f"{count} given up. What Prolific still has for review is due again, in a new run."

        return self._do(request, run_id, deed, CONFIRM, "Approvals and rejections given up that do not show.")

    def verdict_view(self, request: HttpRequest, run_id: int, payment_id: int, deed: str) -> HttpResponse:
        """Reject in place of approving, or the other way round."""

        def change(run: PaymentRun) -> str:
            payment = get_object_or_404(Payment.objects.select_related("run"), pk=payment_id, run=run)
            if deed == "approve":
                payments.approve_after_all(payment)
                return "It is to be approved after all."
            payments.reject_instead(
                payment, category=request.POST.get("category", ""), message=request.POST.get("message", "")
            )
            return "It is to be rejected, once the run is confirmed."

        if deed not in {"reject", "approve"}:
            raise Http404(f"There is no {deed}.")
        return self._do(request, run_id, change, CONFIRM, f"Payment {payment_id}: {deed}.")

    def _do(
        self, request: HttpRequest, run_id: int, deed: Callable[[PaymentRun], str], permission: str, logged: str
    ) -> HttpResponse:
        run = self._run(request, run_id)
        if not request.user.has_perm(permission):
            raise PermissionDenied
        try:
            said = deed(run)
        except (PaymentRefused, RecruitmentError) as error:
            messages.error(request, str(error))
        except ProlificError as error:
            messages.error(request, error.text)
        else:
            self.log_change(request, run, logged)
            messages.success(request, said)
        return HttpResponseRedirect(change_url(run))

    # --- Finding ----------------------------------------------------------------------------------------------

    def _panel_study(self, request: HttpRequest, study_id: int) -> PanelStudy:
        if not may(request, "view", PaymentRun):
            raise PermissionDenied
        return get_object_or_404(PanelStudy.objects.select_related("study", "workspace"), study=study_id)

    def _run(self, request: HttpRequest, run_id: int) -> PaymentRun:
        if not may(request, "view", PaymentRun):
            raise PermissionDenied
        runs = PaymentRun.objects.select_related("panel_study__study", "panel_study__workspace")
        return get_object_or_404(runs.select_related("prepared_by", "confirmed_by", "withdrawn_by"), pk=run_id)

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request, template, {**self.admin_site.each_context(request), "opts": self.opts, **context}
        )

    # --- List -------------------------------------------------------------------------------------------------

    @display(description="run", ordering="id")
    def number(self, run: PaymentRun) -> str:
        return f"Payment run {run.pk}"

    @display(description="study")
    def study(self, run: PaymentRun) -> str:
        return run.panel_study.study.title

    @display(description="state", label=STATES)
    def state(self, run: PaymentRun) -> str:
        return state_of(run)


def study_url(panel_study: PanelStudy) -> str:
    return reverse("admin:studies_paymentrun_study", args=[panel_study.study_id])


def run_context(run: PaymentRun, request: HttpRequest) -> dict[str, Any]:
    lines = list(run.payments.select_related("submission__participation", "submission__study").order_by("way", "id"))
    is_waiting = run.confirmed_at is None and run.withdrawn_at is None
    may_confirm = request.user.has_perm(CONFIRM)
    counted = [line for line in lines if run.withdrawn_at or line.state not in NOT_COUNTED]
    amount = sum(line.amount_minor for line in counted)
    unclear, unseen = _waited_for(run)
    return {
        "title": f"Payment run {run.pk}",
        "original": run,
        "run": run,
        "state": state_of(run),
        "study": run.panel_study.study,
        "payments_url": study_url(run.panel_study),
        "currency": run.panel_study.workspace.currency,
        "totals": [
            {
                "way": total.way.label,
                "people": total.people,
                "amount": to_major(total.amount_minor),
                "each": [(to_major(each), people) for each, people in total.each_minor],
            }
            for total in totals(counted)
        ],
        "people": len({line.submission_id for line in counted}),
        "amount": to_major(amount),
        "fees": _major(run.fees_minor),
        "total": _major(None if run.fees_minor is None else amount + run.fees_minor),
        "lines": [_line(line, may_change=is_waiting and may_confirm) for line in lines],
        "see_ids": request.user.has_perm(SEE_IDS),
        "is_waiting": is_waiting,
        "may_confirm": may_confirm,
        "may_withdraw": is_waiting and may(request, "add", PaymentRun),
        "seen": payments.fingerprint(run) if is_waiting else "",
        "unclear": unclear,
        "unseen": unseen,
        "grounds": GROUNDS.items(),
        "shortest": SHORTEST_REJECTION,
    }


def _waited_for(run: PaymentRun) -> tuple[list[int], list[int]]:
    """The bonuses, and the approvals and rejections, that the service was asked for long ago and does not show."""
    if run.confirmed_at is None:
        return [], []
    before = payment_execution.settled_before()
    return (
        list(unclear_bonuses(run, before).values_list("id", flat=True)),
        list(unseen_verdicts(run, before).values_list("id", flat=True)),
    )


def _seen(request: HttpRequest) -> set[int]:
    """The payments that stood on the page when somebody said what became of them."""
    return {int(value) for value in request.POST.getlist("seen") if value.isdecimal()}


def _line(payment: Payment, *, may_change: bool) -> dict[str, Any]:
    participation = payment.submission.participation
    failures = participation.attention_failures if participation else 0
    is_approval = payment.way == Way.APPROVE
    return {
        "payment": payment,
        "participation": participation,
        "participation_url": change_url(participation) if participation else "",
        "way": Way(payment.way).label,
        "amount": to_major(payment.amount_minor) if payment.amount_minor else None,
        "failures": failures,
        "may_reject": may_change and is_approval and not payments.obstacle_to_rejection(payment),
        "may_approve": may_change and payment.way == Way.REJECT,
        # The word in red is for what a person has to look at.
        "is_bad": payment.state == PaymentState.FAILED,
    }


def _major(amount_minor: int | None) -> Any:
    return None if amount_minor is None else to_major(amount_minor)
