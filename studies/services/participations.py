"""A participant's way through a study, as the pages call it."""

from studies.services.admission import (
    AlreadyTookPart,
    SessionOfAnother,
    SessionOfOtherKind,
    StudyFull,
    StudyNotOpen,
)
from studies.services.answers import (
    answer_pair,
    answer_plate,
    finish_instructions,
    give_feedback,
)
from studies.services.entering import (
    Device,
    DeviceNotSuitable,
    accept_consent,
    decline_consent,
    enter_study,
    refuse_newcomers,
)
from studies.services.pointer import InvalidAnswer, OutOfTurn
from studies.services.rating import Session, Timings, Turn, answer_item, go_back, keep_place
from studies.services.time_out import close_timed_out, replace_participation, return_participation

__all__ = [
    "AlreadyTookPart",
    "Device",
    "DeviceNotSuitable",
    "InvalidAnswer",
    "OutOfTurn",
    "Session",
    "SessionOfAnother",
    "SessionOfOtherKind",
    "StudyFull",
    "StudyNotOpen",
    "Timings",
    "Turn",
    "accept_consent",
    "answer_item",
    "answer_pair",
    "answer_plate",
    "close_timed_out",
    "decline_consent",
    "enter_study",
    "finish_instructions",
    "give_feedback",
    "go_back",
    "keep_place",
    "refuse_newcomers",
    "replace_participation",
    "return_participation",
]
