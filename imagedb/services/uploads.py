"""Large files on their way to us, in parts: straight to the bucket with S3, in chunks to disk without.

An upload is begun, its parts arrive in any order and as often as they like, and it is completed; then an import takes
it. One that nobody goes on with is abandoned after a day.
"""

import logging
from datetime import timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import transaction
from django.template.defaultfilters import filesizeformat
from django.utils import timezone

from imagedb.models.uploads import Upload, UploadPart, UploadStatus
from imagedb.upload_parts import (
    DiskParts,
    Source,
    UploadConflict,
    UploadRefused,
    check_all_arrived,
    part_size_for,
    parts_of,
    received,
    recorded,
    size_of_part,
)
from scooter_site.common.storage import LocalStorage, opaque_name

if TYPE_CHECKING:
    from scooter_site.common.object_storage import ObjectStorage

logger = logging.getLogger(__name__)

FOLDER = "upload"
ENDINGS = (".zip", ".csv", ".jsonl")
STALE_AFTER = timedelta(hours=24)
WHOLE = {UploadStatus.COMPLETE, UploadStatus.USED}


def begin_upload(user: AbstractUser, filename: str, size: int) -> Upload:
    """Announce a file of ``size`` bytes, sent in parts of the upload's ``part_size``.

    Raises UploadRefused naming ``filename`` or ``size``.
    """
    # Some browsers tell the folder too.
    name = PurePosixPath(filename.replace("\\", "/")).name
    longest = Upload._meta.get_field("filename").max_length or 0
    if PurePosixPath(name).suffix.lower() not in ENDINGS or "\x00" in name:
        raise UploadRefused("filename", f"Only files that end in {', '.join(ENDINGS)} can be uploaded.")
    if len(name) > longest:
        raise UploadRefused("filename", f"The name is longer than {longest} characters: rename the file.")
    if size < 1:
        raise UploadRefused("size", "The file is empty.")
    if size > settings.MAX_UPLOAD_BYTES:
        raise UploadRefused(
            "size",
            f"At most {filesizeformat(settings.MAX_UPLOAD_BYTES)} can be uploaded at once: split the images over "
            "several archives.",
        )
    upload = Upload(filename=name, size=size, created_by_id=user.pk)
    upload.file.name = opaque_name(FOLDER)(upload, name)
    parts = parts_of(upload)
    upload.part_size = part_size_for(size, parts.usual_part_size)
    parts.begin()
    try:
        upload.save()
    except BaseException:
        parts.discard()
        raise
    return upload


def part_url(upload: Upload, number: int) -> str:
    """A short-lived link to PUT part ``number`` straight to the bucket.

    Raises UploadRefused if there is no such part, UploadConflict if the upload takes no parts or goes to disk.
    """
    _check_receiving(upload)
    parts = parts_of(upload)
    if isinstance(parts, DiskParts):
        raise UploadConflict("The parts of this upload come through the site: PUT them to .../parts/NUMBER/.")
    return parts.link(number)


def store_part(upload: Upload, number: int, content: Source, sha256: str = "") -> UploadPart:
    """Keep one part of an upload to disk; one that is sent again replaces the one before.

    ``content`` is read to its end piece by piece, before anything is locked. ``sha256`` (hexadecimal) is checked if
    given. Raises UploadRefused naming ``number``, ``body`` or ``sha256``, UploadConflict, or StorageFull.
    """
    parts = parts_of(upload)
    if not isinstance(parts, DiskParts):
        raise UploadConflict("The parts of this upload go straight to the bucket: POST to .../parts/ for links.")
    _check_receiving(upload)
    size = size_of_part(upload, number)
    with received(content, size, parts.folder) as (file, digest):
        if sha256 and sha256 != digest:
            raise UploadRefused("sha256", "The digest is not that of the bytes that came. Send this part again.")
        while True:
            with transaction.atomic():
                _check_receiving(_locked(upload))
                known = upload.parts.filter(number=number).first()
                if known is None:
                    parts.write(number, file)
                    return upload.parts.create(number=number, size=size, etag=digest)
                if known.etag == digest:
                    return known
                # Forgotten in a transaction of its own: if writing is cut off, no row may vouch for a mixture.
                known.delete()


