import uuid

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from imagedb.models.attacks import Attack, TargetModel
from imagedb.models.classes import ImageClass
from scooter_site.common.storage import opaque_name, protected_storage


class ImageKind(models.TextChoices):
    CLEAN = "clean", "Clean"
    MODIFIED = "modified", "Modified"


class Visibility(models.TextChoices):
    PUBLIC = "public", "Public: anyone"
    REGISTERED = "registered", "Registered: accounts that have accepted the ImageNet terms"
    PRIVATE = "private", "Private: its group and its uploader"


class Comparison(models.TextChoices):
    """How a modified image was held against its source to measure the distances between them."""

    SAME_SIZE = "same_size", "Pixel by pixel"
    RESAMPLED = "resampled", "The source was resampled to the modified image's size first"
    NOT_COMPARABLE = "not_comparable", "Not measured: the proportions differ"


class Image(models.Model):
    """One image of the catalogue: the original bytes, untouched, and what is shown of it.

    The rendition is what participants see: upright, sRGB, without metadata, and PNG for every kind, so that
    nothing about the file tells clean from modified.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=10, choices=ImageKind)
    # Indexes of more columns, below, begin with these three keys, and serve them too.
    image_class = models.ForeignKey(ImageClass, on_delete=models.PROTECT, related_name="images", db_index=False)
    source = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="modified_versions",
        help_text="The clean image that a modified image was made from.",
    )
    attack = models.ForeignKey(
        Attack, on_delete=models.PROTECT, null=True, blank=True, related_name="images", db_index=False
    )
    target_model = models.ForeignKey(
        TargetModel,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="images",
        db_index=False,
        help_text="The model that a modified image was made against.",
    )

    original = models.FileField(storage=protected_storage, upload_to=opaque_name("original"), max_length=200)
    original_filename = models.CharField(max_length=255, help_text="As named in the manifest it came with.")
    original_sha256 = models.CharField("SHA-256", max_length=64)
    original_bytes = models.PositiveBigIntegerField("size in bytes")
    original_format = models.CharField("format", max_length=10, help_text="As decoded, not as named.")
    original_mode = models.CharField("colour mode", max_length=20)
    original_profile = models.CharField(
        "colour profile", max_length=100, blank=True, help_text="Name of the embedded ICC profile; empty without one."
    )
    original_crc32 = models.PositiveBigIntegerField(
        editable=False, help_text="A ZIP says it before the file, so that it can be streamed without reading ahead."
    )
    rendition = models.FileField(storage=protected_storage, upload_to=opaque_name("rendition"), max_length=200)
    rendition_sha256 = models.CharField(max_length=64)
    rendition_bytes = models.PositiveBigIntegerField(editable=False)
    rendition_crc32 = models.PositiveBigIntegerField(editable=False)
    width = models.PositiveIntegerField(help_text="Of the rendition, in pixels.")
    height = models.PositiveIntegerField(help_text="Of the rendition, in pixels.")
    thumbnail = models.FileField(storage=protected_storage, upload_to=opaque_name("thumbnail"), max_length=200)

    comparison = models.CharField(max_length=20, choices=Comparison, blank=True, editable=False)
    linf = models.PositiveSmallIntegerField(
        "L-infinity distance", null=True, editable=False, help_text="Largest change of a channel, of 255 levels."
    )
    l2 = models.FloatField(
        "L2 distance", null=True, editable=False, help_text="Over all pixels and channels, with values from 0 to 1."
    )
    changed_share = models.FloatField(
        "share of changed pixels", null=True, editable=False, help_text="0 to 1; a pixel counts if any channel differs."
    )
    ssim = models.FloatField("SSIM", null=True, editable=False, help_text="Mean structural similarity; 1 is identical.")
    ciede2000 = models.FloatField(
        "mean CIEDE2000", null=True, editable=False, help_text="Mean colour difference; about 1 is just noticeable."
    )

    verified = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether a target model's answer is known; for a modified image that of its own target model. The "
        "database keeps it true (imagedb/derived_columns.py).",
    )
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.REGISTERED)
    group = models.ForeignKey(
        Group,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="images",
        help_text="The group of accounts the image belongs to. Each group has its own copy of what it imports.",
    )
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
            # Lists are in the order of ids: for each condition that many images meet, an index in that order. What few
            # images meet is better found by itself and sorted: the ends of ranges.
            models.Index(fields=["attack", "id"], name="image_of_attack"),
            models.Index(fields=["target_model", "id"], name="image_of_target_model"),
            models.Index(fields=["kind", "id"], name="image_of_kind"),
            models.Index(fields=["visibility", "id"], name="image_of_visibility"),
            models.Index(fields=["visibility", "kind", "id"], name="image_of_visibility_and_kind"),
            models.Index(fields=["comparison", "id"], name="image_of_comparison", condition=~Q(comparison="")),
            models.Index(fields=["id"], name="image_of_demo", condition=Q(is_demo=True)),
            models.Index(fields=["kind", "id"], name="image_not_verified", condition=Q(verified=False)),
            models.Index(fields=["id"], name="image_of_any_kind_not_verified", condition=Q(verified=False)),
            *(
                models.Index(
                    fields=[distance], name=f"image_by_{distance}", condition=Q(**{f"{distance}__isnull": False})
                )
                for distance in ("linf", "l2", "changed_share", "ssim", "ciede2000")
            ),
            models.Index(fields=["original_filename"], name="image_by_filename"),
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
            models.CheckConstraint(
                name="only_modified_images_have_distances",
                condition=Q(kind=ImageKind.MODIFIED)
                | Q(
                    comparison="",
                    linf__isnull=True,
                    l2__isnull=True,
                    changed_share__isnull=True,
                    ssim__isnull=True,
                    ciede2000__isnull=True,
                ),
            ),
            # Null is a value here: one image for no target model, one for no group.
            models.UniqueConstraint(
                F("original_sha256"),
                F("kind"),
                Coalesce(F("attack"), 0),
                Coalesce(F("target_model"), 0),
                Coalesce(F("group"), 0),
                name="image_once_per_group",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.original_filename}"


class Prediction(models.Model):
    """What a target model says about an image. A modified image without one is not verified against its victim."""

    image = models.ForeignKey(  # its index is that of the constraint below
        Image, on_delete=models.CASCADE, related_name="predictions", db_index=False
    )
    target_model = models.ForeignKey(TargetModel, on_delete=models.PROTECT, related_name="predictions")
    predicted_class = models.ForeignKey(ImageClass, on_delete=models.PROTECT, related_name="+")
    confidence = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(1)], help_text="0 to 1."
    )

    class Meta:
        indexes = [models.Index(fields=["confidence"], name="prediction_by_confidence")]
        constraints = [
            models.UniqueConstraint(fields=["image", "target_model"], name="one_prediction_per_image_and_model"),
            models.CheckConstraint(
                name="confidence_between_0_and_1",
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target_model}: {self.predicted_class}"
