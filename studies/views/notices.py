"""Pages that stand in place of the study and say what to do."""

import math
from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from scooter_site.common.words import counted
from studies.landing import LandingProblem, LandingRefused
from studies.models import Panel, Participation, Study


@dataclass(frozen=True)
class Notice:
    """What happened and what the reader can do now; ``reason`` names the case for machines."""

    reason: str
    status: HTTPStatus
    title: str
    text: str
    steps: tuple[str, ...]
    detail: str = ""
    retry_url: str = ""


RETURN = "Please return your submission on Prolific, so that your place is free for someone else."
CLOSE = "You can close this page; there is nothing more to do."
OPEN_FROM_PROLIFIC = "Close this page, go back to the study on Prolific and open it from there."


def notice_page(
    request: HttpRequest, notice: Notice, study: Study | None = None, participation: Participation | None = None
) -> HttpResponse:
    """The notice as a page of its own; with a link to the researchers for a ``participation`` that is known."""
    context = {"notice": notice, "study": study, "participation": participation}
    response = render(request, "studies/notice.html", context, status=notice.status)
    response["Cache-Control"] = "no-store"
    return response


def _is_prolific(study: Study) -> bool:
    return study.panel == Panel.PROLIFIC


def unknown_study() -> Notice:
    return Notice(
        reason="unknown_study",
        status=HTTPStatus.NOT_FOUND,
        title="There is no study at this address",
        text="The link may have been cut off or mistyped.",
        steps=("Open the complete link again, exactly as you were given it.", "Or ask whoever sent it to you."),
    )


def link_refused(study: Study, refused: LandingRefused) -> Notice:
    """For a link whose parameters open no session."""
    detail = f"For the researchers: {refused.parameter}, {refused.problem.value.replace('_', ' ')}."
    if refused.problem is LandingProblem.OTHER_STUDY:
        return Notice(
            reason="other_study",
            status=HTTPStatus.BAD_REQUEST,
            title="This link belongs to another study",
            text="The study on Prolific that sent you here and this page do not fit together.",
            steps=(RETURN, "Please tell the researchers, so that they can mend the link."),
            detail=detail,
        )
    if not _is_prolific(study):
        return Notice(
            reason=refused.problem.value,
            status=HTTPStatus.BAD_REQUEST,
            title="This link is not complete",
            text="A part of the address is missing or was changed on its way to you.",
            steps=("Open the complete link again, exactly as you were given it.", "Or ask whoever sent it to you."),
            detail=detail,
        )
    if refused.problem is LandingProblem.PLACEHOLDER:
        return Notice(
            reason="placeholder",
            status=HTTPStatus.BAD_REQUEST,
            title="This link was not opened from Prolific",
            text="Prolific puts your ids into the link when you open the study there. In this link they are missing.",
            steps=(OPEN_FROM_PROLIFIC, "Researchers: to try the study, use its test link or preview."),
            detail=detail,
        )
    if refused.problem is LandingProblem.PREVIEW:
        return Notice(
            reason="preview",
            status=HTTPStatus.BAD_REQUEST,
            title="This link comes from a preview on Prolific",
            text="Its ids belong to nobody, so answers could be neither kept nor paid. Nothing has been started.",
            steps=(
                "Participants: " + OPEN_FROM_PROLIFIC,
                "Researchers: to try the study, use its test link or preview; neither counts.",
            ),
            detail=detail,
        )
    return Notice(
        reason=refused.problem.value,
        status=HTTPStatus.BAD_REQUEST,
        title="This link is not complete",
        text="We could not read your Prolific ids from the link, so your answers could not be paid. "
        "Nothing has been started.",
        steps=(OPEN_FROM_PROLIFIC, "If you see this page again, return your submission and tell the researchers."),
        detail=detail,
    )


def unknown_session() -> Notice:
    return Notice(
        reason="unknown_session",
        status=HTTPStatus.NOT_FOUND,
        title="We do not know this personal link",
        text="It may have been cut off or mistyped.",
        steps=("Open the complete link again, exactly as it was shown to you.",),
    )


