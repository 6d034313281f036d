"""Faults on demand: what goes wrong, on which requests, and how often."""

import random
import re
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """What the stand-in does instead of answering well."""

    TOO_MANY_REQUESTS = "429"
    SERVER_ERROR = "500"  # nothing was done
    SERVER_ERROR_AFTER_ACTING = "500_after_acting"
    LOST_BEFORE_ACTING = "lost_before_acting"  # the connection ends without an answer
    LOST_AFTER_ACTING = "lost_after_acting"
    HANGS_AFTER_ACTING = "hangs_after_acting"  # the answer comes later than anybody waits


@dataclass
class Rule:
    """``fault`` on requests whose "METHOD /path" matches: the next ``times`` ones, or each with ``probability``."""

    fault: Fault
    match: str = ""
    times: int | None = None
    probability: float = 1.0

    def applies(self, request: str, chance: random.Random) -> bool:
        if self.times == 0 or not re.search(self.match, request):
            return False
        if self.probability < 1.0 and chance.random() >= self.probability:
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass
class WebhookFaults:
    """Probabilities per event; ``delay_seconds`` before each delivery, at most."""

    duplicate: float = 0.0
    reorder: float = 0.0
    drop: float = 0.0
    delay_seconds: float = 0.0


@dataclass
class Faults:
    """All rules. The same seed draws the same."""

    seed: int = 1
    hang_seconds: float = 5.0
    rules: list[Rule] = field(default_factory=list)
    webhooks: WebhookFaults = field(default_factory=WebhookFaults)
    error_shape: str = "wrapped"
    chance: random.Random = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - no secret

    def next(self, request: str) -> Fault | None:
        """The fault of this request, "METHOD /path"; None if all goes well."""
        with self._lock:
            return next((rule.fault for rule in self.rules if rule.applies(request, self.chance)), None)

    def draw(self) -> float:
        with self._lock:
            return self.chance.random()

    def replace(self, body: dict[str, Any]) -> None:
        """From the control address: ``rules``, ``webhooks``, ``error_shape``, each left as it is where missing."""
        with self._lock:
            if "rules" in body:
                self.rules = [Rule(**{**rule, "fault": Fault(rule["fault"])}) for rule in body["rules"]]
            if "webhooks" in body:
                self.webhooks = WebhookFaults(**body["webhooks"])
            self.error_shape = body.get("error_shape", self.error_shape)
