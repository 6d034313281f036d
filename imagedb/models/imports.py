import uuid

from django.conf import settings
from django.core.validators import FileExtensionValidator
from django.db import models

from imagedb.models.images import Visibility
from scooter_site.common.storage import opaque_name, private_storage


class ImportStatus(models.TextChoices):
    WAITING = "waiting", "Waiting for a worker"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class ImportBatch(models.Model):
    """One import of images with a manifest: from the command line, or an uploaded ZIP run by a worker."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    archive = models.FileField(
        "ZIP with images and a manifest",
        storage=private_storage,
        upload_to=opaque_name("import"),
        max_length=200,
        blank=True,
        validators=[FileExtensionValidator(["zip"])],
        help_text="Images and one CSV file with the columns filename, kind, class_index or synset, source_filename, "
        "attack, target_model, predicted_class_index, confidence.",
    )
    source_name = models.CharField(max_length=255, blank=True, help_text="The manifest's or archive's own name.")
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.REGISTERED)
    licence = models.CharField(max_length=100, blank=True)
    attribution = models.CharField(max_length=300, blank=True)
    status = models.CharField(max_length=10, choices=ImportStatus, default=ImportStatus.WAITING, editable=False)
    error = models.TextField(blank=True, editable=False)
    row_count = models.PositiveIntegerField(default=0, editable=False)
    imported_count = models.PositiveIntegerField(default=0, editable=False)
    already_there_count = models.PositiveIntegerField(default=0, editable=False)
    failed_count = models.PositiveIntegerField(default=0, editable=False)
    notes = models.TextField(blank=True, editable=False, help_text="What was created or skipped on the way.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, editable=False)
    heartbeat_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = "import"

    def __str__(self) -> str:
        return f"Import {self.pk}: {self.source_name or 'upload'}"


class ImportRow(models.Model):
    """What became of one row of the manifest."""

    class Result(models.TextChoices):
        IMPORTED = "imported", "Imported"
        ALREADY_THERE = "already_there", "Already there"
        FAILED = "failed", "Failed"

    batch = models.ForeignKey(ImportBatch, on_delete=models.CASCADE, related_name="rows")
    row_number = models.PositiveIntegerField(help_text="As a spreadsheet counts: the header is row 1.")
    filename = models.CharField(max_length=255)
    result = models.CharField(max_length=15, choices=Result)
    message = models.TextField(blank=True)
    image = models.ForeignKey("imagedb.Image", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["row_number"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "row_number"], name="one_result_per_manifest_row"),
        ]

    def __str__(self) -> str:
        return f"row {self.row_number}: {self.get_result_display()}"
