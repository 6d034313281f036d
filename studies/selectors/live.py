"""How a running study is going, in numbers for its live page: a fixed number of queries, whatever its size.

Everything counts what counts (``countable_participations``). A participant who is unfinished and has not been seen for
as long as a lease lasts is taken for gone, until they come back.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import quantiles
from typing import Any

from django.db.models import Count, Max, Min, OuterRef, Q, Subquery

from studies import checks
from studies.flow import Outcome, Step, steps_of
from studies.models import PairTrial, PlateTrial, Rating, Study, StudyStatus, TrialKind
from studies.pay import amount_due
from studies.selectors.ratings import countable_participations

# Bars of the chart of arrivals, at most; and how long one of them can be.
MOST_BARS = 48
BAR_MINUTES = (1, 5, 10, 30, 60, 180, 360, 720, 1440, 10_080)


@dataclass(frozen=True)
class Quartiles:
    """Of ``count`` durations; None when there is none."""

    count: int
    lower: timedelta
    median: timedelta
    upper: timedelta


@dataclass(frozen=True)
class StepLine:
    """One step: who reached it, is there now, was screened out there, or left there; and how long it took."""

    step: Step
    reached: int
    passed: int
    here: int
    screened_out: int
    left: int
    time: Quartiles | None


@dataclass(frozen=True)
class Bar:
    """How many arrived in the time from ``start`` on."""

    start: datetime
    count: int


@dataclass(frozen=True)
class Arrivals:
    """Bars of equal width in minutes, without a hole, from the first arrival to the last."""

    minutes: int
    bars: list[Bar]


@dataclass(frozen=True)
class CheckRate:
    """How many of the answers to one kind of check were wrong."""

    label: str
    answered: int
    failed: int

    @property
    def percent(self) -> float | None:
        return 100 * self.failed / self.answered if self.answered else None


@dataclass(frozen=True)
class Pay:
    """``committed``: due to those who have ended. ``to_come``: at most so much more, if all who can finish do."""

    committed: Decimal
    to_come: Decimal


@dataclass(frozen=True)
class Progress:
    """What is known of one participation. Times are None for what has not happened."""

    step: str
    outcome: str
    last_seen_at: datetime
    started_at: datetime
    consented_at: datetime | None
    colour_judged_at: datetime | None
    colour_passed_at: datetime | None
    instructions_read_at: datetime | None
    pairs_judged_at: datetime | None
    pairs_passed_at: datetime | None
    rated_at: datetime | None
    feedback_at: datetime | None


def progress_of_all(study: Study) -> list[Progress]:
    """Every participation with the times of its milestones; one query."""

    def at(**event: object) -> Max:
        return Max("events__at", filter=Q(**{f"events__{name}": value for name, value in event.items()}))

    last_answer = Rating.objects.filter(trial__participation=OuterRef("pk"), trial__position=study.trial_count).values(
        "answered_at"
    )[:1]
    rows = (
        countable_participations(study)
        .order_by("id")
        .values("pk", "step", "outcome", "last_seen_at", "started_at", "consented_at")
        .annotate(
            colour_judged_at=at(name="colour_check_judged"),
            colour_passed_at=at(name="colour_check_judged", detail__right__gte=study.plates_required),
            instructions_read_at=Min("events__at", filter=Q(events__name="instructions_read")),
            pairs_judged_at=at(name="comprehension_judged"),
            pairs_passed_at=at(name="comprehension_judged", detail__right__gte=study.comprehension_required),
            rated_at=Subquery(last_answer),
            feedback_at=at(name="feedback_given"),
        )
    )
    return [Progress(**{name: value for name, value in row.items() if name != "pk"}) for row in rows]  # type: ignore[arg-type]


def _times(step: Step, one: Progress) -> tuple[datetime | None, datetime | None]:
    """When the answer to ``step`` was complete, and when it was passed: what a check decides."""
    match step:
        case Step.CONSENT:
            return one.consented_at, one.consented_at
        case Step.COLOUR_CHECK:
            return one.colour_judged_at, one.colour_passed_at
        case Step.INSTRUCTIONS:
            return one.instructions_read_at, one.instructions_read_at
        case Step.COMPREHENSION:
            return one.pairs_judged_at, one.pairs_passed_at
        case Step.MAIN:
            return one.rated_at, one.rated_at
        case _:
            return one.feedback_at, one.feedback_at


SCREENED_OUT_AT = {
    Outcome.COLOUR_CHECK_FAILED: Step.COLOUR_CHECK,
    Outcome.COMPREHENSION_FAILED: Step.COMPREHENSION,
}


def step_lines(study: Study, everybody: Sequence[Progress], now: datetime) -> list[StepLine]:
    """Every step in order. Whoever reached it passed it, is there now, was screened out there, or left there."""
    gone_before = now - timedelta(minutes=study.lease_minutes)
    lines = []
    reached: Sequence[tuple[Progress, datetime]] = [(one, one.started_at) for one in everybody]
    for step in steps_of(study.rules):
        spans, passed, here, screened_out = [], [], 0, 0
        for one, since in reached:
            answered_at, passed_at = _times(step, one)
            if answered_at:
                spans.append(answered_at - since)
            if passed_at or (step is Step.FEEDBACK and one.outcome == Outcome.COMPLETED):
                passed.append((one, passed_at or since))
            elif SCREENED_OUT_AT.get(one.outcome) is step or one.outcome == Outcome.ATTENTION_FAILED:  # type: ignore[call-overload]
                screened_out += 1
            elif one.step != Step.END and one.last_seen_at >= gone_before:
                here += 1
        left = len(reached) - len(passed) - here - screened_out
        lines.append(StepLine(step, len(reached), len(passed), here, screened_out, left, quartiles(spans)))
        reached = passed
    return lines


def total_times(everybody: Iterable[Progress]) -> Quartiles | None:
    """From arrival to the feedback page's answer, of those who gave every answer."""
    return quartiles([one.feedback_at - one.started_at for one in everybody if one.feedback_at])


