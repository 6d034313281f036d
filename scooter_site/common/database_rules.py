"""How an app says what must hold between rows; ``triggers`` puts it into the database. No Django here."""

from dataclasses import dataclass

INSERT, UPDATE, DELETE = "INSERT", "UPDATE", "DELETE"


@dataclass(frozen=True)
class Rule:
    """A rule that spans rows; ``message`` says what is wrong and what to do."""

    name: str
    message: str


@dataclass(frozen=True)
class Check:
    """That ``rule`` is held when a row of ``table`` is written.

    ``broken_if`` and ``only_if`` are SQL that both databases read; NEW and OLD are the row. ``only_if`` is the cheap
    part, tested first. An update is looked at only if one of ``columns`` changes (empty: any update).
    """

    rule: Rule
    table: str
    operation: str
    broken_if: str
    columns: tuple[str, ...] = ()
    only_if: str = ""


@dataclass(frozen=True)
class Effect:
    """What else is written when a row of ``table`` is; NEW and OLD are the row.

    ``statements`` are SQL that both databases read. An update counts only if one of ``columns`` changes.
    """

    name: str
    table: str
    operation: str
    statements: tuple[str, ...]
    columns: tuple[str, ...] = ()
    only_if: str = ""
