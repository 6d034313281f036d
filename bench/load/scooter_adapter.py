"""A participant's way through Scooter for the load generator: what its pages say, and what is answered to them.

The generator (its README says what an adapter is) loads this file by its path. LOAD_DATABASE is the site's PostgreSQL:
what is right on a plate, in a pair or in a check no page tells, so it is looked up there by the page's token; and there
is what was stored. Standard library and psycopg only, as the generator shares the processor with what it measures.
"""

import functools
import json
import os
import re
import secrets
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import psycopg

SLUG = os.environ.get("LOAD_STUDY", "load")
STEP = re.compile(r'data-step="(\w+)"')
COMPLETED = re.compile(r'data-outcome="completed"')
DATA = re.compile(r'<script id="trial-data" type="application/json">(.*?)</script>', re.DOTALL)
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
CHOICE = re.compile(r'type="radio" name="(item-[^"]+)"')
NO_DIGIT = "none"
WINDOW = {"viewport_width": "1440", "viewport_height": "900", "device_pixel_ratio": "1"}
# Answers of other pages than those every study has: they cost, but are not counted as submissions.
UNCOUNTED = ("instructions", "feedback", "continue")

PLATE = """
    SELECT t.position, p.digit FROM studies_platetrial t JOIN studies_colourplate p ON p.id = t.plate_id
    WHERE t.token = %s"""
PAIR = "SELECT position, modified_side FROM studies_pairtrial WHERE token = %s"
CHECKS = """
    SELECT t.position, coalesce(t.instructed_value, s.scale_maximum) FROM studies_trial t
    JOIN studies_participantidentity i ON i.participation_id = t.participation_id
    JOIN studies_study s ON s.id = i.study_id
    WHERE t.kind <> 'image' AND s.slug = %s AND i.participant_id = %s"""
STORED = """
    SELECT i.participant_id, a.item, a.value FROM studies_participantidentity i
    JOIN studies_study s ON s.id = i.study_id
    JOIN (
        SELECT id AS participation_id, 'consent:1' AS item, 'accept' AS value FROM studies_participation
        WHERE consented_at IS NOT NULL
        UNION ALL SELECT participation_id, 'plates:' || position, answer FROM studies_platetrial
        UNION ALL SELECT participation_id, 'pairs:' || position, answer FROM studies_pairtrial
        UNION ALL SELECT t.participation_id, 'ratings:' || t.position, r.value::text
        FROM studies_rating r JOIN studies_trial t ON t.id = r.trial_id
        UNION ALL SELECT participation_id, 'instructions:1', 'read' FROM studies_participationevent
        WHERE name = 'instructions_read'
        UNION ALL SELECT participation_id, 'feedback:1', answer FROM studies_feedbackanswer WHERE item = 'certainty'
        UNION ALL SELECT id, 'continue:1', 'seen' FROM studies_participation WHERE step IN ('feedback', 'end')
    ) a ON a.participation_id = i.participation_id
    WHERE s.slug = %s AND i.participant_id LIKE %s"""

_run = secrets.token_hex(6)


@functools.cache
def _database() -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ["LOAD_DATABASE"], autocommit=True)


def _rows(sql: str, *values: str) -> list[Any]:
    return _database().execute(sql, values).fetchall()


def prepare(base: str, n: int) -> list[str]:
    """The links of n new people."""
    generator: Any = sys.modules["__main__"]
    generator.Page = _with_images_of_items(generator.Page)
    return [f"{base}/s/{SLUG}/?id={_run}-{number}" for number in range(n)]


def _with_images_of_items(page_class: Any) -> Any:
    """The generator's page, which also knows what the main study's script loads, and that "data:" is not loaded."""

    class Page(page_class):
        def __init__(self, response: Any) -> None:
            super().__init__(response)
            self.assets: list[str] = [address for address in self.assets if not address.startswith("data:")]
            if data := _items(self):
                items = [item for item in (data["trial"], *data["upcoming"]) if item]
                self.images += [item["image"] for item in items if item["image"]]

    return Page


def _items(page: Any) -> dict[str, Any] | None:
    """The JSON of an answer to a rating or in the main study's page."""
    if page.status != 200:
        return None
    if page.path.endswith("/rate/"):
        return json.loads(page.html)
    found = DATA.search(page.html)
    return json.loads(found.group(1)) if found else None


