"""Collections and their versions: who may see them, what is in them, and what is different between two of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Case, Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from imagedb.collection_manifest import manifest_line
from imagedb.models import (
    Collection,
    CollectionImage,
    CollectionVersion,
    CurationAction,
    CurationLogEntry,
    Image,
    ImageKind,
    Prediction,
    Visibility,
)
from imagedb.selectors.visibility import has_accepted_terms, visible_images

User = AbstractUser | AnonymousUser
ROWS_AT_A_TIME = 2000


def visible_collections(user: User) -> QuerySet[Collection]:
    """The collections that a user may know of, by the same rules as images (``visible_images``)."""
    if not user.is_authenticated:
        return Collection.objects.filter(visibility=Visibility.PUBLIC)
    if user.is_active and user.is_superuser:
        return Collection.objects.all()
    may_see_registered = (user.is_staff and user.has_perm("imagedb.view_collection")) or has_accepted_terms(user)
    open_to_user = [Visibility.PUBLIC, Visibility.REGISTERED] if may_see_registered else [Visibility.PUBLIC]
    groups = list(user.groups.values_list("pk", flat=True))
    return Collection.objects.filter(Q(visibility__in=open_to_user) | Q(created_by_id=user.pk) | Q(group_id__in=groups))


def may_curate(user: User) -> bool:
    """Whether the user may change drafts of the collections that it sees."""
    return user.is_authenticated and user.has_perm("imagedb.change_collectionversion")


def visible_versions(user: User) -> QuerySet[CollectionVersion]:
    """Frozen versions of the collections that a user sees; drafts only for those who may change them.

    Adds ``total_count``: how many images are in it, whether the user may see them or not.
    """
    versions = CollectionVersion.objects.filter(collection__in=visible_collections(user))
    if not may_curate(user):
        versions = versions.filter(frozen_at__isnull=False)
    return with_total_count(versions).select_related("collection", "collection__target_model")


def with_total_count(versions: QuerySet[CollectionVersion]) -> QuerySet[Any]:
    """Adds ``total_count``; of frozen versions it is stored."""
    members = CollectionImage.objects.filter(version=OuterRef("pk")).order_by().values("version")
    counted = Coalesce(Subquery(members.annotate(count=Count("pk")).values("count")), 0)
    return versions.annotate(
        total_count=Case(
            When(frozen_at__isnull=False, then=F("image_count")), default=counted, output_field=IntegerField()
        )
    )


def images_of_version(version: CollectionVersion, user: User) -> QuerySet[Image]:
    """The images of a version that a user may see."""
    members = CollectionImage.objects.filter(version=version)
    return visible_images(user).filter(pk__in=members.values("image"))


@dataclass(frozen=True)
class VersionCounts:
    """How many images of each kind are in a version, and how many of all of them the user may see."""

    clean: int
    modified: int
    visible: int

    @property
    def total(self) -> int:
        return self.clean + self.modified


def version_counts(version: CollectionVersion, user: User) -> VersionCounts:
    """Count the images of a version. Two queries."""
    kinds = CollectionImage.objects.filter(version=version).aggregate(
        clean=Count("pk", filter=Q(image__kind=ImageKind.CLEAN)),
        modified=Count("pk", filter=Q(image__kind=ImageKind.MODIFIED)),
    )
    return VersionCounts(**kinds, visible=images_of_version(version, user).count())


def manifest_lines(version: CollectionVersion) -> Iterator[bytes]:
    """The lines of the version's manifest, from what the database says now. Constant memory.

    A modified image comes with the answer of its own target model, a clean one with that of the collection's.
    """
    said = Prediction.objects.filter(image=OuterRef("image"), target_model=OuterRef("asked_model"))
    rows = (
        CollectionImage.objects.filter(version=version)
        .annotate(
            asked_model=Case(
                When(image__kind=ImageKind.MODIFIED, then=F("image__target_model")),
                default=Value(version.collection.target_model_id),
                output_field=IntegerField(),
            )
        )
        .annotate(
            predicted_class_index=Subquery(said.values("predicted_class__index")),
            confidence=Subquery(said.values("confidence")),
            asked_slug=Subquery(said.values("target_model__slug")),
        )
        .order_by("image__public_id")
        .values_list(
            "image__public_id",
            "image__original_sha256",
            "image__original_bytes",
            "image__kind",
            "image__image_class__index",
            "image__image_class__synset",
            "image__source__public_id",
            "image__attack__slug",
            Coalesce("image__target_model__slug", "asked_slug"),
            "predicted_class_index",
            "confidence",
            "image__original_filename",
            "image__licence",
            "image__attribution",
        )
    )
    for image_id, sha256, size, kind, index, synset, source, attack, model, predicted, sure, *words in rows.iterator(
        chunk_size=ROWS_AT_A_TIME
    ):
        filename, licence, attribution = words
        yield manifest_line(
            {
                "id": str(image_id),
                "sha256": sha256,
                "bytes": size,
                "kind": kind,
                "class_index": index,
                "synset": synset,
                "source": source and str(source),
                "attack": attack,
                "target_model": model,
                "predicted_class_index": predicted,
                "confidence": sure,
                "filename": filename,
                "licence": licence,
                "attribution": attribution,
            }
        )


@dataclass(frozen=True)
class Replacement:
    """An image that a later version has in the place of another, and what was done: cropped or replaced."""

    before: str  # public ids
    after: str
    action: str
    reason: str


@dataclass(frozen=True)
class VersionDiff:
    """What is different in a later version. Public ids of images, sorted; what was replaced is in no other list."""

    added: list[str]
    removed: list[str]
    replaced: list[Replacement]
    unchanged_count: int


def diff_versions(before: CollectionVersion, after: CollectionVersion) -> VersionDiff:
    """Compare two versions of a collection by their images; the curation logs between them say what was replaced."""
    gone = _ids_only_in(before, after)
    new = _ids_only_in(after, before)
    replaced = []
    for first, entries in _chains(before, after).items():
        last = str(entries[-1].replacement.public_id)  # type: ignore[union-attr]  # chains are of entries that have one
        if first in gone and last in new:
            reasons = "; ".join(dict.fromkeys(entry.reason for entry in entries))
            replaced.append(Replacement(first, last, entries[-1].action, reasons))
    return VersionDiff(
        added=sorted(new - {pair.after for pair in replaced}),
        removed=sorted(gone - {pair.before for pair in replaced}),
        replaced=sorted(replaced, key=lambda pair: pair.before),
        unchanged_count=CollectionImage.objects.filter(version=before).count() - len(gone),
    )


def _ids_only_in(version: CollectionVersion, other: CollectionVersion) -> set[str]:
    others = CollectionImage.objects.filter(version=other).values("image")
    members = CollectionImage.objects.filter(version=version).exclude(image__in=others)
    return {str(image_id) for image_id in members.values_list("image__public_id", flat=True)}


def _chains(before: CollectionVersion, after: CollectionVersion) -> dict[str, list[CurationLogEntry]]:
    """By the first image's id: the steps by which it was replaced, in the versions after ``before`` up to ``after``."""
    steps = (
        CurationLogEntry.objects.filter(
            version__collection=after.collection_id,
            version__gt=before.pk,
            version__lte=after.pk,
            action__in=[CurationAction.CROPPED, CurationAction.REPLACED],
            replacement__isnull=False,
        )
        .select_related("replacement")
        .order_by("version", "pk")
    )
    chains: dict[str, list[CurationLogEntry]] = {}
    first_of: dict[str, str] = {}  # by the last image of a chain
    for step in steps:
        image_id = str(step.image_public_id)
        first = first_of.pop(image_id, image_id)
        chains.setdefault(first, []).append(step)
        first_of[str(step.replacement.public_id)] = first  # type: ignore[union-attr]
    return chains
