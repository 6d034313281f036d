"""The participant's way through a study, as a pure state machine: no Django, no database.

The server's pointer (``Participation.step``) is always one of these steps, and only ``next_step`` moves it.
"""

from enum import StrEnum


class Step(StrEnum):
    """Where a participant is."""

    CONSENT = "consent"
    COLOUR_CHECK = "colour_check"
    INSTRUCTIONS = "instructions"
    COMPREHENSION = "comprehension"
    MAIN = "main"
    FEEDBACK = "feedback"
    END = "end"


class Outcome(StrEnum):
    """How a participation ended; each has its own end page, completion code and pay."""

    COMPLETED = "completed"
    ATTENTION_FAILED = "attention_failed"
    COMPREHENSION_FAILED = "comprehension_failed"
    COLOUR_CHECK_FAILED = "colour_check_failed"
    DECLINED = "declined"
    TIMED_OUT = "timed_out"

    @property
    def label(self) -> str:
        return {
            Outcome.COMPLETED: "Completed",
            Outcome.ATTENTION_FAILED: "Failed the attention checks",
            Outcome.COMPREHENSION_FAILED: "Failed the comprehension check",
            Outcome.COLOUR_CHECK_FAILED: "Failed the colour-vision check",
            Outcome.DECLINED: "Did not consent",
            Outcome.TIMED_OUT: "Timed out",
        }[self]
