"""Webhooks of the stand-in: subscriptions, signatures, and deliveries that repeat, overtake each other or get lost."""

import base64
import hashlib
import hmac
import json
import queue
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

from scooter_site.demo.fake_prolific.faults import Faults
from scooter_site.demo.fake_prolific.world import ApiError, Row, Settings, new_id, not_found

EVENT_TYPES = [
    "submission.status.change",
    "study.status.change",
    "study.progress.change",
    "study.has_high_return_rate",
]
TRIES = 12
LONGEST_WAIT_SECONDS = 60.0
# Prolific wants https; a stand-in on one machine has none.
LOCAL = {"localhost", "127.0.0.1"}


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The value of X-Prolific-Request-Signature."""
    digest = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class Hooks:
    """``send`` delivers one request and returns its HTTP status; without one, it is sent over the network."""

    def __init__(
        self, settings: Settings, faults: Faults, send: Callable[[str, dict[str, str], bytes], int] | None = None
    ) -> None:
        self.secret = ""
        self.subscriptions: dict[str, Row] = {}
        self.events: list[Row] = []
        self._settings = settings
        self._faults = faults
        self._send = send or _over_network
        self._queue: queue.Queue[tuple[Row, Row] | None] = queue.Queue()
        self._held_back: tuple[Row, Row] | None = None
        threading.Thread(target=self._deliver_all, daemon=True).start()

    # --- Set-up -----------------------------------------------------------------------------------------------

    def new_secret(self, workspace_id: str) -> Row:
        self.secret = secrets.token_urlsafe(32)
        return {"id": new_id(), "value": self.secret, "workspace_id": workspace_id}

    def subscribe(self, body: Row) -> tuple[Row, str]:
        if body.get("event_type") not in EVENT_TYPES:
            raise ApiError(400, "Validation error", {"event_type": ["Unknown event type."]})
        address = urlsplit(str(body.get("target_url")))
        if address.scheme != "https" and address.hostname not in LOCAL:
            raise ApiError(400, "Validation error", {"target_url": ["Must be a public https address."]})
        if not self.secret:
            raise ApiError(400, "No secret", "Create a secret for the workspace first.")
        subscription = {
            "id": new_id(),
            "workspace_id": body.get("workspace_id"),
            "event_type": body["event_type"],
            "target_url": body["target_url"],
            "is_enabled": False,
        }
        hook_secret = secrets.token_urlsafe(16)
        self.subscriptions[subscription["id"]] = {**subscription, "hook_secret": hook_secret}
        return subscription, hook_secret

    def confirm(self, subscription_id: str, body: Row) -> Row:
        subscription = self._get(subscription_id)
        if body.get("secret") != subscription["hook_secret"]:
            raise ApiError(400, "Validation error", {"secret": ["Not the X-Hook-Secret of this subscription."]})
        subscription["is_enabled"] = True
        return _without_secret(subscription)

    def change(self, subscription_id: str, body: Row) -> Row:
        subscription = self._get(subscription_id)
        subscription.update({name: body[name] for name in ("event_type", "target_url", "is_enabled") if name in body})
        return _without_secret(subscription)

    def listed(self) -> list[Row]:
        return [_without_secret(one) for one in self.subscriptions.values()]

    def events_of(self, subscription_id: str) -> list[Row]:
        self._get(subscription_id)
        return [event for event in self.events if event["subscription_id"] == subscription_id]

    def _get(self, subscription_id: str) -> Row:
        if subscription_id not in self.subscriptions:
            raise not_found("The subscription")
        return self.subscriptions[subscription_id]

    # --- Deliveries -------------------------------------------------------------------------------------------

    def announce(self, payload: Row) -> None:
        """Queue an event for everybody who subscribed to its type."""
        for subscription in self.subscriptions.values():
            if not subscription["is_enabled"] or subscription["event_type"] != payload["event_type"]:
                continue
            event = {
                "id": new_id(),
                "subscription_id": subscription["id"],
                "status": "PENDING",
                "payload": payload,
                "sent_at": f"{time.time():.6f}",
            }
            self.events.append(event)
            self._enqueue(subscription, event)

    def _enqueue(self, subscription: Row, event: Row) -> None:
        faults = self._faults.webhooks
        if self._faults.draw() < faults.drop:
            return
        if self._held_back is None and self._faults.draw() < faults.reorder:
            self._held_back = (subscription, event)  # the next one overtakes it
            return
        copies = 2 if self._faults.draw() < faults.duplicate else 1
        for _ in range(copies):
            self._queue.put((subscription, event))
        if self._held_back is not None:
            self._queue.put(self._held_back)
            self._held_back = None

    def flush(self, seconds: float = 30.0) -> None:
        """Wait until every event that was announced has been delivered or given up."""
        if self._held_back is not None:
            self._queue.put(self._held_back)
            self._held_back = None
        until = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.005)
        if self._queue.unfinished_tasks:
            raise TimeoutError("Webhooks are still being delivered.")

    def close(self) -> None:
        self._queue.put(None)

    def _deliver_all(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._deliver(*item)
            finally:
                self._queue.task_done()
        self._queue.task_done()

    def _deliver(self, subscription: Row, event: Row) -> None:
        if delay := self._faults.webhooks.delay_seconds:
            time.sleep(delay * self._faults.draw())
        body = json.dumps(event["payload"], ensure_ascii=False).encode()
        for number in range(TRIES):
            timestamp = str(int(time.time()))
            headers = {
                "Content-Type": "application/json",
                "X-Event-ID": event["id"],
                "X-Timestamp": event["sent_at"],
                "X-Prolific-Request-Timestamp": timestamp,
                "X-Prolific-Request-Signature": sign(self.secret, timestamp, body),
            }
            if 200 <= self._send(subscription["target_url"], headers, body) < 300:
                event["status"] = "SUCCEEDED"
                return
            event["status"] = "FAILED"
            longest = min(LONGEST_WAIT_SECONDS, self._settings.webhook_retry_seconds * 2**number)
            time.sleep(longest * self._faults.draw())


def _without_secret(subscription: Row) -> Row:
    return {name: value for name, value in subscription.items() if name != "hook_secret"}


def _over_network(address: str, headers: dict[str, str], body: bytes) -> int:
    request = urllib.request.Request(address, data=body, headers=headers, method="POST")  # noqa: S310 - as subscribed
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
