"""The stand-in's own addresses: where a person takes the part of a participant, and where faults are switched on.

``/``: published studies, each with a button to take part. ``/submissions/complete?cc=CODE``: where studies send people
at the end; the browser's cookie says whose submission it is. ``/fake/...``: JSON, for programs.
"""

import json
from collections.abc import Mapping
from html import escape
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

from scooter_site.demo.fake_prolific import studies
from scooter_site.demo.fake_prolific.world import Row, not_found

if TYPE_CHECKING:
    from scooter_site.demo.fake_prolific.server import FakeProlific

PAGE = """<!doctype html>
<html lang="en-GB">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · stand-in for Prolific</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
li {{ margin: 1rem 0; }} button, a.button {{ font: inherit; padding: .4rem .9rem; border: 1px solid #3038b0; background:
#3038b0; color: #fff; border-radius: 6px; cursor: pointer; text-decoration: none; }} .note {{ color: #595959; }}
</style></head>
<body><main><h1>{title}</h1>{content}
<p class="note">This is a stand-in for Prolific that runs on this machine. No money is paid.</p></main></body></html>"""

Response = tuple[int, Any, dict[str, str]]


def respond(
    fake: "FakeProlific",
    method: str,
    path: str,
    query: Mapping[str, list[str]],
    raw: bytes,
    cookies: str,
) -> Response:
    if method == "GET" and path == "/":
        return 200, _studies_page(fake), {}
    if method == "POST" and path.startswith("/take-part/"):
        return _take_part(fake, path.split("/")[2])
    if method == "GET" and path == "/submissions/complete":
        return _complete(fake, query.get("cc", [""])[0], cookies)
    if path.startswith("/fake/"):
        return _control(fake, method, path.removeprefix("/fake/"), json.loads(raw) if raw else {})
    raise not_found(f"{method} {path}")


def _studies_page(fake: "FakeProlific") -> str:
    with fake.world.lock:
        rows = [
            f"<li><strong>{escape(study['name'])}</strong><br>{study['description']}"
            f"{study['estimated_completion_time']} minutes, {study['reward'] / 100:.2f} in pay · "
            f"{escape(study['status'])}"
            + (
                f'<form method="post" action="/take-part/{study["id"]}"><button>Take part in this study</button></form>'
                if study["status"] == "ACTIVE" and studies.has_free_place(fake.world, study)
                else ""
            )
            + "</li>"
            for study in fake.world.studies.values()
            if study["status"] != "UNPUBLISHED"
        ]
    none = "<p>No study has been published here yet.</p>"
    return PAGE.format(title="Studies", content=f"<ul>{''.join(rows)}</ul>" if rows else none)


def _take_part(fake: "FakeProlific", study_id: str) -> Response:
    one = fake.arrive(study_id)
    cookie = f"submission={one['id']}; Path=/; HttpOnly; SameSite=Lax"
    return 303, None, {"Location": one["address"], "Set-Cookie": cookie}


def _complete(fake: "FakeProlific", code: str, cookies: str) -> Response:
    cookie = SimpleCookie(cookies).get("submission")
    if cookie is None:
        return 200, PAGE.format(title="Whose submission?", content="<p>Take part in a study here first.</p>"), {}
    one = fake.submit(cookie.value, code)
    text = f"<p>Your submission is now: <strong>{escape(one['status'])}</strong>.</p><p><a href='/'>Studies</a></p>"
    return 200, PAGE.format(title="Submission received", content=text), {}


def _control(fake: "FakeProlific", method: str, name: str, body: Row) -> Response:
    if method == "GET" and name == "payments":
        with fake.world.lock:
            return 200, list(fake.world.payments), {}
    actions = {
        "faults": lambda: fake.faults.replace(body),
        "arrive": lambda: fake.arrive(body["study_id"], body.get("participant_id", "")),
        "submit": lambda: fake.submit(body["submission_id"], body.get("code")),
        "return": lambda: fake.give_back(body["submission_id"]),
        "time-out": lambda: fake.time_out(body["submission_id"]),
    }
    if method != "POST" or name not in actions:
        raise not_found(f"{method} /fake/{name}")
    return 200, actions[name](), {}
