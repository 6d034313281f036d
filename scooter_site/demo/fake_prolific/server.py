"""The stand-in over HTTP: addresses, log-in, pages of lists, faults; and addresses of its own below /fake/."""

import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from scooter_site.demo.fake_prolific import pages, studies, submissions
from scooter_site.demo.fake_prolific.faults import Fault, Faults, Rule
from scooter_site.demo.fake_prolific.filters import FILTERS, eligible
from scooter_site.demo.fake_prolific.hooks import EVENT_TYPES, Hooks
from scooter_site.demo.fake_prolific.world import (
    PROJECT_ID,
    TOKEN,
    WORKSPACE_ID,
    ApiError,
    Row,
    Settings,
    World,
    not_found,
    with_fees,
)

Send = Callable[[str, dict[str, str], bytes], int]


class FakeProlific:
    """The stand-in and its server. A context manager; ``port`` 0 takes a free one.

    ``send``: delivers webhooks in place of the network, for tests that have no server of ours (see ``Hooks``).
    """

    def __init__(self, *, port: int = 0, seed: int = 1, send: Send | None = None) -> None:
        self.settings = Settings()
        self.faults = Faults(seed=seed)
        self.world = World(settings=self.settings)
        self.hooks = Hooks(self.settings, self.faults, send)
        self.world.announce = self.hooks.announce
        self.requests: list[str] = []  # "METHOD /path" of every request to the API, in order
        self.http = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (Handler,), {"fake": self}))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self) -> "FakeProlific":
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.hooks.close()

    # What tests and simulated participants do; the pages of the demonstration do the same over HTTP.

    def fail(self, fault: Fault, match: str = "", *, times: int | None = None, probability: float = 1.0) -> None:
        self.faults.rules.append(Rule(fault, match, times, probability))

    def arrive(self, study_id: str, participant_id: str = "") -> Row:
        """A participant takes a place: the submission, and ``address``, where Prolific would send the browser."""
        with self.world.lock:
            one = submissions.arrive(self.world, study_id, participant_id)
            study = studies.get(self.world, study_id)
            return {**one, "address": studies.filled_address(study, one["participant"], one["id"])}

    def submit(self, submission_id: str, code: str | None) -> Row:
        with self.world.lock:
            return dict(submissions.submit(self.world, submission_id, code))

    def give_back(self, submission_id: str) -> Row:
        with self.world.lock:
            return dict(submissions.give_back(self.world, submission_id))

    def time_out(self, submission_id: str) -> Row:
        with self.world.lock:
            return dict(submissions.time_out(self.world, submission_id))


Answer = tuple[int, Any, dict[str, str]]
ID = r"([0-9a-zA-Z_-]+)"


