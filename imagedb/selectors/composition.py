"""What a version of a collection consists of, for its page: counts that are kept for a while, and a sample of it."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Count, QuerySet

from imagedb.models import CollectionImage, CollectionVersion, Image
from imagedb.selectors.collections import VersionDiff, diff_versions, images_of_version
from imagedb.selectors.figures import COUNTED_AT_MOST, KEEP_SECONDS, kept
from imagedb.selectors.visibility import images_after_terms, visible_images

User = AbstractUser | AnonymousUser

# What is in a frozen version never changes; only names of attacks and target models may.
KEEP_FROZEN_SECONDS = 3600


@dataclass(frozen=True)
class Part:
    """The images of one attack and target model in a version; without either: its clean images."""

    attack: str
    attack_slug: str
    target_model: str
    target_model_slug: str
    count: int

    @property
    def is_clean(self) -> bool:
        return not self.attack


@dataclass(frozen=True)
class ClassCount:
    """How many images of a class are in a version."""

    index: int
    name: str
    count: int


@dataclass(frozen=True)
class Composition:
    """What a version consists of, whoever may see its images: its manifest says the same."""

    parts: list[Part]
    classes: list[ClassCount]

    @property
    def fewest_of_a_class(self) -> int:
        return min((each.count for each in self.classes), default=0)

    @property
    def most_of_a_class(self) -> int:
        return max((each.count for each in self.classes), default=0)


def composition(version: CollectionVersion) -> Composition:
    """Count a version's images by attack and target model, and by class. Two queries, kept for a while."""
    members = _members(version)
    seconds = KEEP_FROZEN_SECONDS if version.is_frozen else KEEP_SECONDS
    return kept("composition", members, lambda: _composition(members), seconds=seconds)


def changes_since(before: CollectionVersion, after: CollectionVersion) -> VersionDiff:
    """What is different in a later version; kept for a while."""
    both = CollectionImage.objects.filter(version__in=[before, after]).order_by()
    seconds = KEEP_FROZEN_SECONDS if before.is_frozen and after.is_frozen else KEEP_SECONDS
    return kept("changes", both, lambda: diff_versions(before, after), seconds=seconds)


def sample(version: CollectionVersion, user: User, most: int) -> list[Image]:
    """Up to ``most`` images of a version that the user may see, spread over it. Two queries; what they are is kept."""
    images = images_of_version(version, user).order_by("pk")

    def choose() -> list[int]:
        keys = list(images.values_list("pk", flat=True)[:COUNTED_AT_MOST])
        return [keys[len(keys) * step // most] for step in range(most)] if len(keys) > most else keys

    # Asked again, whatever was kept: the images may have become private since.
    chosen = visible_images(user).filter(pk__in=kept(f"sample-{most}", images, choose))
    return list(chosen.select_related("image_class", "attack", "target_model").order_by("pk"))


def images_of_version_after_terms(version: CollectionVersion, user: User) -> QuerySet[Image]:
    """The images of a version that the user would see besides, had it accepted the ImageNet terms."""
    return images_after_terms(user).filter(pk__in=_members(version).values("image"))


def _members(version: CollectionVersion) -> QuerySet[CollectionImage]:
    return CollectionImage.objects.filter(version=version).order_by()


def _composition(members: QuerySet[CollectionImage]) -> Composition:
    parts = members.values_list(
        "image__attack__name",
        "image__attack__slug",
        "image__target_model__name",
        "image__target_model__slug",
    ).annotate(count=Count("pk"))
    found = [
        Part(attack or "", attack_slug or "", model or "", model_slug or "", count)
        for attack, attack_slug, model, model_slug, count in parts
    ]
    classes = members.values_list("image__image_class__index", "image__image_class__name").annotate(count=Count("pk"))
    return Composition(
        parts=sorted(found, key=lambda part: (not part.is_clean, part.attack.casefold(), part.target_model.casefold())),
        classes=[ClassCount(*row) for row in sorted(classes)],
    )
