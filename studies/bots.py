"""Simulated participants that walk a study over HTTP, page by page, as a browser would.

A bot follows redirects, sends the forms with their hidden fields, loads the images, and rates over the JSON endpoint;
it calls no view and no service. To be *able* it must know the truth, which no page tells: it looks that up by the
opaque tokens in the study's database. So bots run beside the site's database, wherever the web server is.

How a bot answers (``Behaviour``), with certainties between -1 (unmodified) and +1 (modified):

- a modified image is rated around ``+0.8 * ability``, a clean one around ``-0.8 * ability``, each with a standard
  deviation of 0.35, all shifted by ``bias``; an ability of 0 cannot tell them apart;
- checks are answered rightly, except with probability ``carelessness``, when any answer is given;
- before every answer the bot leaves with probability ``drop_out``;
- ``outcome`` forces one end instead: the bot fails or passes the checks on purpose and does not leave. For the ends
  that come from outside (timed out, returned on the panel, replaced by a later session) it leaves after a rating, is
  ended as the site would do it, and comes back for its end page.
"""

import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import httpx
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from imagedb.models import ImageKind
from studies import links
from studies.checks import PAIR_ANSWERS, PLATE_ANSWERS, right_plate_answer
from studies.flow import Outcome, Step
from studies.models import PairTrial, ParticipantIdentity, PlateTrial, Study, Trial, TrialKind
from studies.services.participations import close_timed_out, replace_participation, return_participation

ABLE_CERTAINTY = 0.8
SPREAD = 0.35
ENDS_FROM_OUTSIDE: dict[Outcome | None, Callable[[int], object]] = {
    Outcome.TIMED_OUT: lambda participation_id: close_timed_out(participation_id, not_seen_since=timezone.now()),
    Outcome.RETURNED: return_participation,
    Outcome.REPLACED: replace_participation,
}
# More pages than the longest way has: beyond it, a bot is going round in circles.
MOST_PAGES = 500
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) Scooter simulated participant"
VIEWPORT_WIDTH, VIEWPORT_HEIGHT = 1440, 900


@dataclass(frozen=True)
class Behaviour:
    """How a bot answers; the module's description says what each number does."""

    ability: float = 0.8
    carelessness: float = 0.0
    drop_out: float = 0.0
    bias: float = 0.0
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Walk:
    """What became of one bot: an outcome, the step it left at, or the error it met."""

    outcome: Outcome | None = None
    left_at: Step | None = None
    error: str = ""
    ratings: int = 0

    @property
    def summary(self) -> str:
        """In a few words, for counting."""
        if self.outcome:
            return self.outcome.label
        return f"Left at {self.left_at.replace('_', ' ')}" if self.left_at else f"Error: {self.error}"


class BotError(Exception):
    """The site answered something a participant should not meet."""


