import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from scooter_site.common.storage import private_storage
from scooter_site.common.stored_files import FileFacts


class UploadStatus(models.TextChoices):
    RECEIVING = "receiving", "Receiving parts"
    COMPLETE = "complete", "Complete"
    USED = "used", "Handed to an import"
    ABANDONED = "abandoned", "Abandoned"


class Upload(models.Model):
    """A large file on its way to us, in parts: straight to the bucket with S3, in chunks to disk without."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    filename = models.CharField(max_length=255, help_text="As its sender names it; never the name it is stored under.")
    size = models.PositiveBigIntegerField(help_text="In bytes, as announced.")
    part_size = models.PositiveBigIntegerField(help_text="In bytes; the last part may be smaller.")
    status = models.CharField(max_length=10, choices=UploadStatus, default=UploadStatus.RECEIVING)
    file = models.FileField(storage=private_storage, max_length=200, help_text="Named when the upload begins.")
    s3_upload_id = models.CharField(max_length=300, blank=True, help_text="Of the multipart upload; empty on disk.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="uploads")
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True)

    stored_files = {"file": FileFacts(size="size", whole=Q(status__in=[UploadStatus.COMPLETE, UploadStatus.USED]))}

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="upload_has_content", condition=Q(size__gt=0, part_size__gt=0)),
            models.CheckConstraint(name="upload_status_is_known", condition=Q(status__in=UploadStatus.values)),
        ]

    def __str__(self) -> str:
        return self.filename

    @property
    def part_count(self) -> int:
        return -(-self.size // self.part_size)


class UploadPart(models.Model):
    """A part that has arrived."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField(help_text="From 1.")
    size = models.PositiveBigIntegerField()
    etag = models.CharField("ETag", max_length=200, blank=True, help_text="As S3 gave it; on disk the part's SHA-256.")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["upload", "number"], name="upload_part_once"),
            models.CheckConstraint(name="upload_part_number_from_1", condition=Q(number__gte=1)),
        ]

    def __str__(self) -> str:
        return f"part {self.number}"
