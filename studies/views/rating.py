"""What the page of the main study sends, and what it is answered with: JSON both ways.

**Items.** The data in the page (``trial-data``) and every answer hold ``trial``, the item to show, and ``upcoming``, at
most three that follow it (none where what follows depends on the answer). An item has

- ``token``: names it in what is sent; ``position`` of ``total``;
- ``image``, ``second_image``: addresses, or null; ``text``: words in place of the image, or with it, or null;
- ``exposure_ms``: the image is hidden after this time, or null: it stays;
- ``answer``: the value that is stored for it, a whole number, or null: not answered yet. 0 is an answer.

In an answer ``trial`` is null when the main study is over: the page of the next step is at ``run_url``.

**rate** (POST ``rate_url``): ``token``, ``value``, ``touched`` (true: only somebody who has touched the scale has
answered; left out, ``first_interaction_ms`` says so alone; anything else is refused), ``start_position`` (null: the
scale showed none), ``response_ms``, ``first_interaction_ms`` (required), ``last_interaction_ms``, ``visible_ms``,
``focus_losses``, ``shown_width``, ``shown_height``, ``client_ms``, and ``revision``: true for another answer to an item
that has one. Answered with the item that is current then; after a revision with the item after the revised one.

- In order only. The browser may give its answers to ``trial`` and all of ``upcoming`` while it is offline and send
  them later, one after the other; one to an item that is not current yet is refused with 409 and changes nothing.
- Sending an answer again changes nothing and is answered with the present state, also when the value differs and when
  both arrive at the same moment: the first stands. Only a ``revision`` changes an answer, and only if ``may_go_back``.

**back** (POST ``back_url``): ``token`` of the item on the screen. Answered with the item before it, with its
``answer``. Nothing is stored. 409 if the study does not allow it, at the first item, and when the ratings are over.

**heartbeat** (POST, once a minute while a page of any step after the consent is in sight and somebody has been at it
within the study's ``lease_minutes``; its address is on ``body``): keeps the place. 204.

All three answer 403 when the session is not known, and 409 when the participation has ended (the page is to be loaded
again: its step has changed), both with ``error``, a sentence; rate and back answer 400 to what is malformed, with a
sentence that names the field.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from studies.forms import parse_rating, parse_token
from studies.models import Participation, Study
from studies.selectors.items import LOOK_AHEAD, Item, unanswered_items
from studies.services.participations import (
    InvalidAnswer,
    OutOfTurn,
    Session,
    Timings,
    Turn,
    answer_item,
    go_back,
    keep_place,
)
from studies.views.access import session_of

UNKNOWN_SESSION = "This session is not known here."
NOT_NOW = "This is not the moment for ratings."


def of_session(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Give the view the session that the cookie names, and answer what keeps it from its work."""

    @wraps(view)
    def with_session(request: HttpRequest, slug: str) -> HttpResponse:
        public_id = session_of(request, slug)
        if public_id is None:
            return _json_error(UNKNOWN_SESSION, HTTPStatus.FORBIDDEN)
        try:
            return view(request, Session(public_id, slug))
        except Participation.DoesNotExist:
            return _json_error(UNKNOWN_SESSION, HTTPStatus.FORBIDDEN)
        except OutOfTurn as error:
            return _json_error(str(error), HTTPStatus.CONFLICT)
        except InvalidAnswer as error:
            return _json_error(str(error), HTTPStatus.BAD_REQUEST)

    return with_session


@require_POST
@never_cache
@of_session
def rate(request: HttpRequest, session: Session) -> HttpResponse:
    """Store one rating and answer with the next item."""
    try:
        posted = parse_rating(request.body)
    except ValueError as error:
        return _json_error(str(error), HTTPStatus.BAD_REQUEST)
    timings = Timings(
        response_ms=posted.response_ms,
        first_interaction_ms=posted.first_interaction_ms,
        last_interaction_ms=posted.last_interaction_ms,
        focus_losses=posted.focus_losses,
        visible_ms=posted.visible_ms,
        shown_width=posted.shown_width,
        shown_height=posted.shown_height,
        client_ms=posted.client_ms,
    )
    return _answered(
        answer_item(
            session,
            posted.token,
            posted.value,
            timings,
            start_position=posted.start_position,
            revises=posted.revises,
        )
    )


@require_POST
@never_cache
@of_session
def back(request: HttpRequest, session: Session) -> HttpResponse:
    """Answer with the item before the one on the screen."""
    try:
        token = parse_token(request.body)
    except ValueError as error:
        return _json_error(str(error), HTTPStatus.BAD_REQUEST)
    return _answered(go_back(session, token))


@require_POST
@never_cache
@of_session
def heartbeat(request: HttpRequest, session: Session) -> HttpResponse:
    """Keep the participant's place."""
    if not keep_place(session):
        return _json_error(NOT_NOW, HTTPStatus.CONFLICT)
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


def page_data(participation: Participation) -> dict[str, Any]:
    """What the page begins with: where the participant is."""
    return _shown(participation.study, unanswered_items(participation.pk)[: 1 + LOOK_AHEAD])


def _answered(turn: Turn) -> HttpResponse:
    if turn.came_late:
        return _json_error(NOT_NOW, HTTPStatus.CONFLICT)
    return JsonResponse(_shown(turn.participation.study, turn.items))


def _shown(study: Study, items: list[Item]) -> dict[str, Any]:
    protocol, setup = study.protocol, study.setup
    if protocol.is_adaptive:
        items = items[:1]  # what follows depends on the answer to this one
    total = protocol.trial_count(setup)
    shown = [
        {
            "token": str(item.token),
            "position": item.position,
            "total": total,
            "image": _image_address(study, "trial", item) if item.has_image else None,
            "second_image": _image_address(study, "trial-second", item) if "second_image" in item.parameters else None,
            "text": protocol.text(item, setup),
            "exposure_ms": item.parameters.get("exposure_ms"),
            "answer": item.answer,
        }
        for item in items
    ]
    return {"trial": shown[0] if shown else None, "upcoming": shown[1:]}


def _image_address(study: Study, kind: str, item: Item) -> str:
    return str(item.token).join(_around_token(study.slug, kind))


@lru_cache(maxsize=100)
def _around_token(slug: str, kind: str) -> list[str]:
    """What stands before and after the token in an image's address: four addresses a rating are dear to look up."""
    token = UUID(int=0)
    return reverse("studies:image", args=[slug, kind, token]).split(str(token))


def _json_error(message: str, status: HTTPStatus) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)
