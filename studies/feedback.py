"""The optional questions after the main study, as a text of the study names them. Pure: no Django.

One question a line; empty lines are ignored::

    certainty: How sure were you of your answers? | Not at all | A little | Completely
    comment: Anything you would like to tell us?

Before the colon stands the question's name, which exports use; after it the question. Choices follow, each after a
bar, in the order in which they are shown; a question without any is answered in words of one's own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
CHOICES = (2, 10)
MOST_ITEMS = 40
LONGEST_ANSWER = 2000

NOT_OFFERED = "Please choose from the answers shown."
TOO_LONG = f"An answer can have at most {LONGEST_ANSWER} characters: please shorten it."


@dataclass(frozen=True)
class FeedbackItem:
    """A question. With ``choices`` the answer is the number of one ("1" is the first), without, free text."""

    name: str
    question: str
    choices: tuple[str, ...] = ()

    def in_words(self, answer: str) -> str:
        """A stored answer as its giver saw it: the words of the choice, or the free text."""
        return self.choices[int(answer) - 1] if self.choices else answer


class FeedbackError(ValueError):
    """A text that names no questions, or an answer that fits none; the message is for people."""


def parse_items(body: str) -> list[FeedbackItem]:
    """The questions in their order. Raises FeedbackError, naming the line."""
    items: dict[str, FeedbackItem] = {}
    for number, line in enumerate(body.splitlines(), start=1):
        if not line.strip():
            continue
        item = _item(line, f"Line {number}")
        if item.name in items:
            raise FeedbackError(f"Line {number}: the name “{item.name}” is used twice; each question needs its own.")
        items[item.name] = item
    if not items:
        raise FeedbackError("There is no question. Write at least one line, such as “comment: Anything to tell us?”")
    if len(items) > MOST_ITEMS:
        raise FeedbackError(f"These are {len(items)} questions; at most {MOST_ITEMS} are possible.")
    return list(items.values())


def _item(line: str, where: str) -> FeedbackItem:
    name, colon, rest = (part.strip() for part in line.partition(":"))
    if not colon:
        raise FeedbackError(f"{where}: a name and a colon must stand before the question, such as “comment: …”")
    if not NAME.fullmatch(name):
        raise FeedbackError(
            f"{where}: “{name}” cannot be a name. Use lower-case letters, digits and underscores, a letter first, at "
            "most 40 of them."
        )
    question, *choices = (part.strip() for part in rest.split("|"))
    if not question:
        raise FeedbackError(f"{where}: the question is missing after “{name}:”.")
    if not all(choices):
        raise FeedbackError(f"{where}: there is a bar without a choice after it.")
    if choices and not CHOICES[0] <= len(choices) <= CHOICES[1]:
        raise FeedbackError(f"{where}: {CHOICES[0]} to {CHOICES[1]} choices are possible, or none; not {len(choices)}.")
    if len(set(choices)) < len(choices):
        raise FeedbackError(f"{where}: two choices are the same.")
    return FeedbackItem(name, question, tuple(choices))


def checked_answers(items: list[FeedbackItem], answers: Mapping[str, str]) -> dict[str, str]:
    """What was answered, by name, without the empty ones. Raises FeedbackError, naming what nobody asked."""
    asked = {item.name: item for item in items}
    given = {name: answer.strip() for name, answer in answers.items() if answer.strip()}
    for name, answer in given.items():
        if name not in asked:
            raise FeedbackError(f"{name}: This study did not ask for it.")
        choices = asked[name].choices
        if choices and answer not in {str(number) for number in range(1, len(choices) + 1)}:
            raise FeedbackError(f"{name}: {NOT_OFFERED}")
        if len(answer) > LONGEST_ANSWER:
            raise FeedbackError(f"{name}: {TOO_LONG}")
    return given
