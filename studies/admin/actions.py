"""What a researcher can do with a study at each point of its life. Each action is one call of a service."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from scooter_site.common.admin_tools import signed_in
from studies.models import Study, StudyStatus
from studies.services import life

DRAFT, READY, RUNNING = StudyStatus.DRAFT, StudyStatus.READY, StudyStatus.RUNNING
PAUSED, CLOSED, ARCHIVED = StudyStatus.PAUSED, StudyStatus.CLOSED, StudyStatus.ARCHIVED


@dataclass(frozen=True)
class StudyAction:
    """A button, the states it is offered in, the question asked first (empty: none), and what it does.

    ``run`` gives the study whose page comes next. ``permission`` is the action of the model permission it needs.
    """

    name: str
    label: str
    done: str
    states: frozenset[StudyStatus]
    run: Callable[[Study, HttpRequest], Study | None]
    question: str = ""
    permission: str = "change"
    variant: str = "default"


def _copy(study: Study, request: HttpRequest) -> Study:
    return life.copy_study(study, created_by=signed_in(request))


ACTIONS = {
    action.name: action
    for action in (
        StudyAction(
            "build",
            "Build datasets and check images",
            "The datasets are being drawn and the check images made.",
            frozenset({DRAFT}),
            lambda study, request: life.request_materials(study),
        ),
        StudyAction(
            "rebuild",
            "Build again",
            "The datasets are being drawn and the check images made anew.",
            frozenset({READY}),
            lambda study, request: life.request_materials(study),
            question="rebuild",
        ),
        StudyAction(
            "launch",
            "Launch",
            "The study is running.",
            frozenset({READY}),
            lambda study, request: life.launch(study),
            question="launch",
        ),
        StudyAction(
            "pause",
            "Pause",
            "The study is paused: nobody new can start; those inside can finish.",
            frozenset({RUNNING}),
            lambda study, request: life.pause(study),
        ),
        StudyAction(
            "resume",
            "Resume",
            "The study is running again.",
            frozenset({PAUSED}),
            lambda study, request: life.resume(study),
        ),
        StudyAction(
            "close",
            "Close",
            "The study is closed: nobody can start any more.",
            frozenset({RUNNING, PAUSED}),
            lambda study, request: life.close(study),
            question="close",
            variant="danger",
        ),
        StudyAction(
            "archive",
            "Archive",
            "The study is archived.",
            frozenset({CLOSED}),
            lambda study, request: life.archive(study),
            question="archive",
        ),
        StudyAction(
            "copy",
            "Copy study",
            "This is the copy, a new draft with the same settings and texts.",
            frozenset(StudyStatus),
            _copy,
            permission="add",
        ),
    )
}


def available_actions(study: Study, request: HttpRequest) -> dict[str, StudyAction]:
    """The actions that make sense for this study now and that the signed-in user may take."""
    return {
        name: action
        for name, action in ACTIONS.items()
        if study.status in action.states and request.user.has_perm(f"studies.{action.permission}_study")
    }