class Mind:
    """The answers of one bot: behaviour, chance and the truth."""

    def __init__(self, study: Study, behaviour: Behaviour, rng: random.Random) -> None:
        self.scale = study.rating_scale
        self.behaviour = behaviour
        self.rng = rng

    def leaves(self) -> bool:
        return self.behaviour.outcome is None and self.rng.random() < self.behaviour.drop_out

    def answer_plate(self, token: str) -> str:
        digit = PlateTrial.objects.values_list("plate__digit", flat=True).get(token=token)
        return self._pick(right_plate_answer(digit), PLATE_ANSWERS, Outcome.COLOUR_CHECK_FAILED)

    def answer_pair(self, token: str) -> str:
        right = PairTrial.objects.values_list("modified_side", flat=True).get(token=token)
        return self._pick(right, PAIR_ANSWERS, Outcome.COMPREHENSION_FAILED)

    def rate(self, token: str) -> int:
        """A value on the study's scale, in its own direction."""
        trial = Trial.objects.select_related("image").get(token=token)
        fails_on_purpose = self.behaviour.outcome is Outcome.ATTENTION_FAILED
        if trial.image:
            return self.rate_image(is_modified=trial.image.kind == ImageKind.MODIFIED)
        if self._is_careless():
            return self.rng.randint(self.scale.minimum, self.scale.maximum)
        if trial.kind == TrialKind.CORRUPTED:
            return self._value(-1 if fails_on_purpose else 1)
        instructed = trial.instructed_value or 0
        if fails_on_purpose:
            return max(self.scale.minimum, self.scale.maximum, key=lambda end: abs(end - instructed))
        return instructed

    def rate_image(self, *, is_modified: bool) -> int:
        """What a bot of this ability says about an image."""
        centre = ABLE_CERTAINTY * self.behaviour.ability * (1 if is_modified else -1) + self.behaviour.bias
        return self._value(self.rng.gauss(centre, SPREAD))

    def _is_careless(self) -> bool:
        return self.behaviour.outcome is None and self.rng.random() < self.behaviour.carelessness

    def _pick(self, right: str, answers: Sequence[str], failing: Outcome) -> str:
        if self.behaviour.outcome is failing:
            return self.rng.choice([answer for answer in answers if answer != right])
        return self.rng.choice(answers) if self._is_careless() else right

    def _value(self, certainty: float) -> int:
        """The point of the scale for a certainty, which is cut to -1 ... 1."""
        share = (min(1.0, max(-1.0, certainty)) + 1) / 2
        value = round(self.scale.minimum + share * (self.scale.maximum - self.scale.minimum))
        return self.scale.oriented(value)  # mirroring is its own inverse


@dataclass(frozen=True)
class Page:
    """What a bot reads from one HTML page. ``hidden_fields`` and ``choices`` (radio buttons) answer the page's step."""

    url: str
    step: Step
    outcome: str
    csrf_token: str
    hidden_fields: dict[str, str]
    choices: dict[str, list[str]]
    images: list[str]
    data: dict[str, Any]


def read_page(response: httpx.Response) -> Page:
    """Parse a page of the participant's way. Raises BotError when it is anything else."""
    reader = _PageReader()
    reader.feed(response.text)
    if response.status_code != httpx.codes.OK or reader.step not in set(Step):
        title = " ".join("".join(reader.title).split())
        raise BotError(f"{response.request.method} {response.url.path} answered {response.status_code} {title}")
    form = next((form for form in reader.forms if ("hidden", "step", reader.step) in form), [])
    choices: dict[str, list[str]] = {}
    for kind, name, value in form:
        if kind == "radio":
            choices.setdefault(name, []).append(value)
    return Page(
        url=str(response.url),
        step=Step(reader.step),
        outcome=reader.outcome,
        csrf_token=next(
            (value for form in reader.forms for _, name, value in form if name == "csrfmiddlewaretoken"), ""
        ),
        hidden_fields={name: value for kind, name, value in form if kind == "hidden"},
        choices=choices,
        images=[urljoin(str(response.url), source) for source in reader.images],
        data=json.loads("".join(reader.data) or "{}"),
    )


class _PageReader(HTMLParser):
    """Collects the parts of a page that a bot acts on."""

    def __init__(self) -> None:
        super().__init__()
        self.step = self.outcome = ""
        self.forms: list[list[tuple[str, str, str]]] = []  # of each input: type, name, value
        self.images: list[str] = []
        self.title: list[str] = []
        self.data: list[str] = []
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        match tag:
            case "body":
                self.step, self.outcome = values.get("data-step", ""), values.get("data-outcome", "")
            case "form":
                self.forms.append([])
            case "input" if self.forms and "name" in values:
                self.forms[-1].append((values.get("type", "text"), values["name"], values.get("value", "")))
            case "img" if values.get("src"):
                self.images.append(values["src"])
            case "title":
                self._text = self.title
            case "script" if values.get("id") == "trial-data":
                self._text = self.data

    def handle_endtag(self, tag: str) -> None:
        self._text = None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


