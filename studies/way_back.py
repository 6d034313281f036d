"""Panels other than Prolific: the names of their links' parameters, and the address that their participants go back to.

Pure: no Django, no database.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

PLACEHOLDERS = ("code", "participant", "session")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
RESERVED_PARAMETERS = ("session", "test")  # personal links and test links


def parameter_problem(participant: str, session: str) -> str:
    """Why links cannot have these parameters; empty where they can."""
    for name in (participant, session):
        if name.casefold() in RESERVED_PARAMETERS:
            return f"“{name}” is a parameter of links of our own: choose another name."
    if participant.casefold() == session.casefold():
        return f"“{participant}” cannot be both the participant and the session."
    return ""


def return_url_problem(template: str) -> str:
    """Why nobody can be sent back to this address; empty where they can. An empty template sends nobody anywhere."""
    if not template:
        return ""
    names = PLACEHOLDER.findall(template)
    if unknown := [name for name in names if name not in PLACEHOLDERS]:
        return f"There is no placeholder {{{unknown[0]}}}: there are {{code}}, {{participant}} and {{session}}."
    if "{" in (rest := PLACEHOLDER.sub("", template)) or "}" in rest:
        return "A placeholder is not closed, or not opened."
    try:
        address = urlsplit(template)
        host = address.hostname or ""
    except ValueError:
        host = ""
    if not host or address.scheme != "https" or "{" in address.netloc or re.search(r"\s", template):
        return "It must be a complete address that begins with https:// and the name of the panel's site."
    if "code" not in names:
        return "Without {code} in it, the panel could not tell how the study ended for somebody."
    return ""


def return_url(template: str, values: Mapping[str, str]) -> str:
    """The address with its placeholders filled in; values cannot change the address that they are put into."""
    return PLACEHOLDER.sub(lambda match: quote(values[match[1]], safe=""), template)
