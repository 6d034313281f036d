from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from imagedb.models.attacks import TargetModel
from imagedb.models.images import Image, Visibility
from scooter_site.common.storage import opaque_name, protected_storage


class Collection(models.Model):
    """A named set of images that others can cite, such as "ImageNet S-R50-N"; what is in it is a matter of versions."""

    name = models.CharField(max_length=150, unique=True)
    slug = models.SlugField(max_length=150, unique=True)
    description = models.TextField(blank=True)
    target_model = models.ForeignKey(
        TargetModel,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="collections",
        help_text="The model that must classify the clean images correctly.",
    )
    min_confidence = models.FloatField(
        "confidence threshold",
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="The target model must classify clean images correctly with at least this confidence, 0 to 1.",
    )
    visibility = models.CharField(
        max_length=10,
        choices=Visibility,
        default=Visibility.PUBLIC,
        help_text="Who may see that the collection exists. Who may see an image is the image's own matter.",
    )
    group = models.ForeignKey(Group, on_delete=models.PROTECT, null=True, blank=True, related_name="collections")
    is_demo = models.BooleanField("demonstration material", default=False, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="collection_threshold_has_a_target_model",
                condition=Q(min_confidence__isnull=True)
                | Q(min_confidence__gte=0, min_confidence__lte=1, target_model__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CollectionVersion(models.Model):
    """One state of a collection. A draft can be changed; a frozen one never, and its manifest has a digest."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="versions")
    version = models.CharField(max_length=20, help_text="For example 1.0.")
    licence = models.CharField(max_length=200, blank=True)
    citation = models.TextField(blank=True, help_text="How to cite it: BibTeX or plain text.")
    doi = models.CharField("DOI", max_length=100, blank=True, help_text="For example 10.5281/zenodo.1234567.")
    changelog = models.TextField(blank=True, help_text="What is different from the version before.")
    images = models.ManyToManyField(Image, through="CollectionImage", related_name="collection_versions")
    frozen_at = models.DateTimeField(null=True, editable=False)
    frozen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, editable=False, related_name="+"
    )
    image_count = models.PositiveIntegerField(default=0, editable=False, help_text="When it was frozen.")
    manifest = models.FileField(
        storage=protected_storage, upload_to=opaque_name("manifest"), max_length=200, blank=True, editable=False
    )
    manifest_sha256 = models.CharField("SHA-256 of the manifest", max_length=64, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["collection", "id"]
        constraints = [
            models.UniqueConstraint(fields=["collection", "version"], name="collection_version_once"),
            models.CheckConstraint(
                name="frozen_version_has_a_manifest",
                condition=Q(frozen_at__isnull=True) | (~Q(manifest_sha256="") & ~Q(manifest="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.collection} {self.version}"

    @property
    def is_frozen(self) -> bool:
        return self.frozen_at is not None


class CollectionImage(models.Model):
    """That an image is in a version of a collection."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="memberships")
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="collection_memberships")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["version", "image"], name="image_once_per_collection_version"),
        ]

    def __str__(self) -> str:
        return f"{self.image} in {self.version}"


class CurationAction(models.TextChoices):
    ADDED = "added", "Added"
    CROPPED = "cropped", "Cropped"
    REPLACED = "replaced", "Replaced"
    REMOVED = "removed", "Removed"


class CurationLogEntry(models.Model):
    """What a person did to a version of a collection, and why. Never changed afterwards."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="curation_log")
    action = models.CharField(max_length=10, choices=CurationAction)
    image_public_id = models.UUIDField(
        null=True, help_text="The image it is about; empty if many were added at once. It may be gone by now."
    )
    image_filename = models.CharField(max_length=255, blank=True)
    replacement = models.ForeignKey(
        Image, on_delete=models.PROTECT, null=True, related_name="+", help_text="What it was cropped to or replaced by."
    )
    count = models.PositiveIntegerField(default=1, help_text="How many images.")
    reason = models.TextField()
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        verbose_name = "curation log entry"
        verbose_name_plural = "curation log"

    def __str__(self) -> str:
        return f"{self.get_action_display()}: {self.image_filename or self.count}"
