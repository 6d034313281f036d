import uuid

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import FileExtensionValidator
from django.db import models
from django.db.models import Q

from imagedb.models.images import Visibility
from scooter_site.common.storage import opaque_name, private_storage


class ImportStatus(models.TextChoices):
    WAITING = "waiting", "Waiting for a worker"
    PLANNING = "planning", "Reading the manifest"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class ImportSource(models.TextChoices):
    ARCHIVE = "archive", "ZIP archive"
    FOLDER = "folder", "Folder on the server"
    PREFIX = "prefix", "Prefix of the S3 bucket"


class ImportBatch(models.Model):
    """One import of images with a manifest, whoever asked for it: command line, admin or API."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    source = models.CharField(max_length=10, choices=ImportSource, default=ImportSource.ARCHIVE, editable=False)
    location = models.CharField(
        max_length=500, blank=True, editable=False, help_text="Path of the folder or ZIP on the server, or the prefix."
    )
    archive = models.FileField(
        "ZIP with images and a manifest",
        storage=private_storage,
        upload_to=opaque_name("import"),
        max_length=200,
        blank=True,
        validators=[FileExtensionValidator(["zip"])],
        help_text="Images and one CSV or JSONL file with the columns filename, kind, class_index or synset, "
        "source_filename, attack, target_model, predicted_class_index, confidence.",
    )
    manifest = models.FileField(
        storage=private_storage,
        upload_to=opaque_name("manifest"),
        max_length=200,
        blank=True,
        editable=False,
        help_text="A copy of the manifest, where it is not in the archive.",
    )
    source_name = models.CharField(max_length=255, blank=True, help_text="The manifest's or archive's own name.")
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.REGISTERED)
    group = models.ForeignKey(
        Group, on_delete=models.PROTECT, null=True, blank=True, related_name="+", help_text="Whom the images belong to."
    )
    licence = models.CharField(max_length=100, blank=True)
    attribution = models.CharField(max_length=300, blank=True)
    is_dry_run = models.BooleanField(
        "dry run", default=False, help_text="Check every row and decode every image, but import nothing."
    )
    is_demo = models.BooleanField(default=False, editable=False)
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
    cancel_requested_at = models.DateTimeField(null=True, editable=False)
    handout = models.PositiveIntegerField(
        default=0, editable=False, help_text="How often the work has been handed out to workers."
    )
    handout_begun = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text="The latest handing out that a worker has begun with; what was handed out before is stale.",
    )

    class Meta:
        ordering = ["-id"]
        verbose_name = "import"

    def __str__(self) -> str:
        return f"Import {self.pk}: {self.source_name or 'upload'}"


class ImportChunk(models.Model):
    """Rows of a manifest that one worker handles at a time, in one transaction.

    A modified image is in the chunk of its source if both are in the manifest, so that the source is decoded once.
    A worker holds a chunk by a lease; the chunk of a worker that was killed is taken by another.
    """

    batch = models.ForeignKey(ImportBatch, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    after = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text="Where one source has very many modified images: the chunk that holds it and must be done first.",
    )
    claimed_by = models.UUIDField(null=True)
    claimed_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0, help_text="How often a worker has taken it.")
    is_done = models.BooleanField(default=False)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["batch", "number"], name="import_chunk_once")]
        indexes = [models.Index(fields=["batch", "number"], name="import_chunk_open", condition=Q(is_done=False))]

    def __str__(self) -> str:
        return f"chunk {self.number} of import {self.batch_id}"


class ImportRow(models.Model):
    """One row of the manifest, and what became of it."""

    class Result(models.TextChoices):
        WAITING = "waiting", "Waiting"
        IMPORTED = "imported", "Imported"
        ALREADY_THERE = "already_there", "Already there"
        FAILED = "failed", "Failed"

    batch = models.ForeignKey(ImportBatch, on_delete=models.CASCADE, related_name="rows")
    chunk = models.ForeignKey(ImportChunk, on_delete=models.CASCADE, null=True, related_name="rows")
    row_number = models.PositiveIntegerField(help_text="As a spreadsheet counts: the header is row 1.")
    filename = models.CharField(max_length=255)
    values = models.JSONField(default=dict, help_text="The row as the manifest gives it, checked for form.")
    file_token = models.UUIDField(
        default=uuid.uuid4,
        help_text="Names the stored files: a worker that does the row again writes over them and leaves none behind.",
    )
    result = models.CharField(max_length=15, choices=Result, default=Result.WAITING)
    message = models.TextField(blank=True)
    image = models.ForeignKey("imagedb.Image", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["row_number"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "row_number"], name="one_result_per_manifest_row"),
        ]

    def __str__(self) -> str:
        return f"row {self.row_number}: {self.get_result_display()}"
