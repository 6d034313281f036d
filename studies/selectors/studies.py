"""Studies: texts, links, and how a running one is going."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from scooter_site.common.prepared import PreparedQuery
from studies.feedback import FeedbackItem, parse_items
from studies.flow import Outcome, Step
from studies.links import test_token
from studies.models import (
    Panel,
    Participation,
    ParticipationKind,
    Rating,
    Study,
    StudyStatus,
    StudyText,
    TextKind,
    TrialKind,
)
from studies.pay import amount_due
from studies.selectors.places import holds_dataset_place, places_taken
from studies.selectors.ratings import countable_participations


def study_of(slug: str) -> Study | None:
    """The study of an address."""
    return _OF_SLUG.first(slug)


_OF_SLUG = PreparedQuery(lambda slug: Study.objects.filter(slug=slug).order_by(), "a slug")


def study_text(study: Study, kind: str) -> StudyText | None:
    """The newest version of the study's text of this kind (TextKind), as written; ``render_text`` fills it in."""
    return _NEWEST_TEXT.first(study.pk, str(kind))


_NEWEST_TEXT = PreparedQuery(
    lambda study_id, kind: StudyText.objects.filter(study=study_id, kind=kind).order_by("-version")[:1], 2**40, "a kind"
)


def newest_texts(study: Study) -> list[StudyText]:
    """The newest version of every text there is, in the order in which participants meet them."""
    newest: dict[str, StudyText] = {text.kind: text for text in study.texts.order_by("version")}
    return [newest[kind] for kind in TextKind if kind in newest]


def render_text(study: Study, body: str) -> str:
    """``body`` with its placeholders (studies.presets.TEXT_PLACEHOLDERS) filled in from the study's settings."""
    values = {
        "{contact}": study.contact_email or "the researchers",
        "{minutes} minutes": "1 minute" if study.minutes_complete == 1 else "{minutes} minutes",
        "{minutes}": f"{study.minutes_complete.normalize():f}",
        "{pay}": f"{study.currency} {amount_due(Outcome.COMPLETED, study.rates)}",
        "{items}": str(study.trial_count),
        "{label_minimum}": study.label_minimum,
        "{label_maximum}": study.label_maximum,
    }
    for placeholder, value in values.items():
        body = body.replace(placeholder, value)
    return body


def feedback_items(study: Study, body: str) -> list[FeedbackItem]:
    """The questions of a feedback text as participants read them, placeholders filled in. Raises FeedbackError."""
    return [
        FeedbackItem(
            name=item.name,
            question=render_text(study, item.question),
            choices=tuple(render_text(study, choice) for choice in item.choices),
        )
        for item in parse_items(body)
    ]


def studies_with_lost_build(requested_before: datetime) -> QuerySet[Study]:
    """Studies whose materials were asked for before then, and were neither built nor found impossible to build."""
    return Study.objects.filter(
        status=StudyStatus.DRAFT,
        materials_built_at__isnull=True,
        materials_error="",
        materials_requested_at__lt=requested_before,
    )


@dataclass(frozen=True)
class StudyLinks:
    """``participant``: for the panel or the invitation; ``test``: for trying out, whose data never count."""

    participant: str
    test: str


def study_links(study: Study, base_url: str) -> StudyLinks:
    """The study's addresses below ``base_url`` (such as https://host). Prolific fills in its placeholders itself."""
    landing = f"{base_url.rstrip('/')}/s/{study.slug}/"
    participant = landing
    if study.panel == Panel.PROLIFIC:
        participant += "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    return StudyLinks(participant=participant, test=f"{landing}?test={test_token(study)}")


@dataclass(frozen=True)
class DatasetCoverage:
    """Participations that hold a dataset: ``valid`` ones, and ``running`` ones with a live lease."""

    number: int
    valid: int
    running: int


@dataclass(frozen=True)
class Monitor:
    """How a study is going, counting what counts (``countable_participations``).

    ``by_step`` has unfinished participations, ``by_outcome`` finished ones; every step and outcome is a key.
    """

    by_step: dict[str, int]
    by_outcome: dict[str, int]
    datasets: list[DatasetCoverage]
    planned_participations: int
    place_count: int
    places_taken: int
    valid_participations: int
    valid_ratings: int
    test_participations: int


def monitor(study: Study) -> Monitor:
    """Counts for the study's page, in six aggregate queries."""
    now = timezone.now()
    counted = countable_participations(study).order_by()
    by_step = {step.value: 0 for step in Step if step != Step.END}
    by_outcome = {outcome.value: 0 for outcome in Outcome}
    for step, outcome, count in counted.values_list("step", "outcome").annotate(Count("id")):
        if step == Step.END:
            by_outcome[outcome] = count
        else:
            by_step[step] = count
    kind = ParticipationKind.TEST if study.is_demo else ParticipationKind.REAL
    held = {
        row["dataset_id"]: row
        for row in counted.filter(holds_dataset_place(now))
        .values("dataset_id")
        .annotate(held=Count("id"), valid=Count("id", filter=Q(is_valid=True)))
    }
    datasets = []
    for dataset_id, number in study.datasets.order_by("number").values_list("id", "number"):
        row = held.get(dataset_id, {"held": 0, "valid": 0})
        datasets.append(DatasetCoverage(number=number, valid=row["valid"], running=row["held"] - row["valid"]))
    return Monitor(
        by_step=by_step,
        by_outcome=by_outcome,
        datasets=datasets,
        planned_participations=study.planned_participations,
        place_count=study.place_count,
        places_taken=places_taken(study, kind),
        valid_participations=sum(dataset.valid for dataset in datasets),
        valid_ratings=Rating.objects.filter(
            trial__participation__in=counted.filter(is_valid=True), trial__kind=TrialKind.IMAGE
        ).count(),
        test_participations=Participation.objects.filter(study=study, kind=ParticipationKind.TEST).count(),
    )
