"""The page on which a participant writes to the researchers and reads what they answered.

It asks for no name and no address: whoever opens the same link again finds the answer here.
"""

from http import HTTPStatus

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from studies.forms import as_counted
from studies.models import Panel, Participation, ParticipationKind, Study
from studies.models.messages import LONGEST_MESSAGE
from studies.services.messages import MESSAGES_PER_HOUR, TooManyMessages, note_answers_read, send_message
from studies.views import notices
from studies.views.access import SeeOther, current_participation, study_page

TOO_MANY = (
    f"You have sent as many messages as we can take for now: {MESSAGES_PER_HOUR} an hour. Nothing you have written "
    "before is lost. Please try again later."
)


class ContactForm(forms.Form):
    """One question."""

    text = forms.CharField(
        max_length=LONGEST_MESSAGE,
        error_messages={
            "required": "Please write your question first.",
            "max_length": f"Please shorten your message to {LONGEST_MESSAGE} characters.",
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@study_page
def contact(request: HttpRequest, study: Study) -> HttpResponse:
    """The form, what was asked before, and the answers."""
    participation = current_participation(request, study)
    if participation is None:
        return notices.notice_page(request, notices.no_session(study), study)
    if request.method != "POST":
        return _page(request, participation)
    form = ContactForm({"text": as_counted(request.POST.get("text", ""))})
    if not form.is_valid():
        return _page(request, participation, problem=str(form.errors["text"][0]), status=HTTPStatus.BAD_REQUEST)
    try:
        send_message(participation.pk, form.cleaned_data["text"])
    except TooManyMessages:
        return _page(request, participation, problem=TOO_MANY, status=HTTPStatus.TOO_MANY_REQUESTS)
    return SeeOther(reverse("studies:contact", args=[study.slug]) + "?sent=1")


def _page(
    request: HttpRequest, participation: Participation, problem: str = "", status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    sent = list(participation.messages.order_by("-id"))
    if request.method != "HEAD" and any(message.has_new_answer for message in sent):
        note_answers_read(participation.pk)  # the page still marks them as new
    context = {
        "study": participation.study,
        "participation": participation,
        "is_contact_page": True,
        "is_preview": participation.kind == ParticipationKind.PREVIEW,
        "is_prolific": participation.study.panel == Panel.PROLIFIC,
        "problem": problem,
        "was_sent": "sent" in request.GET and not problem,
        "written": request.POST.get("text", "") if problem else "",  # nobody should have to write it again
        "longest": LONGEST_MESSAGE,
        "messages": sent,
        "run_url": reverse("studies:run", args=[participation.study.slug]),
    }
    return render(request, "studies/contact.html", context, status=status)
