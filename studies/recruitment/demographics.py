"""Prolific's demographic export as a file, and summaries that single nobody out.

Columns come and go and stand in any order, so they are read by their headers. What identifies a person or describes the
submission and not the person is not kept.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SUBMISSION = "submission id"
# About the submission, not about the person; or what nobody may keep.
NOT_KEPT = frozenset(
    {
        SUBMISSION,
        "participant id",
        "status",
        "custom study tncs accepted at",
        "started at",
        "completed at",
        "reviewed at",
        "archived at",
        "time taken",
        "completion code",
        "total approvals",
        "ip",
        "ip address",
    }
)
# In place of a value that has expired or that the participant took back. The service's list of them is not public.
WITHDRAWN = frozenset({"", "DATA_EXPIRED", "DATA EXPIRED", "CONSENT_REVOKED", "CONSENT REVOKED", "NOT APPLICABLE"})
MOST_ROWS = 100_000
LONGEST_ANSWER = 200
AGE_BANDS = [(18, 24), (25, 34), (35, 44), (45, 54), (55, 64), (65, 120)]
# Fewer people than this are never told apart: somebody who knows a participant could find them among them.
SMALLEST_GROUP = 10
OTHERS = "Others, or not said"


class UnreadableExport(ValueError):
    """The file is not what Prolific gives; the message is for people."""


@dataclass(frozen=True)
class PersonRow:
    """A submission and what is said about its participant, by header."""

    submission_id: str
    answers: dict[str, str]


def read_export(content: bytes) -> list[PersonRow]:
    """All rows of an export. Raises UnreadableExport, with the line, for a file that cannot be taken as a whole."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableExport(
            "The file is not in UTF-8: take it from Prolific as it is, without a spreadsheet."
        ) from None
    if "\0" in text:
        raise UnreadableExport("The file holds null characters: it is no CSV file.")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        headers = _headers(next(reader, []))
        rows = [_row(headers, cells, reader.line_num) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise UnreadableExport(f"Line {reader.line_num} cannot be read as CSV: {error}.") from None
    if len(rows) > MOST_ROWS:
        raise UnreadableExport(f"The file has {len(rows)} rows; {MOST_ROWS} are the most that is taken at once.")
    repeated = [one for one, count in Counter(row.submission_id for row in rows).items() if count > 1]
    if repeated:
        raise UnreadableExport(f"{len(repeated)} submissions stand more than once in the column “Submission id”.")
    return rows


def _headers(cells: list[str]) -> list[str]:
    headers = [cell.strip() for cell in cells]
    lower = [header.lower() for header in headers]
    if SUBMISSION not in lower:
        raise UnreadableExport("There is no column “Submission id”: use the demographic export of Prolific.")
    if twice := [header for header, count in Counter(lower).items() if header and count > 1]:
        raise UnreadableExport(f"The column “{twice[0]}” stands in the file more than once.")
    return headers


def _row(headers: list[str], cells: list[str], line: int) -> PersonRow:
    if len(cells) != len(headers):
        raise UnreadableExport(f"Line {line} has {len(cells)} cells where the header has {len(headers)}.")
    by_header = {header: cell.strip() for header, cell in zip(headers, cells, strict=True)}
    submission_id = next(cell for header, cell in by_header.items() if header.lower() == SUBMISSION)
    if not submission_id:
        raise UnreadableExport(f"Line {line} has no submission id.")
    answers = {
        header: cell[:LONGEST_ANSWER]
        for header, cell in by_header.items()
        if header and header.lower() not in NOT_KEPT and cell.upper() not in WITHDRAWN
    }
    return PersonRow(submission_id, answers)


# --- Summaries ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """How many people gave which answer to one question. Every group has at least ``SMALLEST_GROUP`` people."""

    question: str
    groups: list[tuple[str, int]]


def summarise(people: Iterable[Mapping[str, str]], *, smallest: int = SMALLEST_GROUP) -> list[Summary]:
    """One summary for each question. None at all of fewer than ``smallest`` people."""
    everybody = list(people)
    if len(everybody) < smallest:
        return []
    questions = list(dict.fromkeys(question for answers in everybody for question in answers))
    found = [
        Summary(question, _groups([_grouped(question, answers.get(question, "")) for answers in everybody], smallest))
        for question in questions
    ]
    return [summary for summary in found if any(label != OTHERS for label, _ in summary.groups)]


def _groups(labels: list[str], smallest: int) -> list[tuple[str, int]]:
    """Small groups go into one of the rest; if the rest is small too, the next larger group joins it.

    So no number that is left out can be found by subtracting the others from their total.
    """
    counts = Counter(labels)
    rest = counts.pop(OTHERS, 0)
    large = sorted(counts.items(), key=lambda group: (-group[1], group[0]))
    while large and (large[-1][1] < smallest or 0 < rest < smallest):
        rest += large.pop()[1]
    return [*large, *([(OTHERS, rest)] if rest else [])]


def _grouped(question: str, answer: str) -> str:
    if not answer:
        return OTHERS
    if question.lower() != "age":
        return answer
    if not answer.isascii() or not answer.isdigit():
        return OTHERS
    for youngest, oldest in AGE_BANDS:
        if youngest <= int(answer[:6]) <= oldest:
            return f"{youngest} or older" if oldest == AGE_BANDS[-1][1] else f"{youngest}–{oldest}"
    return OTHERS
