"""What the admin pages of the leaderboard share."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminTextareaWidget

from leaderboard.formatting import format_number
from leaderboard.services.requests import Pair, request_recomputation
from leaderboard.tasks import recompute_pair
from scooter_site.common.tasks import enqueue


class ReasonForm(forms.Form):
    """Why something is taken back."""

    reason = forms.CharField(widget=UnfoldAdminTextareaWidget, max_length=2000)


class NoteForm(forms.Form):
    """What is said of a snapshot."""

    note = forms.CharField(
        widget=UnfoldAdminTextareaWidget,
        max_length=2000,
        required=False,
        help_text="For visitors: what is new. It cannot be changed later.",
    )


class PublishForm(NoteForm):
    """Bound to the draft that the page showed: a click that comes late, or twice, publishes nothing else."""

    seen = forms.CharField(widget=forms.HiddenInput, required=False)


def recompute_soon(pairs: list[Pair]) -> None:
    """Have these pairs computed anew, once the transaction has committed."""
    for pair in pairs:
        request_recomputation(*pair)
        enqueue(recompute_pair, *pair)


def looked_at(count: int) -> str:
    """What asking for these pairs does: equal ratings, rules and program give the result that is there."""
    pairs = f"{count} pair{'' if count == 1 else 's'}"
    return f"{pairs} will be looked at within seconds, and computed where ratings, rules or program have changed"


def question_page(request: HttpRequest, model_admin: Any, template: str, title: str, **context: Any) -> HttpResponse:
    """A page beside the forms: a question, with what to know before answering it."""
    request.current_app = model_admin.admin_site.name
    whole = {**model_admin.admin_site.each_context(request), "title": title, "opts": model_admin.opts, **context}
    return TemplateResponse(request, f"admin/leaderboard/{template}", whole)


def decimals(value: float | None, *, signed: bool = False) -> str:
    """A value in points, to two places on any scale."""
    return format_number(value, 2, always_signed=signed)