class Handler(BaseHTTPRequestHandler):
    """One request; ``fake`` is set by the server's own subclass."""

    fake: FakeProlific
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PATCH(self) -> None:
        self._handle("PATCH")

    def do_DELETE(self) -> None:
        self._handle("DELETE")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold ids."""

    def _handle(self, method: str) -> None:
        address = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = parse_qs(address.query, keep_blank_values=True)
        if not address.path.startswith("/api/"):
            self._own(method, address.path, query, raw)
            return
        request = f"{method} {address.path}"
        self.fake.requests.append(request)
        fault = self.fake.faults.next(request)
        if fault in {Fault.LOST_BEFORE_ACTING, Fault.SERVER_ERROR, Fault.TOO_MANY_REQUESTS}:
            self._fail(fault)
            return
        answer = self._answer(method, address.path, query, raw)
        if fault is not None:
            self._fail(fault)
            return
        self._send(*answer)

    def _fail(self, fault: Fault) -> None:
        shape = self.fake.faults.error_shape
        if fault == Fault.TOO_MANY_REQUESTS:
            self._send(429, ApiError(429, "Too many requests", "Please slow down.").body(shape), {})
        elif fault in {Fault.SERVER_ERROR, Fault.SERVER_ERROR_AFTER_ACTING}:
            self._send(500, ApiError(500, "Internal error", "Something went wrong.").body(shape), {})
        else:
            if fault == Fault.HANGS_AFTER_ACTING:
                time.sleep(self.fake.faults.hang_seconds)
            self.close_connection = True

    def _answer(self, method: str, path: str, query: dict[str, list[str]], raw: bytes) -> Answer:
        try:
            self._authenticate()
            body = json.loads(raw) if raw else {}
            with self.fake.world.lock:
                return self._route(method, path, query, body)
        except ApiError as error:
            return error.status, error.body(self.fake.faults.error_shape), {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return 400, ApiError(400, "Bad request", f"Cannot read the request: {error!r}").body(), {}

    def _authenticate(self) -> None:
        if self.headers.get("Authorization") != f"Token {TOKEN}":
            raise ApiError(401, "Unauthorised", "Invalid token.", 140101)

    def _route(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Answer:
        for route_method, pattern, respond in ROUTES:
            if route_method == method and (match := re.fullmatch(pattern, path)):
                answer: Answer = respond(self.fake, query, body, *match.groups())
                return answer
        raise not_found(f"{method} {path}")

    def _own(self, method: str, path: str, query: dict[str, list[str]], raw: bytes) -> None:
        """Control addresses, and the pages where people take the part of a participant."""
        try:
            status, content, headers = pages.respond(
                self.fake, method, path, query, raw, str(self.headers.get("Cookie") or "")
            )
        except ApiError as error:
            status, content, headers = error.status, error.body(), {}
        self._send(status, content, headers)

    def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
        is_page = isinstance(content, str)
        data = content.encode() if is_page else b"" if content is None else json.dumps(content).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8" if is_page else "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # who asked has gone


# --- Routes ---------------------------------------------------------------------------------------------------


def _ok(body: Any, status: int = 200, **headers: str) -> Answer:
    return status, body, {name.replace("_", "-"): value for name, value in headers.items()}


def _by_page(path: str, rows: list[Row], query: dict[str, list[str]]) -> Answer:
    """Pages by number, with addresses of the neighbours."""
    page, size = _whole(query, "page", 1), _whole(query, "page_size", 20)
    last = max(1, -(-len(rows) // size))

    def link(number: int) -> Row:
        if not 1 <= number <= last:
            return {"href": None}
        others = {name: values[0] for name, values in query.items()}
        return {"href": f"https://api.prolific.com{path}?{urlencode({**others, 'page': number, 'page_size': size})}"}

    links = {"self": link(page), "next": link(page + 1), "previous": link(page - 1), "last": link(last)}
    return _ok({"results": rows[(page - 1) * size : page * size], "_links": links, "meta": {"count": len(rows)}})


def _by_offset(rows: list[Row], query: dict[str, list[str]], default: int = 25) -> Answer:
    """Pages by rows, with nothing but the count."""
    limit, offset = _whole(query, "limit", default), _whole(query, "offset", 0)
    return _ok({"results": rows[offset : offset + limit], "meta": {"count": len(rows)}})


def _whole(query: dict[str, list[str]], name: str, default: int) -> int:
    value = query.get(name, [str(default)])[0]
    if not value.isdigit():
        raise ApiError(400, "Validation error", {name: ["A valid integer is required."]})
    return int(value)


def _submissions_of(fake: FakeProlific, query: dict[str, list[str]]) -> Answer:
    if not query.get("study"):
        raise ApiError(400, "Validation error", {"study": ["This parameter is required."]})
    study_id = studies.get(fake.world, query["study"][0])["id"]
    rows = [submissions.listed(one) for one in studies.of_study(fake.world, study_id)]
    if wanted := query.get("status"):
        rows = [row for row in rows if row["status"].replace(" ", "_") == wanted[0]]
    return _by_page("/api/v1/submissions/", rows, query)


def _delete_study(fake: FakeProlific, study_id: str) -> Answer:
    if studies.get(fake.world, study_id)["status"] != "UNPUBLISHED":
        raise ApiError(400, "Invalid", "Only drafts can be deleted.")
    del fake.world.studies[study_id]
    return _ok(None, 204)


def _subscribe(fake: FakeProlific, body: Row) -> Answer:
    subscription, secret = fake.hooks.subscribe(body)
    return _ok(subscription, 201, X_Hook_Secret=secret)


def _pay(fake: FakeProlific, batch_id: str) -> Answer:
    submissions.pay_bonuses(fake.world, batch_id)
    return _ok({"message": "The request to pay has been made."}, 202)


def _cost(body: Row) -> Answer:
    return _ok({"total_cost": with_fees(int(body["reward"]) * int(body["total_available_places"]))[2]})


def _filters_found(query: dict[str, list[str]]) -> Answer:
    words = query.get("q", [""])[0].lower()
    return _by_offset([row for row in FILTERS if words in f"{row['title']} {row['question']}".lower()], query)


def _all_studies(fake: FakeProlific, path: str, query: dict[str, list[str]]) -> Answer:
    return _by_page(path, [studies.shown(fake.world, study) for study in fake.world.studies.values()], query)


ACCOUNT = {"id": "7c" * 12, "email": "researcher@example.org", "currency_code": "GBP"}
WORKSPACES = [{"id": WORKSPACE_ID, "title": "Stand-in workspace", "projects": [{"id": PROJECT_ID, "title": "Scooter"}]}]
V1 = "/api/v1"

# Method, path, and what answers: a function of (fake, query, body, *ids).
ROUTES: list[tuple[str, str, Callable[..., Answer]]] = [
    ("GET", f"{V1}/users/me/", lambda f, q, b: _ok(ACCOUNT)),
    ("GET", f"{V1}/workspaces/", lambda f, q, b: _by_offset(WORKSPACES, q)),
    ("GET", f"{V1}/filters/", lambda f, q, b: _by_offset(FILTERS, q)),
    ("GET", f"{V1}/filters/search/", lambda f, q, b: _filters_found(q)),
    ("POST", f"{V1}/eligibility-count/", lambda f, q, b: _ok({"count": eligible(b["filters"])})),
    ("POST", f"{V1}/study-cost-calculator/", lambda f, q, b: _cost(b)),
    ("POST", f"{V1}/studies/", lambda f, q, b: _ok(studies.create(f.world, b), 201)),
    ("GET", f"{V1}/studies/", lambda f, q, b: _all_studies(f, f"{V1}/studies/", q)),
    ("GET", f"{V1}/projects/{ID}/studies/", lambda f, q, b, i: _all_studies(f, f"{V1}/projects/{i}/studies/", q)),
    ("GET", f"{V1}/studies/{ID}/", lambda f, q, b, i: _ok(studies.shown(f.world, studies.get(f.world, i)))),
    ("PATCH", f"{V1}/studies/{ID}/", lambda f, q, b, i: _ok(studies.change(f.world, i, b))),
    ("DELETE", f"{V1}/studies/{ID}/", lambda f, q, b, i: _delete_study(f, i)),
    ("POST", f"{V1}/studies/{ID}/transition/", lambda f, q, b, i: _ok(studies.transition(f.world, i, b))),
    ("GET", f"{V1}/studies/{ID}/submissions/counts/", lambda f, q, b, i: _ok(submissions.counts(f.world, i))),
    (
        "GET",
        f"{V1}/studies/{ID}/submissions/",
        lambda f, q, b, i: _by_offset([submissions.listed(one) for one in studies.of_study(f.world, i)], q),
    ),
    ("GET", f"{V1}/submissions/", lambda f, q, b: _submissions_of(f, q)),
    ("POST", f"{V1}/submissions/bulk-approve/", lambda f, q, b: _ok(submissions.bulk_approve(f.world, b), 202)),
    ("POST", f"{V1}/submissions/bonus-payments/", lambda f, q, b: _ok(submissions.set_up_bonuses(f.world, b), 201)),
    ("POST", f"{V1}/bulk-bonus-payments/{ID}/pay/", lambda f, q, b, i: _pay(f, i)),
    ("GET", f"{V1}/submissions/{ID}/", lambda f, q, b, i: _ok(submissions.detail(f.world, i))),
    ("POST", f"{V1}/submissions/{ID}/transition/", lambda f, q, b, i: _ok(submissions.transition(f.world, i, b))),
    (
        "POST",
        f"{V1}/submissions/{ID}/request-return/",
        lambda f, q, b, i: _ok(submissions.request_return(f.world, i, b)),
    ),
    ("GET", f"{V1}/hooks/event-types/", lambda f, q, b: _ok({"results": [{"event_type": one} for one in EVENT_TYPES]})),
    ("POST", f"{V1}/hooks/secrets/", lambda f, q, b: _ok(f.hooks.new_secret(b["workspace_id"]), 201)),
    ("POST", f"{V1}/hooks/subscriptions/", lambda f, q, b: _subscribe(f, b)),
    ("GET", f"{V1}/hooks/subscriptions/", lambda f, q, b: _by_offset(f.hooks.listed(), q)),
    ("POST", f"{V1}/hooks/subscriptions/{ID}/", lambda f, q, b, i: _ok(f.hooks.confirm(i, b))),
    ("PATCH", f"{V1}/hooks/subscriptions/{ID}/", lambda f, q, b, i: _ok(f.hooks.change(i, b))),
    ("GET", f"{V1}/hooks/subscriptions/{ID}/events/", lambda f, q, b, i: _by_offset(f.hooks.events_of(i), q, 100)),
]
