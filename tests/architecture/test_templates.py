"""The content security policy allows no inline script or style: a template that has one would break in the browser."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
# The admin theme needs inline code of its own, and its pages have a policy of their own.
TEMPLATES = sorted(path for path in PROJECT.glob("templates/**/*.html") if "admin" not in path.parts)
STATIC = sorted(
    path
    for folder in ("scooter_site/static", "studies/static", "imagedb/static", "leaderboard/static")
    for path in (PROJECT / folder).glob("**/*")
    if path.suffix in {".css", ".js", ".svg"}
)
LOADING_ATTRIBUTES = {"src", "srcset", "data", "poster", "action", "formaction"}
TEMPLATE_CODE = re.compile(r"{[{%#].*?[}%#]}", re.DOTALL)
FOREIGN = re.compile(r"(https?:)?//", re.IGNORECASE)


class InlineCode(HTMLParser):
    """Collects what the policy would block."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "style":
            self.problems.append("<style>")
        if tag == "script" and "src" not in values and values.get("type") != "application/json":
            self.problems.append("<script> without src")
        for name, value in values.items():
            loads = name in LOADING_ATTRIBUTES or (tag == "link" and name == "href")
            if name == "style" or name.startswith("on"):
                self.problems.append(f"<{tag} {name}>")
            if loads and FOREIGN.match(value):
                self.problems.append(f"<{tag} {name}> from another host: {value}")
            if value.strip().lower().startswith("javascript:"):
                self.problems.append(f"<{tag} {name}> holds script")

    handle_startendtag = handle_starttag


def problems(template: str) -> list[str]:
    parser = InlineCode()
    parser.feed(TEMPLATE_CODE.sub("", template))
    parser.close()
    return parser.problems


@pytest.mark.parametrize(
    "template",
    [
        "<style>p {}</style>",
        "<script>alert(1)</script>",
        '<p style="color: red">',
        '<p {% if a %}style="color: red"{% endif %}>',
        '<a onclick="go()">',
        '<a href="javascript:go()">',
        '<img src="https://example.org/a.png">',
        '<link href="//example.org/a.css">',
        '<form action="https://example.org/">',
    ],
)
def test_finds_what_the_policy_would_block(template):
    assert len(problems(template)) == 1


@pytest.mark.parametrize(
    "template",
    [
        "<script src=\"{% static 'a.js' %}\"></script>",
        '<script type="application/json" id="data">{}</script>',
        '<a href="https://example.org/">a link loads nothing</a>',
        '<link rel="stylesheet" href="{% static \'a.css\' %}">',
    ],
)
def test_lets_pass_what_the_policy_allows(template):
    assert problems(template) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_template_keeps_to_the_policy(path):
    assert problems(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", STATIC, ids=lambda path: str(path.relative_to(PROJECT)))
def test_static_file_loads_nothing_from_elsewhere(path):
    text = path.read_text(encoding="utf-8").replace(
        "http://www.w3.org/2000/svg", ""
    )  # the name of a namespace, never loaded
    loads = re.findall(
        r"""(?:url\(|@import|fetch\(|\.src\s*=|href=|src=)\s*["'`]?\s*((?:https?:)?//[^\s"'`)]+)""", text
    )
    assert loads == []


def test_there_is_something_to_check():
    assert PROJECT / "templates" / "base.html" in TEMPLATES
    assert PROJECT / "scooter_site" / "static" / "site.css" in STATIC
