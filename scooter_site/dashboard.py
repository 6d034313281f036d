"""The admin's first page and its sidebar: the one place of the admin that knows every app."""

from dataclasses import dataclass
from typing import Any

from axes.models import AccessAttempt
from django.contrib.auth.models import Group, User
from django.db.models import Count, F, Q
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django_celery_beat.models import PeriodicTask

from imagedb.models import (
    Attack,
    AttackEvaluation,
    Collection,
    Image,
    ImageClass,
    ImageKind,
    ImportBatch,
    TargetModel,
    TermsAcceptance,
)
from imagedb.selectors.imports import visible_imports
from leaderboard.models import Board, Entry, ExternalResult, Recomputation, Snapshot
from scooter_site.accounts.models import ApiToken
from scooter_site.common.admin_tools import add_url, change_url, list_url, may, signed_in
from studies.models import (
    ParticipantMessage,
    Participation,
    Study,
    StudyStatus,
    Submission,
    Workspace,
)
from studies.selectors.counting import countable
from studies.selectors.messages import waiting_messages
from studies.selectors.recruitment import submissions_to_review

LIST_LENGTH = 6
SIDEBAR = [
    (
        "Catalogue",
        [
            ("Attacks", "bolt", Attack),
            ("Target models", "target", TargetModel),
            ("Success rates", "percent", AttackEvaluation),
            ("Images", "photo_library", Image),
            ("Collections", "collections_bookmark", Collection),
            ("Imports", "upload_file", ImportBatch),
            ("ImageNet classes", "category", ImageClass),
        ],
    ),
    (
        "Studies",
        [
            ("Studies", "science", Study),
            ("Participants", "groups", Participation),
            ("Messages", "mail", ParticipantMessage),
            ("Submissions", "fact_check", Submission),
            ("Prolific workspaces", "account_balance_wallet", Workspace),
        ],
    ),
    (
        "Results",
        [
            ("Boards", "leaderboard", Board),
            ("Snapshots", "inventory_2", Snapshot),
            ("Entries", "table_rows", Entry),
            ("Results from elsewhere", "public", ExternalResult),
            ("Recomputations", "sync", Recomputation),
        ],
    ),
    (
        "Accounts",
        [
            ("Users", "person", User),
            ("Groups", "group", Group),
            ("API tokens", "key", ApiToken),
            ("Terms accepted", "contract", TermsAcceptance),
        ],
    ),
    ("System", [("Scheduled tasks", "schedule", PeriodicTask), ("Failed log-ins", "lock_clock", AccessAttempt)]),
]


def stylesheet(request: HttpRequest) -> str:
    return static("admin_pages/pages.css")


def study_stylesheet(request: HttpRequest) -> str:
    return static("admin_pages/studies.css")


def copy_script(request: HttpRequest) -> str:
    return static("admin_pages/copy.js")