class Bot:
    """One simulated participant with a browser of its own (``client``: an httpx client without cookies yet)."""

    def __init__(self, study: Study, client: httpx.Client, behaviour: Behaviour, rng: random.Random) -> None:
        self.client = client
        self.mind = Mind(study, behaviour, rng)
        self.window = {
            "viewport_width": str(max(VIEWPORT_WIDTH, study.minimum_viewport_width)),
            "viewport_height": str(max(VIEWPORT_HEIGHT, study.minimum_viewport_height)),
            "device_pixel_ratio": "1",
        }
        self.rng = rng
        self.loaded: set[str] = set()
        self.ratings = 0

    def walk(self, address: str) -> Walk:
        """Open the link and go on until the end, or until the bot leaves or meets an error."""
        try:
            page = read_page(self.client.get(address))
            for _ in range(MOST_PAGES):
                self._load(page.images)
                if page.step is Step.END:
                    return self._ended(page)
                if self._leaves() or not (next_page := self._act(page)):
                    return Walk(left_at=page.step, ratings=self.ratings)
                page = next_page
        except (BotError, httpx.HTTPError, ObjectDoesNotExist, ValueError, KeyError) as error:
            return Walk(error=f"{type(error).__name__}: {error}", ratings=self.ratings)
        return Walk(error=f"no end after {MOST_PAGES} pages", ratings=self.ratings)

    def _leaves(self) -> bool:
        if self.mind.behaviour.outcome in ENDS_FROM_OUTSIDE:
            return self.ratings > 0
        return self.mind.leaves()

    def _ended(self, page: Page) -> Walk:
        outcome, wanted = Outcome(page.outcome), self.mind.behaviour.outcome
        if wanted and outcome is not wanted:
            return Walk(error=f"ended as {outcome}, not as {wanted}", ratings=self.ratings)
        return Walk(outcome=outcome, ratings=self.ratings)

    def _act(self, page: Page) -> Page | None:
        """Answer the page; gives the next one, or None when the bot leaves on the way."""
        match page.step:
            case Step.CONSENT:
                declines = self.mind.behaviour.outcome is Outcome.DECLINED
                return self._post(page, {"decision": "decline" if declines else "accept", **self.window})
            case Step.COLOUR_CHECK:
                return self._post(page, {"answer": self.mind.answer_plate(page.hidden_fields["token"])})
            case Step.COMPREHENSION:
                return self._post(page, {"answer": self.mind.answer_pair(page.hidden_fields["token"])})
            case Step.MAIN:
                return read_page(self.client.get(page.url)) if self._rate_all(page) else None
            case Step.FEEDBACK:
                return self._post(page, {name: self.rng.choice(values) for name, values in page.choices.items()})
            case _:
                return self._post(page, {})

    def _post(self, page: Page, answers: dict[str, str]) -> Page:
        origin = {"Origin": "{0.scheme}://{0.netloc}".format(urlsplit(page.url))}
        return read_page(self.client.post(page.url, data={**page.hidden_fields, **answers}, headers=origin))

    def _rate_all(self, page: Page) -> bool:
        """Rate item after item until there is none; False when the bot leaves on the way."""
        rate_address = urljoin(page.url, page.data["rate_url"])
        headers = {
            "Origin": "{0.scheme}://{0.netloc}".format(urlsplit(page.url)),
            "X-CSRFToken": page.csrf_token,
        }
        state = page.data
        while trial := state["trial"]:
            items = [trial, *state["upcoming"]]
            images = [address for item in items for address in (item["image"], item["second_image"]) if address]
            self._load([urljoin(page.url, address) for address in images])
            if self._leaves():
                return False
            response = self.client.post(rate_address, json=self._rating(trial["token"]), headers=headers)
            if response.status_code != httpx.codes.OK:
                raise BotError(f"POST {response.url.path} answered {response.status_code} {response.text[:200]}")
            self.ratings += 1
            state = response.json()
        return True

    def _rating(self, token: str) -> dict[str, Any]:
        """A rating as the page's script would send it; the times are made up."""
        response_ms = round(self.rng.lognormvariate(8, 0.5))
        first_interaction_ms = round(response_ms * self.rng.uniform(0.3, 0.7))
        return {
            "token": token,
            "value": self.mind.rate(token),
            "start_position": None,
            "response_ms": response_ms,
            "visible_ms": response_ms,
            "client_ms": response_ms,
            "shown_width": 640,
            "shown_height": 480,
            "first_interaction_ms": first_interaction_ms,
            "last_interaction_ms": round(self.rng.uniform(first_interaction_ms, response_ms)),
            "focus_losses": 0,
        }

    def _load(self, images: list[str]) -> None:
        """Load images that are not in this bot's cache yet. Raises BotError for what is not an image."""
        for address in images:
            if address in self.loaded:
                continue
            response = self.client.get(address)
            if response.status_code != httpx.codes.OK or not response.headers["Content-Type"].startswith("image/"):
                raise BotError(f"GET {response.url.path} answered {response.status_code}, not an image")
            self.loaded.add(address)


