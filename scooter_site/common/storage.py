"""Three places for files, by who may see them; local files and S3 behind the same names.

- ``public``: for files that anyone may fetch without a check; nothing yet: who may see an image can change;
- ``protected``: served after a permission check, by the app or a short-lived link, e.g. all images;
- ``private``: never leaves the server, e.g. uploaded archives.

Object names are opaque (``opaque_name``), and the content type is ours, never the uploader's.
"""

import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from botocore.config import Config
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import transaction
from django.db.models.fields.files import FieldFile
from django.utils.deconstruct import deconstructible
from storages.backends.s3 import S3Storage

LINK_SECONDS = 300

# What files of ours may be, by ending. Nothing here can run as a script in a browser.
CONTENT_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".zip": "application/zip",
    ".csv": "text/csv; charset=utf-8",
}


def content_type(name: str) -> str:
    """The content type of a stored file, from the ending that ``opaque_name`` gave it."""
    return CONTENT_TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")


class LocalStorage(FileSystemStorage):
    """Files below MEDIA_ROOT, with no address of their own: a view serves them after its check."""

    def __init__(self, location: str | Path) -> None:
        super().__init__(location=location, base_url=None, file_permissions_mode=0o640)


class ObjectStorage(S3Storage):
    """Objects below a prefix of one S3-compatible bucket; every object is private to the bucket's owner."""

    def __init__(self, level: str, addressing_style: str, public_endpoint: str | None = None, **options: Any) -> None:
        super().__init__(
            location=level,
            default_acl=None,
            file_overwrite=False,
            querystring_auth=True,
            querystring_expire=LINK_SECONDS,
            # boto3 >= 1.36 adds checksum trailers by default, which some S3-compatible servers store as content.
            client_config=Config(
                s3={"addressing_style": addressing_style},
                signature_version="s3v4",
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
            **options,
        )
        self.public_endpoint = public_endpoint

    def get_object_parameters(self, name: str) -> dict[str, str]:
        """Say the content type from our own file ending: a browser-declared type is never believed."""
        return {**super().get_object_parameters(name), "ContentType": content_type(name)}

    def signed_link(self, name: str, content_disposition: str) -> str:
        """A link to one object that works for LINK_SECONDS, at the address that browsers reach the service by."""
        return self._signing_client.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self.bucket_name,
                "Key": self._normalize_name(name),
                "ResponseContentType": content_type(name),
                "ResponseContentDisposition": content_disposition,
            },
            ExpiresIn=LINK_SECONDS,
        )

    @cached_property
    def _signing_client(self) -> Any:
        # The host is part of what is signed: a link for another host needs a client for that host.
        return self._create_session().client(
            "s3",
            region_name=self.region_name,
            endpoint_url=self.public_endpoint or self.endpoint_url,
            config=self.client_config,
        )


@deconstructible
class opaque_name:
    """``upload_to`` that keeps nothing of the uploaded name but an ending we know to be safe."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, instance: object, filename: str) -> str:
        ending = PurePosixPath(filename).suffix.lower()
        token = uuid.uuid4().hex
        return f"{self.folder}/{token[:2]}/{token}{ending if ending in CONTENT_TYPES else '.bin'}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, opaque_name) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)


def delete_files_after_commit(files: Iterable[FieldFile]) -> None:
    """Delete stored files once the current transaction, which deletes their rows, has committed.

    Only when the rows are surely gone: a row without its file is worse than a file without its row.
    """
    stored = [(file.storage, str(file.name)) for file in files]

    def delete() -> None:
        for storage, name in stored:
            storage.delete(name)

    transaction.on_commit(delete)


def _named(level: str) -> Callable[[], Storage]:
    def storage() -> Storage:
        return storages[level]

    storage.__name__ = storage.__qualname__ = f"{level}_storage"
    return storage


# Callables, so that migrations do not depend on the settings.
public_storage = _named("public")
protected_storage = _named("protected")
private_storage = _named("private")
