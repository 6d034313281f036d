"""A participant's way through a study, as the pages call it."""

from studies.services.admission import AlreadyTookPart, StudyFull, StudyNotOpen
from studies.services.answers import (
    Timings,
    answer_pair,
    answer_plate,
    answer_trial,
    finish_instructions,
    give_feedback,
)
from studies.services.entering import Device, DeviceNotSuitable, accept_consent, decline_consent, enter_study
from studies.services.pointer import InvalidAnswer
from studies.services.time_out import close_timed_out

__all__ = [
    "AlreadyTookPart",
    "Device",
    "DeviceNotSuitable",
    "InvalidAnswer",
    "StudyFull",
    "StudyNotOpen",
    "Timings",
    "accept_consent",
    "answer_pair",
    "answer_plate",
    "answer_trial",
    "close_timed_out",
    "decline_consent",
    "enter_study",
    "finish_instructions",
    "give_feedback",
]
