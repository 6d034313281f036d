"""Whether a text is BibTeX, as far as a typing mistake shows. Pure."""

import re

_BEGINNING = re.compile(r"@\s*([A-Za-z]+)\s*\{\s*([^\s,{}=]+)\s*,")
EXAMPLE = "@inproceedings{name2026, title = {...}, author = {...}, year = {2026}}"


def problem_of(text: str) -> str:
    """What is wrong with a text of one or more entries, and what to do; empty if nothing is."""
    rest = text.strip()
    while rest:
        beginning = _BEGINNING.match(rest)
        if beginning is None:
            return f"An entry begins with @, its type, a brace and its key, for example {EXAMPLE}."
        end = _end_of_braces(rest)
        if end is None:
            return f"A brace of the entry {beginning[2]} is not closed."
        rest = rest[end:].strip()
        if rest and not rest.startswith("@"):
            return f"After the entry {beginning[2]} comes something that is no entry: {rest[:20]!r}. A brace too many?"
    return ""


def _end_of_braces(text: str) -> int | None:
    """Position after the brace that closes the first one."""
    depth, escaped = 0, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return position + 1
    return None