def complete_upload(upload: Upload) -> Upload:
    """Put the parts together, once all are there. Completing twice is harmless.

    Raises UploadConflict, naming the parts that are missing or of the wrong size.
    """
    upload.refresh_from_db()
    if upload.status in WHOLE:
        return upload
    _check_receiving(upload)
    parts = parts_of(upload)
    # A bucket may take minutes for this, so it is done before the row is locked; that another request does the same
    # at the same time is harmless.
    arrived = parts.finish()
    with transaction.atomic():
        current = _locked(upload)
        if current.status == UploadStatus.RECEIVING:
            if parts.is_direct:
                current.parts.bulk_create(
                    UploadPart(upload=current, number=part.number, size=part.size, etag=part.etag) for part in arrived
                )
            else:  # one may have been sent again since, and be on its way
                check_all_arrived(current, recorded(current))
            current.status, current.completed_at = UploadStatus.COMPLETE, timezone.now()
            current.save(update_fields=["status", "completed_at"])
    if current.status == UploadStatus.ABANDONED:
        parts.discard()
        _check_receiving(current)
    return current


def take_upload(user: AbstractUser, public_id: UUID) -> Upload:
    """Mark a complete upload of ``user`` as handed to an import, which keeps its file from then on.

    Call it in the transaction that makes the import. Raises Upload.DoesNotExist if it is not the user's own, and
    UploadConflict if it is not complete, or was taken before.
    """
    with transaction.atomic():
        upload = Upload.objects.select_for_update().get(public_id=public_id, created_by_id=user.pk)
        if upload.status == UploadStatus.USED:
            raise UploadConflict(f"{upload.filename} belongs to an import already. Upload it again for another.")
        if upload.status != UploadStatus.COMPLETE:
            raise UploadConflict(f"{upload.filename} has not arrived whole. Finish its upload first.")
        upload.status = UploadStatus.USED
        upload.save(update_fields=["status"])
    return upload


def abandon_upload(upload: Upload) -> None:
    """Delete what has arrived of an upload. Doing it twice is harmless; raises UploadConflict if an import has it."""
    with transaction.atomic():
        current = _locked(upload)
        if current.status == UploadStatus.ABANDONED:
            return
        if current.status == UploadStatus.USED:
            raise UploadConflict("An import has this file: it cannot be abandoned any more.")
        parts = parts_of(upload)
        current.status, current.file = UploadStatus.ABANDONED, ""
        current.save(update_fields=["status", "file"])
        current.parts.all().delete()
        transaction.on_commit(parts.discard)


def abandon_stale_uploads() -> int:
    """Abandon uploads of which no part has come, or that no import has taken, for a day; gives their number."""
    before = timezone.now() - STALE_AFTER
    stale = [
        *Upload.objects.filter(status=UploadStatus.COMPLETE, completed_at__lt=before),
        *(
            upload
            for upload in Upload.objects.filter(status=UploadStatus.RECEIVING, created_at__lt=before)
            if (parts_of(upload).last_arrival() or upload.created_at) < before
        ),
    ]
    for upload in stale:
        try:
            abandon_upload(upload)
        except UploadConflict as reason:  # taken by an import since
            logger.info("Upload %s is not abandoned: %s", upload.public_id, reason)
    storage = Upload().file.storage
    if not isinstance(storage, LocalStorage):
        from imagedb.bucket_parts import abort_forgotten

        known = Upload.objects.filter(status=UploadStatus.RECEIVING).values_list("s3_upload_id", flat=True)
        if count := abort_forgotten(cast("ObjectStorage", storage), FOLDER, set(known), before):
            logger.warning("%s forgotten multipart uploads in the bucket were aborted", count)
    return len(stale)


def _locked(upload: Upload) -> Upload:
    return Upload.objects.select_for_update().get(pk=upload.pk)


def _check_receiving(upload: Upload) -> None:
    if upload.status != UploadStatus.RECEIVING:
        state = "abandoned" if upload.status == UploadStatus.ABANDONED else "complete already"
        raise UploadConflict(f"This upload is {state}: it takes no parts any more. Begin a new one to send a file.")
