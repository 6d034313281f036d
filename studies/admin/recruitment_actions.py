"""What a researcher can do with a study on Prolific in each of its states. Each is one call of a service."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from scooter_site.common.as_seen import digest_of
from studies.models import PanelStudy
from studies.recruitment.money import to_major
from studies.recruitment.statuses import PanelStudyStatus as There
from studies.services import recruitment, recruitment_sync
from studies.services.recruitment import RecruitmentError

LARGEST_TOTAL = 999_999


@dataclass(frozen=True)
class RecruitmentAction:
    """A button. ``states``: where it is offered ("": not made yet); ``spends``: needs the permission to spend money."""

    name: str
    label: str
    done: str
    states: frozenset[str]
    run: Callable[[PanelStudy, HttpRequest], object]
    spends: bool = False
    question: str = ""  # asked first, on a page of its own
    number: str = ""  # label of the number that it takes


def landing_url(panel_study: PanelStudy, request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("studies:landing", args=[panel_study.study.slug]))


def number_of(request: HttpRequest) -> int:
    """The number that was typed beside a button, and stands in the question's form."""
    given = (request.POST if request.method == "POST" else request.GET).get("number", "")
    if not given.isascii() or not given.isdigit():
        raise RecruitmentError(f"“{given}” is no whole number: give the new total.")
    if len(given.lstrip("0")) > len(str(LARGEST_TOTAL)):
        raise RecruitmentError(f"“{given}” is too many: the largest total is {LARGEST_TOTAL:,}.")
    return int(given)


def spending(panel_study: PanelStudy, name: str, request: HttpRequest) -> list[tuple[str, str]]:
    """What an action pays to participants, in facts for its question. Raises RecruitmentError for a bad number."""
    currency, reward = panel_study.study.currency, to_major(panel_study.reward_minor)
    if name == "publish":
        estimate = panel_study.estimated_cost_minor
        return [
            ("Places", f"{panel_study.places:,}"),
            ("Reward of each", f"{currency} {reward:,}"),
            ("Screen-out slots", f"{panel_study.screen_out_slots:,}"),
            (
                "With fees and VAT, by Prolific",
                "not estimated yet" if estimate is None else f"{currency} {to_major(estimate):,}",
            ),
        ]
    if name == "resume":
        left = max(0, (panel_study.places_there or 0) - (panel_study.places_taken or 0))
        return [("Places still free", f"{left:,}"), ("Rewards for them", f"{currency} {left * reward:,}")]
    if name == "places":
        total = number_of(request)
        more = recruitment.more_places(panel_study, total)
        return [("New total of places", f"{total:,}"), (f"Rewards for {more:,} more", f"{currency} {more * reward:,}")]
    if name == "slots":
        total = number_of(request)
        more = recruitment.more_slots(panel_study, total)
        amount = to_major(recruitment.slot_minor(panel_study))
        return [
            ("New total of screen-out slots", f"{total:,}"),
            (f"Screen-outs for {more:,} more", f"{currency} {more * amount:,}"),
        ]
    return []


def fingerprint(panel_study: PanelStudy, spends: list[tuple[str, str]]) -> str:
    """Changes with what a person reads before spending money: how much it is, and for whom."""
    return digest_of(spends, panel_study.filters_in_words)


EVERYWHERE_THERE = frozenset(There)
FEES_ON_TOP = "Prolific’s fees and VAT come on top."
ACTIONS = {
    action.name: action
    for action in (
        RecruitmentAction(
            "create",
            "Create the draft on Prolific",
            "The draft is on Prolific. Nobody sees it before it is published.",
            frozenset({""}),
            lambda one, request: recruitment.create_draft(one, landing_url(one, request)),
        ),
        RecruitmentAction(
            "update",
            "Bring the draft up to date",
            "The draft on Prolific says what is asked for here.",
            frozenset({There.UNPUBLISHED}),
            lambda one, request: recruitment.create_draft(one, landing_url(one, request)),
        ),
        RecruitmentAction(
            "estimate",
            "Estimate the cost",
            "Prolific has estimated the cost.",
            frozenset({"", *There}),
            lambda one, request: recruitment.estimate_cost(one),
        ),
        RecruitmentAction(
            "publish",
            "Publish",
            "The study is published: participants can take it.",
            frozenset({There.UNPUBLISHED}),
            lambda one, request: recruitment.publish(one, landing_url(one, request)),
            spends=True,
            question="Participants can take the study at once, and what they earn is to be paid. From then on only the "
            "numbers of places and screen-out slots can change, and only up.",
        ),
        RecruitmentAction(
            "pause",
            "Pause",
            "Prolific lets nobody new in; who is inside can finish.",
            frozenset({There.ACTIVE}),
            lambda one, request: recruitment.pause(one),
        ),
        RecruitmentAction(
            "resume",
            "Resume",
            "Prolific lets people in again.",
            frozenset({There.PAUSED}),
            lambda one, request: recruitment.resume(one),
            spends=True,
            question=f"Participants can take the places that are left at once. {FEES_ON_TOP}",
        ),
        RecruitmentAction(
            "places",
            "Raise places",
            "The places have been raised. There are at least as many here.",
            frozenset({There.ACTIVE, There.PAUSED, There.AWAITING_REVIEW, There.COMPLETED}),
            lambda one, request: recruitment.raise_places(one, number_of(request)),
            spends=True,
            question=f"Participants can take the new places at once, and places are never taken back. {FEES_ON_TOP}",
            number="New total of places",
        ),
        RecruitmentAction(
            "slots",
            "Raise screen-out slots",
            "The screen-out slots have been raised. If Prolific had paused the study for them, resume it.",
            frozenset({There.ACTIVE, There.PAUSED}),
            lambda one, request: recruitment.raise_slots(one, number_of(request)),
            spends=True,
            question=f"So many who fail the check are paid at once, and slots are never taken back. {FEES_ON_TOP}",
            number="New total of screen-out slots",
        ),
        RecruitmentAction(
            "stop",
            "Stop",
            "The study is stopped on Prolific.",
            frozenset({There.ACTIVE, There.PAUSED}),
            lambda one, request: recruitment.stop(one),
            question="Nobody can take the study any more; who is inside can finish. Only more places open it again. To "
            "stop for a while, pause it instead.",
        ),
        RecruitmentAction(
            "read",
            "Read from Prolific now",
            "The study and its submissions have been read.",
            EVERYWHERE_THERE,
            lambda one, request: recruitment_sync.read_now(one.pk),
        ),
    )
}
