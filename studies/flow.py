"""The participant's way through a study, as a pure state machine: no Django, no database.

The server's pointer (``Participation.step``) is always one of these steps, and only ``next_step`` moves it.
"""

from dataclasses import dataclass
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

    @property
    def label(self) -> str:
        """For researchers; the participants' pages have words of their own."""
        return {
            Step.CONSENT: "Consent",
            Step.COLOUR_CHECK: "Colour-vision check",
            Step.INSTRUCTIONS: "Instructions",
            Step.COMPREHENSION: "Comprehension check",
            Step.MAIN: "Main study",
            Step.FEEDBACK: "Feedback",
            Step.END: "End",
        }[self]


class Outcome(StrEnum):
    """How a participation ended; each has its own end page and pay, and most have a completion code."""

    COMPLETED = "completed"
    ATTENTION_FAILED = "attention_failed"
    COMPREHENSION_FAILED = "comprehension_failed"
    COLOUR_CHECK_FAILED = "colour_check_failed"
    DECLINED = "declined"
    TIMED_OUT = "timed_out"
    REPLACED = "replaced"
    RETURNED = "returned"

    @property
    def has_code(self) -> bool:
        """Whether it has a completion code.

        A replaced session goes on in a later one, which ends with the code; for a returned one there is nothing to
        submit any more.
        """
        return self not in {Outcome.REPLACED, Outcome.RETURNED}

    @property
    def label(self) -> str:
        return {
            Outcome.COMPLETED: "Completed",
            Outcome.ATTENTION_FAILED: "Failed the attention checks",
            Outcome.COMPREHENSION_FAILED: "Failed the comprehension check",
            Outcome.COLOUR_CHECK_FAILED: "Failed the colour-vision check",
            Outcome.DECLINED: "Did not consent",
            Outcome.TIMED_OUT: "Timed out",
            Outcome.REPLACED: "Replaced by a later session",
            Outcome.RETURNED: "Returned on the panel",
        }[self]


@dataclass(frozen=True)
class Rules:
    """The settings of a study that decide the way through it."""

    plate_count: int
    plates_required: int
    pair_count: int
    pairs_required: int
    comprehension_tries: int
    attention_failures_allowed: int
    end_at_once: bool


def steps_of(rules: Rules) -> list[Step]:
    """The steps of a study in order, up to its end: a check without items is left out."""
    left_out = {
        Step.COLOUR_CHECK: not rules.plate_count,
        Step.COMPREHENSION: not rules.pair_count,
        Step.END: True,
    }
    return [step for step in Step if not left_out.get(step)]


@dataclass(frozen=True)
class Consented:
    """The participant accepted the consent text and has a place."""


@dataclass(frozen=True)
class Declined:
    """The participant did not accept the consent text."""


@dataclass(frozen=True)
class PlatesAnswered:
    """All colour plates were answered."""

    correct: int


@dataclass(frozen=True)
class InstructionsRead:
    """The participant went on from the instructions."""


@dataclass(frozen=True)
class PairsAnswered:
    """All comprehension pairs of an attempt (1, 2, ...) were answered."""

    correct: int
    attempt: int


@dataclass(frozen=True)
class TrialAnswered:
    """One item of the main study was answered; ``attention_failures`` counts the failed checks so far."""

    is_last: bool
    attention_failures: int


@dataclass(frozen=True)
class FeedbackGiven:
    """The feedback page was sent, answered or not."""

    attention_failures: int


@dataclass(frozen=True)
class NotSeenForLong:
    """The participant left and did not come back in time."""

    attention_failures: int


@dataclass(frozen=True)
class CameInLaterSession:
    """The same person opened the study again, in another session of the panel."""

    attention_failures: int


@dataclass(frozen=True)
class Returned:
    """The participant gave the submission back on the panel."""


Happening = (
    Consented
    | Declined
    | PlatesAnswered
    | InstructionsRead
    | PairsAnswered
    | TrialAnswered
    | FeedbackGiven
    | NotSeenForLong
    | CameInLaterSession
    | Returned
)


@dataclass(frozen=True)
class Position:
    """Where a participant is next; ``outcome`` is set if and only if the step is END."""

    step: Step
    outcome: Outcome | None = None


class IllegalTransition(ValueError):
    """Something happened that cannot happen at this step: a fault of the caller, not of the participant."""


def ended(outcome: Outcome) -> Position:
    """The end, with its outcome."""
    return Position(Step.END, outcome)


def next_step(step: Step, happening: Happening, rules: Rules) -> Position:
    """Where the participant goes from ``step`` after ``happening``. Raises IllegalTransition where nothing leads on."""
    match step, happening:
        case Step.END, _:
            pass  # nothing leads on from the end
        case _, Returned():
            return ended(Outcome.RETURNED)
        case Step.FEEDBACK, FeedbackGiven(failures) | NotSeenForLong(failures) | CameInLaterSession(failures):
            # Feedback is optional: who leaves here has given every answer that counts.
            if failures > rules.attention_failures_allowed:
                return ended(Outcome.ATTENTION_FAILED)
            return ended(Outcome.COMPLETED)
        case _, NotSeenForLong():
            return ended(Outcome.TIMED_OUT)
        case _, CameInLaterSession():
            return ended(Outcome.REPLACED)
        case Step.CONSENT, Declined():
            return ended(Outcome.DECLINED)
        case Step.CONSENT, Consented():
            return Position(Step.COLOUR_CHECK if rules.plate_count else Step.INSTRUCTIONS)
        case Step.COLOUR_CHECK, PlatesAnswered(correct=correct):
            if correct >= rules.plates_required:
                return Position(Step.INSTRUCTIONS)
            return ended(Outcome.COLOUR_CHECK_FAILED)
        case Step.INSTRUCTIONS, InstructionsRead():
            return Position(Step.COMPREHENSION if rules.pair_count else Step.MAIN)
        case Step.COMPREHENSION, PairsAnswered(correct=correct, attempt=attempt):
            if correct >= rules.pairs_required:
                return Position(Step.MAIN)
            if attempt < rules.comprehension_tries:
                return Position(Step.INSTRUCTIONS)
            return ended(Outcome.COMPREHENSION_FAILED)
        case Step.MAIN, TrialAnswered(is_last=is_last, attention_failures=failures):
            if rules.end_at_once and failures > rules.attention_failures_allowed:
                return ended(Outcome.ATTENTION_FAILED)
            return Position(Step.FEEDBACK if is_last else Step.MAIN)
    raise IllegalTransition(f"{type(happening).__name__} cannot happen at the step {step}")
