"""Uploads as their senders see them."""

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import QuerySet

from imagedb.models.uploads import Upload, UploadStatus
from imagedb.upload_parts import ArrivedPart, parts_of, recorded


def own_uploads(user: AbstractUser | AnonymousUser) -> QuerySet[Upload]:
    """What the account has sent itself; nobody else's, whoever asks."""
    return Upload.objects.filter(created_by_id=user.pk)


def open_uploads(user: AbstractUser | AnonymousUser) -> QuerySet[Upload]:
    """Those that still take parts, or that no import has taken yet."""
    return own_uploads(user).filter(status__in=[UploadStatus.RECEIVING, UploadStatus.COMPLETE])


def arrived_parts(upload: Upload) -> list[ArrivedPart]:
    """The parts that are there, by number. While an upload to a bucket is going on, the bucket is asked."""
    return parts_of(upload).arrived() if upload.status == UploadStatus.RECEIVING else recorded(upload)