def refresh_script(request: HttpRequest) -> str:
    return static("admin_pages/refresh.js")


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The sidebar: what the signed-in user may see, in groups."""
    groups: list[dict[str, Any]] = [
        {
            "title": "",
            "items": [{"title": "Overview", "icon": "home", "link": reverse("admin:index")}],
        }
    ]
    for title, entries in SIDEBAR:
        items = [
            {"title": label, "icon": icon, "link": list_url(model), "badge": _waiting(model)}
            for label, icon, model in entries
            if may(request, "view", model) or may(request, "change", model)
        ]
        groups.append({"title": title, "separator": True, "items": items})
    return groups


def _waiting(model: Any) -> int:
    """How many things of this kind wait for somebody; 0 shows no number."""
    if model is ParticipantMessage:
        return waiting_messages().count()
    return submissions_to_review().count() if model is Submission else 0


@dataclass(frozen=True)
class ChecklistStep:
    """One step to a first study; done as soon as the database shows it."""

    title: str
    explanation: str
    done: bool
    link: str
    link_label: str
    model: Any


def first_study_steps() -> list[ChecklistStep]:
    """The way from an empty database to a running study. Demonstration material ticks nothing."""
    own_studies = Study.objects.filter(is_demo=False)
    next_study = own_studies.filter(status__in=[StudyStatus.DRAFT, StudyStatus.READY]).first()
    kinds = {kind for kind in ImageKind.values if Image.objects.filter(is_demo=False, kind=kind).exists()}
    return [
        ChecklistStep(
            "Describe the attack",
            "The method that made the modified images.",
            Attack.objects.filter(is_demo=False).exists(),
            add_url(Attack),
            "Add an attack",
            Attack,
        ),
        ChecklistStep(
            "Describe the target model",
            "The classifier that the attack misleads.",
            TargetModel.objects.filter(is_demo=False).exists(),
            add_url(TargetModel),
            "Add a target model",
            TargetModel,
        ),
        ChecklistStep(
            "Upload images",
            "One ZIP with clean and modified images and a manifest that says which is which.",
            kinds == set(ImageKind.values),
            add_url(ImportBatch),
            "Upload a ZIP",
            ImportBatch,
        ),
        ChecklistStep(
            "Create a study",
            "Start from the numbers of the paper or of the field version, and change what you need.",
            own_studies.exists(),
            add_url(Study),
            "Create a study",
            Study,
        ),
        ChecklistStep(
            "Launch it",
            "Build its datasets, look at it as a participant would, launch it and share its link.",
            own_studies.filter(launched_at__isnull=False).exists(),
            change_url(next_study) if next_study else list_url(Study),
            "Go on with the study" if next_study else "See all studies",
            Study,
        ),
    ]


def running_studies() -> list[dict[str, Any]]:
    """Studies that take participants or are paused, with how far each has come."""
    counts = countable("participations__")
    studies = (
        Study.objects.filter(status__in=[StudyStatus.RUNNING, StudyStatus.PAUSED])
        .select_related("attack", "target_model")
        .annotate(
            arrived=Count("participations", filter=counts),
            valid=Count("participations", filter=counts & Q(participations__is_valid=True)),
            planned=F("dataset_count") * F("participants_per_dataset"),
        )
        .order_by("-launched_at", "-id")[:LIST_LENGTH]
    )
    return [
        {
            "study": study,
            "url": change_url(study),
            "arrived": study.arrived,
            "valid": study.valid,
            "planned": study.planned,
            "percent": min(100, round(100 * study.valid / study.planned)),
        }
        for study in studies
    ]


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Context of the admin's first page; each part only for those who may see it."""
    sees_studies, sees_images = may(request, "view", Study), may(request, "view", Image)
    if may(request, "add", Study):
        steps = first_study_steps()
        current = next((step for step in steps if not step.done), None)
        context["checklist"] = [
            {"step": step, "current": step is current, "may": may(request, "add", step.model)} for step in steps
        ]
        context["checklist_open"] = current is not None
        context["has_demonstration"] = Study.objects.filter(is_demo=True).exists()
    if sees_images:
        context["image_counts"] = Image.objects.aggregate(
            clean=Count("id", filter=Q(kind=ImageKind.CLEAN)), modified=Count("id", filter=Q(kind=ImageKind.MODIFIED))
        )
        context["images_url"] = list_url(Image)
    if sees_studies:
        context["running_studies"] = running_studies()
        context["study_count"] = Study.objects.count()
        context["studies_url"] = list_url(Study)
    if may(request, "view", Participation):
        context["valid_count"] = Participation.objects.filter(countable(), is_valid=True).count()
        context["participations_url"] = list_url(Participation, "is_valid__exact=1")
    if may(request, "view", ImportBatch):
        context["last_imports"] = [
            {"batch": batch, "url": change_url(batch)} for batch in visible_imports(signed_in(request))[:LIST_LENGTH]
        ]
        context["imports_url"] = list_url(ImportBatch)
    return context
