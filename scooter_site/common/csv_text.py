"""Values as cells of a CSV file. Pure.

A spreadsheet takes a cell for a formula that begins as one, wherever it came from: such text gets an apostrophe in
front (https://owasp.org/www-community/attacks/CSV_Injection). Numbers stay bare, negative ones too: -37 is no formula.
"""

import json
from typing import Any

FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
BETWEEN_VALUES = ";"


def neutralised(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA_BEGINNINGS) else text


def cell(value: Any) -> str:
    """One value: null is empty, booleans are ``true`` and ``false``, objects are JSON."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case dict():
            return json.dumps(value, ensure_ascii=False) if value else ""
        case list() | tuple():
            return neutralised(BETWEEN_VALUES.join(_bare(item) for item in value))
        case _:
            return neutralised(str(value))


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else cell(value)