def participant_key(page: Any, state: Mapping[str, Any]) -> str:
    return parse_qs(urlsplit(state["start"]).query)["id"][0]


def export(base: str) -> list[Any]:
    """Everything that is stored of this run's people."""
    return _rows(STORED, SLUG, f"{_run}-%")


def is_end(page: Any) -> bool:
    """Only the end with the code for a complete run: any other is no page of this way."""
    return _step(page) == "end" and bool(COMPLETED.search(page.html))


def fill(page: Any, rng: Any, state: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a page, or to the item that an answer brought."""
    data = _items(page)
    step = _step(page)
    if data and step == "main":
        state["csrf"] = CSRF.search(page.html).group(1)  # type: ignore[union-attr]
        state["rate_url"], state["run_url"] = data["rate_url"], data["run_url"]
        if "checks" not in state:
            state["checks"] = dict(_rows(CHECKS, SLUG, participant_key(page, state)))
    if data:
        return _fill_item(data, rng, state)
    hidden = page.form()[1] if page.form() else {}
    if step == "consent":
        return {"key": "consent:1", "value": "accept", "fields": {"decision": "accept", **WINDOW}}
    if step == "colour_check":
        [(position, digit)] = _rows(PLATE, hidden["token"])
        answer = NO_DIGIT if digit is None else str(digit)
        return {"key": f"plates:{position}", "value": answer, "fields": {"answer": answer}}
    if step == "comprehension":
        [(position, side)] = _rows(PAIR, hidden["token"])
        return {"key": f"pairs:{position}", "value": side, "fields": {"answer": side}}
    if step == "instructions":
        return {"key": "instructions:1", "value": "read", "fields": {}}
    if step == "feedback":
        answer = str(rng.randint(1, 5))
        return {"key": "feedback:1", "value": answer, "fields": dict.fromkeys(CHOICE.findall(page.html), answer)}
    return None


def _fill_item(data: Mapping[str, Any], rng: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    trial = data["trial"]
    if trial is None:  # the ratings are over: the browser opens the page of the next step
        return {"key": "continue:1", "value": "seen", "get": state["run_url"]}
    value = state["checks"].get(trial["position"])
    if value is None:
        value = rng.randint(-100, 100)
    response_ms = rng.randint(800, 8000)
    rating = {
        "token": trial["token"], "value": value, "start_position": None, "response_ms": response_ms,
        "first_interaction_ms": response_ms // 2, "last_interaction_ms": response_ms - 100, "visible_ms": response_ms,
        "focus_losses": 0, "shown_width": 224, "shown_height": 224, "client_ms": response_ms,
    }  # fmt: skip
    return {
        "key": f"ratings:{trial['position']}",
        "value": str(value),
        "json": rating,
        "rate_url": state["rate_url"],
        "csrf": state["csrf"],
    }


def build_submit(page: Any, step: Mapping[str, Any]) -> tuple[str, str, bytes, tuple[tuple[str, str], ...]]:
    """As the browser sends it: a form, or JSON."""
    if "get" in step:
        return "GET", urljoin(page.url, step["get"]), b"", ()
    headers: tuple[tuple[str, str], ...] = (
        ("Origin", "{0.scheme}://{0.netloc}".format(urlsplit(page.url))),
        ("Referer", page.url),
    )
    if "json" in step:
        headers += (("Content-Type", "application/json"), ("X-CSRFToken", step["csrf"]))
        return "POST", urljoin(page.url, step["rate_url"]), json.dumps(step["json"]).encode(), headers
    action, hidden = page.form()
    headers += (("Content-Type", "application/x-www-form-urlencoded"),)
    return "POST", action, urlencode({**hidden, **step["fields"]}).encode(), headers


def is_answered(page: Any, answer: Any) -> bool:
    """A form is acknowledged by the redirect, a rating by the next item."""
    return answer.status in (200, 303)


def is_accepted(page: Any, answer: Any, following: Any) -> bool:
    return is_answered(page, answer)


def _step(page: Any) -> str:
    found = STEP.search(page.html)
    return found.group(1) if found else ""