def _way_to_continue(study: Study) -> str:
    """What leads somebody back to their session without our cookie: a link that names the person, and no other."""
    if _is_prolific(study):
        return "Open the study from Prolific again; you continue where you stopped."
    if study.session_parameter:
        return "Open the study again where you were sent here from; you continue where you stopped."
    return (
        "Open your personal link, the one on the study's first page or one that was made for you alone; you continue "
        "where you stopped. The link that everybody gets begins the study anew."
    )


def no_session(study: Study) -> Notice:
    """For somebody whose browser sent no cookie of ours."""
    return Notice(
        reason="no_session",
        status=HTTPStatus.FORBIDDEN,
        title="Please open your link again",
        text="Your browser did not tell us which session is yours. It may block cookies, or the session is too old. "
        "We use one cookie, only to save your answers to the right session.",
        steps=("Allow cookies for this site, or leave private browsing.", _way_to_continue(study)),
    )


def not_open(study: Study, reason: str) -> Notice:
    """For newcomers whom the study does not take; ``reason`` is that of StudyNotOpen."""
    if reason == "already_took_part":
        return _already_took_part(study)
    title, text = {
        "not_started": ("This study has not started yet", "It cannot be taken at the moment."),
        "paused": (
            "This study is paused",
            f"No new participants can start at the moment. If you had started already: {_way_to_continue(study)}",
        ),
        "closed": ("This study has ended", "It takes no more participants. Thank you for your interest."),
    }[reason]
    later = ("You can try again later.",) if reason != "closed" else (CLOSE,)
    return Notice(
        reason=reason,
        status=HTTPStatus.FORBIDDEN,
        title=title,
        text=text,
        steps=(RETURN,) if _is_prolific(study) else later,
    )


def device_not_suitable(study: Study, reason: str) -> Notice:
    """For a window in which the study cannot be taken; ``reason`` is that of DeviceNotSuitable."""
    title, text, steps = {
        "not_measured": (
            "This study needs JavaScript",
            "Your browser did not tell us the size of its window, mostly because JavaScript is switched off.",
            ("Switch JavaScript on for this site.", "Then try again: nothing has been started yet."),
        ),
        "window_too_small": (
            "Please make this window larger",
            f"The images need at least {study.minimum_viewport_width} × {study.minimum_viewport_height} points of "
            "space, and this window has less.",
            (
                "Maximise the window, or zoom out (Ctrl and −; on a Mac ⌘ and −).",
                "On a phone, change to a computer or a large tablet.",
                "Then try again: nothing has been started yet.",
            ),
        ),
    }[reason]
    return Notice(
        reason=reason,
        status=HTTPStatus.BAD_REQUEST,
        title=title,
        text=text,
        steps=(*steps, f"If that cannot be done: {RETURN}") if _is_prolific(study) else steps,
        retry_url=reverse("studies:run", args=[study.slug]),
    )


def page_expired() -> Notice:
    """For a form that came back without its protection against forged requests."""
    return Notice(
        reason="page_expired",
        status=HTTPStatus.FORBIDDEN,
        title="This page was open for too long",
        text="What you sent just now could not be saved. Your earlier answers are.",
        steps=(
            "Go back and reload the page; you continue where you stopped.",
            "If you see this page again, allow cookies for this site.",
        ),
    )


def too_many_arrivals(study: Study, seconds: float) -> Notice:
    """For somebody from whose network many have begun lately, ``seconds`` before they can begin too."""
    minutes = max(math.ceil(seconds / 60), 1)
    wait = f"Keep this page open and try again in {counted(minutes, 'minute')}."
    return Notice(
        reason="too_many_arrivals",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        title="Please wait a little",
        text="Many people have begun this study from your network in a short time. Nothing has been started yet.",
        steps=(wait,),
        retry_url=reverse("studies:run", args=[study.slug]),
    )


def full(study: Study) -> Notice:
    return Notice(
        reason="full",
        status=HTTPStatus.FORBIDDEN,
        title="All places are taken",
        text="This study has no free place at the moment. Thank you for your interest.",
        steps=(RETURN,)
        if _is_prolific(study)
        else ("A place may become free again: you can try once more in an hour or so.",),
    )


def _already_took_part(study: Study) -> Notice:
    return Notice(
        reason="already_took_part",
        status=HTTPStatus.FORBIDDEN,
        title="You have already taken part",
        text="Each person can take this study once, and we have a session of yours already.",
        steps=(RETURN,) if _is_prolific(study) else (CLOSE,),
    )
