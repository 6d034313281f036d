"""What a participant's link says: its parameters, read strictly. Pure: no Django, no database.

Panels send people with ids in the address. A link with anything missing, repeated, not filled in or of the wrong shape
opens no session: a participation under a wrong id could be neither resumed nor paid.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

Parameters = Mapping[str, Sequence[str]]  # every value of every parameter, as parsed from the query string

PROLIFIC_PARAMETERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
# Prolific's ids are 24 hexadecimal characters; those of its preview mode are not.
PROLIFIC_ID = re.compile(r"[0-9a-f]{24}")
PROLIFIC_PREVIEW_ID = re.compile(r"[0-9A-Za-z]{12}")
OWN_ID = re.compile(r"[A-Za-z0-9._~-]{1,60}")
# An address is decoded once before it is parsed here; a link that was encoded twice still holds %7B for "{".
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{%|%\}|%[A-Z_]+%")


class LandingProblem(StrEnum):
    """Why a link opens no session."""

    MISSING = "missing"
    EMPTY = "empty"
    REPEATED = "repeated"
    WRONG_CASE = "wrong_case"
    PLACEHOLDER = "placeholder"
    PREVIEW = "preview"
    MALFORMED = "malformed"
    OTHER_STUDY = "other_study"
    OTHER_PERSON = "other_person"


class LandingRefused(Exception):
    """The link opens no session; ``problem`` and ``parameter`` say why. Never holds the value: it may be personal."""

    def __init__(self, problem: LandingProblem, parameter: str) -> None:
        super().__init__(f"{parameter}: {problem.value}")
        self.problem = problem
        self.parameter = parameter


@dataclass(frozen=True)
class Arrival:
    """Who arrives. An empty ``session_id``: a new session is to be made."""

    participant_id: str = ""
    session_id: str = ""


def read_prolific(parameters: Parameters, *, prolific_study_id: str = "") -> Arrival:
    """Ids of a link opened from Prolific. ``prolific_study_id``: the study id that must be in it; empty: any.

    Raises LandingRefused.
    """
    values = {name: _single(parameters, name) for name in PROLIFIC_PARAMETERS}
    for name, value in values.items():
        if value is None:
            raise LandingRefused(_absence(parameters, name), name)
        _refuse_unfilled(name, value)
    for name, value in values.items():
        if PROLIFIC_PREVIEW_ID.fullmatch(str(value)):
            raise LandingRefused(LandingProblem.PREVIEW, name)
        if not PROLIFIC_ID.fullmatch(str(value)):
            raise LandingRefused(LandingProblem.MALFORMED, name)
    if prolific_study_id and values["STUDY_ID"] != prolific_study_id:
        raise LandingRefused(LandingProblem.OTHER_STUDY, "STUDY_ID")
    return Arrival(participant_id=str(values["PROLIFIC_PID"]), session_id=str(values["SESSION_ID"]))


def read_direct(parameters: Parameters, *, participant: str = "id", session: str = "") -> Arrival:
    """A link of another panel, or of researchers themselves. ``participant``, ``session``: its parameters' names.

    Without a session parameter, a person's every visit is one session, and who has no id is somebody new each time.
    With one, the panel says what a session is, and both ids have to be there.

    Raises LandingRefused.
    """
    identifier = _own_id(parameters, participant)
    if session:
        arrival = Arrival(participant_id=identifier, session_id=_own_id(parameters, session))
        for name, value in ((participant, arrival.participant_id), (session, arrival.session_id)):
            if not value:
                raise LandingRefused(LandingProblem.MISSING, name)
        return arrival
    # The prefix keeps a guessable id from being used as somebody's random session id.
    return Arrival(participant_id=identifier, session_id=f"id:{identifier}") if identifier else Arrival()


def read_resumption(parameters: Parameters) -> str:
    """The session id of a personal link (``?session=``), or "" when there is none. Raises LandingRefused."""
    return _own_id(parameters, "session")


def read_test(parameters: Parameters) -> Arrival:
    """A test link: ids are optional and of any simple shape, for bots and for Prolific's preview mode.

    Raises LandingRefused.
    """
    return Arrival(participant_id=_own_id(parameters, "PROLIFIC_PID"), session_id=_own_id(parameters, "SESSION_ID"))


def _own_id(parameters: Parameters, name: str) -> str:
    value = _single(parameters, name)
    if value is None:
        if _absence(parameters, name) == LandingProblem.WRONG_CASE:
            raise LandingRefused(LandingProblem.WRONG_CASE, name)
        return ""
    _refuse_unfilled(name, value)
    if not OWN_ID.fullmatch(value):
        raise LandingRefused(LandingProblem.MALFORMED, name)
    return value


def _single(parameters: Parameters, name: str) -> str | None:
    """The one value of a parameter; None when absent. Raises LandingRefused when there are several."""
    values = parameters.get(name, ())
    if len(values) > 1:
        raise LandingRefused(LandingProblem.REPEATED, name)
    return values[0] if values else None


def _absence(parameters: Parameters, name: str) -> LandingProblem:
    in_another_case = any(other != name and other.casefold() == name.casefold() for other in parameters)
    return LandingProblem.WRONG_CASE if in_another_case else LandingProblem.MISSING


def _refuse_unfilled(name: str, value: str) -> None:
    if not value.strip():
        raise LandingRefused(LandingProblem.EMPTY, name)
    if PLACEHOLDER.search(value) or PLACEHOLDER.search(unquote(value)):
        raise LandingRefused(LandingProblem.PLACEHOLDER, name)