def quartiles(spans: Sequence[timedelta]) -> Quartiles | None:
    """Median and quartiles, between the values where need be (the "inclusive" method, R's type 7)."""
    if not spans:
        return None
    seconds = [span.total_seconds() for span in spans]
    cuts = quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
    lower, middle, upper = (timedelta(seconds=cut) for cut in cuts)
    return Quartiles(len(spans), lower, middle, upper)


def arrivals(times: Sequence[datetime]) -> Arrivals:
    """Arrivals over time, in bars as narrow as MOST_BARS allows, that begin at whole multiples of their width."""
    if not times:
        return Arrivals(BAR_MINUTES[0], [])
    first, last = min(times), max(times)
    for minutes in BAR_MINUTES:
        start = _floor(first, minutes)
        count = (last - start) // timedelta(minutes=minutes) + 1
        if count <= MOST_BARS:
            break
    found = Counter((time - start) // timedelta(minutes=minutes) for time in times)
    return Arrivals(
        minutes, [Bar(start + number * timedelta(minutes=minutes), found[number]) for number in range(count)]
    )


def _floor(time: datetime, minutes: int) -> datetime:
    seconds = minutes * 60
    return time - timedelta(seconds=time.timestamp() % seconds)


@dataclass(frozen=True)
class _Asked:
    """An attention check, as far as its protocol must know it to judge an answer."""

    kind: str
    instructed_value: int | None
    parameters: Mapping[str, Any] = field(default_factory=dict)


def check_rates(study: Study) -> list[CheckRate]:
    """Wrong answers to each kind of check; three queries."""
    here = Q(participation__in=countable_participations(study), answered_at__isnull=False)
    found: dict[str, list[int]] = {}

    def add(label: str, count: int, *, right: bool) -> None:
        line = found.setdefault(label, [0, 0])
        line[0] += count
        line[1] += 0 if right else count

    plates = PlateTrial.objects.filter(here).order_by().values_list("plate__kind", "plate__digit", "answer")
    for kind, digit, answer, count in plates.annotate(Count("id")):
        label = "Colour plate without a digit" if digit is None else f"Colour plate, {kind}"
        add(label, count, right=checks.plate_is_right(digit, answer))
    pairs = PairTrial.objects.filter(here).order_by()
    for change, side, answer, count in pairs.values_list(
        "modified_stimulus__modification", "modified_side", "answer"
    ).annotate(Count("id")):
        add(f"Comprehension pair, {change}", count, right=checks.pair_is_right(side, answer))
    ratings = Rating.objects.filter(
        trial__participation__in=countable_participations(study),
        trial__kind__in=[TrialKind.CORRUPTED, TrialKind.INSTRUCTED],
    ).order_by()
    for kind, asked, value, count in ratings.values_list("trial__kind", "trial__instructed_value", "value").annotate(
        Count("trial_id")
    ):
        right = study.protocol.check_passed(_Asked(kind, asked), value, study.setup)
        add(study.protocol.kinds.get(kind, kind), count, right=right)
    return [CheckRate(label, *numbers) for label, numbers in sorted(found.items())]


def pay(study: Study, ended: Mapping[str, int], *, unfinished_places: int, places_left: int) -> Pay:
    """``ended``: participations by outcome. ``unfinished_places``: places held by people who are inside."""
    committed = sum((count * amount_due(Outcome(outcome), study.rates) for outcome, count in ended.items()), Decimal(0))
    may_still_come = study.status in {StudyStatus.READY, StudyStatus.RUNNING, StudyStatus.PAUSED}
    people = unfinished_places + (places_left if may_still_come else 0)
    return Pay(committed, people * amount_due(Outcome.COMPLETED, study.rates))