def simulate(
    study: Study,
    behaviour: Behaviour,
    *,
    count: int,
    base_url: str = "",
    concurrency: int = 1,
    seed: int | None = None,
) -> Iterator[Walk]:
    """Send ``count`` bots through a study as test participants, ``concurrency`` at a time; gives each one's end.

    ``base_url``: the site's address, such as http://localhost:8000; empty: this process's own WSGI application.
    ``seed`` makes the bots' answers repeatable, as far as the study shows them the same.
    """
    seeds = random.Random(seed)  # noqa: S311 - no secret

    def send(bot_seed: int) -> Walk:
        session = f"bot-{uuid.uuid4().hex}"
        address = reverse("studies:landing", args=[study.slug])
        query = urlencode({"test": links.test_token(study), "PROLIFIC_PID": session, "SESSION_ID": session})
        with _new_client(base_url) as client:
            rng = random.Random(bot_seed)  # noqa: S311 - no secret
            bot = Bot(study, client, behaviour, rng)
            walk = bot.walk(f"{address}?{query}")
            if walk.left_at and (end := ENDS_FROM_OUTSIDE.get(behaviour.outcome)):
                end(ParticipantIdentity.objects.get(study=study, session_id=session).participation_id)
                walk = bot.walk(f"{address}?{query}")
            return walk

    def send_in_thread(bot_seed: int) -> Walk:
        try:
            return send(bot_seed)
        finally:
            connections.close_all()  # this thread's own

    bot_seeds = [seeds.getrandbits(64) for _ in range(count)]
    if concurrency == 1:
        yield from map(send, bot_seeds)
        return
    with ThreadPoolExecutor(concurrency) as pool:
        for future in as_completed([pool.submit(send_in_thread, bot_seed) for bot_seed in bot_seeds]):
            yield future.result()


def _new_client(base_url: str) -> httpx.Client:
    headers = {"User-Agent": USER_AGENT}
    if base_url:
        return httpx.Client(base_url=base_url, headers=headers, follow_redirects=True, timeout=30)
    # The whole middleware stack answers as it would behind a socket, so the address must be one the site accepts.
    scheme = "https" if settings.SECURE_SSL_REDIRECT else "http"
    host = next((host for host in settings.ALLOWED_HOSTS if not host.startswith(("*", "."))), "localhost")
    if proxy_header := getattr(settings, "SECURE_PROXY_SSL_HEADER", None):
        headers[proxy_header[0].removeprefix("HTTP_").replace("_", "-")] = proxy_header[1]
    transport = httpx.WSGITransport(get_wsgi_application())
    return httpx.Client(transport=transport, base_url=f"{scheme}://{host}", headers=headers, follow_redirects=True)
