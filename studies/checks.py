"""Scoring of colour plates, comprehension pairs and attention checks, pure."""

from collections.abc import Iterable

from studies.scale import Scale

NO_DIGIT = "none"
PLATE_ANSWERS = (*"0123456789", NO_DIGIT)
PAIR_ANSWERS = ("left", "right")


def plate_is_right(digit: int | None, answer: str) -> bool:
    """``answer`` is "0" to "9" or "none"; ``digit`` is None on the plate that has none."""
    return answer == right_plate_answer(digit)


def right_plate_answer(digit: int | None) -> str:
    """What is answered to a plate with this digit, or with none, by those who see it."""
    return NO_DIGIT if digit is None else str(digit)


def count_right_plates(plates: Iterable[tuple[int | None, str]]) -> int:
    """How many of the (digit, answer) are right."""
    return sum(plate_is_right(digit, answer) for digit, answer in plates)


def pair_is_right(modified_side: str, answer: str) -> bool:
    """Whether the modified side ("left" or "right") was picked."""
    return modified_side == answer


def count_right_pairs(pairs: Iterable[tuple[str, str]]) -> int:
    """How many of the (modified side, answered side) are right."""
    return sum(pair_is_right(modified_side, answer) for modified_side, answer in pairs)


def corrupted_check_passed(value: int, scale: Scale) -> bool:
    """An obviously corrupted image: any answer on the "modified" side passes."""
    return scale.is_on_modified_side(value)


def instructed_check_passed(value: int, instructed_value: int, tolerance: int) -> bool:
    """The item said what to answer: ``tolerance`` points to either side still pass."""
    return abs(value - instructed_value) <= tolerance
