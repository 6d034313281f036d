import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from imagedb.models.attacks import Attack, TargetModel
from imagedb.models.classes import ImageClass
from scooter_site.common.storage import opaque_name, protected_storage


class ImageKind(models.TextChoices):
    CLEAN = "clean", "Clean"
    MODIFIED = "modified", "Modified"


class Visibility(models.TextChoices):
    PUBLIC = "public", "Public: anyone"
    REGISTERED = "registered", "Registered: any account of this site"
    PRIVATE = "private", "Private: its uploader and staff who may view images"


class Image(models.Model):
    """One image of the catalogue: the original bytes, untouched, and what is shown of it.

    The rendition is what participants see: upright, sRGB, without metadata, and PNG for every kind, so that
    nothing about the file tells clean from modified.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=10, choices=ImageKind)
    image_class = models.ForeignKey(ImageClass, on_delete=models.PROTECT, related_name="images")
    source = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="modified_versions",
        help_text="The clean image that a modified image was made from.",
    )
    attack = models.ForeignKey(Attack, on_delete=models.PROTECT, null=True, blank=True, related_name="images")
    target_model = models.ForeignKey(
        TargetModel,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="images",
        help_text="The model that a modified image was made against.",
    )

    original = models.FileField(storage=protected_storage, upload_to=opaque_name("original"), max_length=200)
    original_filename = models.CharField(max_length=255, help_text="As named in the manifest it came with.")
    original_sha256 = models.CharField("SHA-256", max_length=64)
    original_bytes = models.PositiveBigIntegerField("size in bytes")
    original_format = models.CharField("format", max_length=10, help_text="As decoded, not as named.")
    original_mode = models.CharField("colour mode", max_length=20)
    rendition = models.FileField(storage=protected_storage, upload_to=opaque_name("rendition"), max_length=200)
    rendition_sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField(help_text="Of the rendition, in pixels.")
    height = models.PositiveIntegerField(help_text="Of the rendition, in pixels.")
    thumbnail = models.FileField(storage=protected_storage, upload_to=opaque_name("thumbnail"), max_length=200)

    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.REGISTERED)
    licence = models.CharField(max_length=100, blank=True)
    attribution = models.CharField(max_length=300, blank=True, help_text="Author and origin, as the licence asks.")
    is_demo = models.BooleanField("demonstration material", default=False)
    import_batch = models.ForeignKey(
        "imagedb.ImportBatch", on_delete=models.PROTECT, null=True, blank=True, related_name="images"
    )
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["attack", "target_model", "kind", "id"], name="image_by_pair"),
            models.Index(fields=["image_class", "kind", "id"], name="image_by_class"),
            models.Index(fields=["original_sha256"], name="image_by_digest"),
        ]
        constraints = [
            models.CheckConstraint(
                name="clean_image_has_no_source_attack_or_target_model",
                condition=~Q(kind=ImageKind.CLEAN)
                | Q(source__isnull=True, attack__isnull=True, target_model__isnull=True),
            ),
            models.CheckConstraint(
                name="modified_image_has_source_and_attack",
                condition=~Q(kind=ImageKind.MODIFIED) | Q(source__isnull=False, attack__isnull=False),
            ),
            models.CheckConstraint(
                name="image_is_not_its_own_source", condition=Q(source__isnull=True) | ~Q(source=F("id"))
            ),
            models.CheckConstraint(name="image_kind_is_known", condition=Q(kind__in=ImageKind.values)),
            models.UniqueConstraint(
                name="clean_image_once", fields=["original_sha256"], condition=Q(kind=ImageKind.CLEAN)
            ),
            models.UniqueConstraint(
                name="modified_image_once",
                fields=["original_sha256", "attack", "target_model"],
                condition=Q(kind=ImageKind.MODIFIED, target_model__isnull=False),
            ),
            models.UniqueConstraint(
                name="modified_image_without_target_model_once",
                fields=["original_sha256", "attack"],
                condition=Q(kind=ImageKind.MODIFIED, target_model__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.original_filename}"


class Prediction(models.Model):
    """What a target model says about an image. A modified image without one is not verified against its victim."""

    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="predictions")
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="predictions")
    predicted_class = models.ForeignKey(ImageClass, on_delete=models.PROTECT, related_name="+")
    confidence = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(1)], help_text="0 to 1."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["image", "target_model"], name="one_prediction_per_image_and_model"),
            models.CheckConstraint(
                name="confidence_between_0_and_1",
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target_model}: {self.predicted_class}"
