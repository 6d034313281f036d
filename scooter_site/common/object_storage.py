"""Files in one S3-compatible bucket. Apart from storage.py, so that boto3 is imported only where there is a bucket.

Only the settings name this module, and only when S3_URL is set. Tested with SeaweedFS; docs/storage.md has notes for
MinIO and Amazon.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from operator import itemgetter
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as StorageUnreachable
from botocore.response import StreamingBody
from storages.backends.s3 import S3Storage

from scooter_site.common.storage import LINK_SECONDS, StoredFile, content_type

# Larger files are spooled to the disk when they are opened: an archive may be larger than the memory.
SPOOL_BYTES = 8 * 1024 * 1024
MD5 = re.compile(r"[0-9a-f]{32}")


class ObjectStorage(S3Storage):
    """Objects below a prefix of one bucket, one prefix for each level (``public``, ``protected``, ``private``)."""

    ERRORS: tuple[type[Exception], ...] = (BotoCoreError, ClientError)  # all that a request may end with
    TRANSIENT_ERRORS: tuple[type[Exception], ...] = (StorageUnreachable, HTTPClientError)

    def __init__(
        self,
        level: str,
        addressing_style: str,
        signature_version: str,
        checksum_mode: str,
        public_endpoint: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            location=level,
            default_acl=None,  # who may see an object is a matter of the bucket's policy, never of the object
            file_overwrite=True,  # as LocalStorage, and for the same reason
            querystring_auth=True,
            querystring_expire=LINK_SECONDS,
            max_memory_size=SPOOL_BYTES,
            # S3_URL alone says who we are: a session of the shell's user would spoil every signature.
            security_token=None,
            session_profile=None,
            client_config=Config(
                s3={"addressing_style": addressing_style},
                signature_version=signature_version,
                request_checksum_calculation=checksum_mode,
                response_checksum_validation=checksum_mode,
                # A web request waits for at most these; a task is tried again later.
                connect_timeout=5,
                read_timeout=30,
                retries={"mode": "standard", "total_max_attempts": 3},
            ),
            **options,
        )
        self.level = level
        self.public_endpoint = public_endpoint

    def get_object_parameters(self, name: str) -> dict[str, str]:
        """Say the content type from our own file ending: a browser-declared type is never believed."""
        return {**super().get_object_parameters(name), "ContentType": content_type(name)}

    def object_key(self, name: str) -> str:
        """The whole key of a stored file in the bucket."""
        return self._normalize_name(name)

    def url(self, name: str, parameters: Any = None, expire: int | None = None, http_method: str | None = None) -> str:
        """Where a browser finds the file. Raises ValueError on the private level, whose files have no address."""
        link = self.download_link(name, "inline")
        if link is None:
            raise ValueError("Private files have no address.")
        return link

    def download_link(self, name: str, content_disposition: str) -> str | None:
        """Where a browser may fetch the file: always if it is public, for LINK_SECONDS if protected, else None."""
        if self.level == "private":
            return None
        if self.level == "public":
            return self._unsigned_link(name)
        return self.signed_link(name, content_disposition)

    def signed_link(self, name: str, content_disposition: str) -> str:
        """A link to one object that works for LINK_SECONDS, at the address that browsers reach the service by."""
        return self.signing_client.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self.bucket_name,
                "Key": self.object_key(name),
                "ResponseContentType": content_type(name),
                "ResponseContentDisposition": content_disposition,
            },
            ExpiresIn=LINK_SECONDS,
        )

    def _unsigned_link(self, name: str) -> str:
        # A signed link is the plain address and a signature behind the question mark.
        return self.signed_link(name, "inline").partition("?")[0]

    @cached_property
    def origin(self) -> str:
        """Scheme, host and port that browsers reach the bucket at, as content security policies name them."""
        address = urlsplit(self._unsigned_link("x"))
        return f"{address.scheme}://{address.netloc}"

    @cached_property
    def signing_client(self) -> Any:
        """A client for signing links only, at the address that browsers reach the service by."""
        # The host is part of what is signed: a link for another host needs a client for that host.
        return self._create_session().client(
            "s3",
            region_name=self.region_name,
            endpoint_url=self.public_endpoint or self.endpoint_url,
            config=self.client_config,
        )

    @property
    def client(self) -> Any:
        """This thread's client of the service."""
        return self.connection.meta.client

    def stream(self, name: str, start: int = 0, stop: int | None = None) -> tuple[StreamingBody, int]:
        """The bytes from ``start`` up to ``stop``, as they arrive, and how many they are.

        One request and no copy, where ``open`` asks three times and keeps the whole file. Raises FileNotFoundError.
        """
        wanted = {} if stop is None else {"Range": f"bytes={start}-{stop - 1}"}
        try:
            answer = self.client.get_object(Bucket=self.bucket_name, Key=self.object_key(name), **wanted)
        except ClientError as error:
            raise _known_error(error, name) from error
        return answer["Body"], int(answer["ContentLength"])

    def describe(self, name: str) -> StoredFile:
        """What the service says of one file. Raises FileNotFoundError."""
        try:
            answer = self.client.head_object(Bucket=self.bucket_name, Key=self.object_key(name))
        except ClientError as error:
            raise _known_error(error, name) from error
        return StoredFile(
            name, int(answer["ContentLength"]), answer["LastModified"], _md5(answer["ETag"]), answer["ContentType"]
        )

    def listing(self) -> Iterator[StoredFile]:
        """Every file of the level, by name in the order of its UTF-8 bytes, a thousand per request.

        SeaweedFS orders by folders: ``a/1`` before ``a-b/1``, though "/" comes after "-". So the outermost folders are
        asked for one by one; below them our own names have nothing but letters and digits.
        """
        for entry in sorted(self._below(f"{self.location}/", Delimiter="/"), key=itemgetter("Key")):
            if entry["Key"].endswith("/"):
                yield from map(self._listed, self._below(entry["Key"]))
            else:
                yield self._listed(entry)

    def _below(self, prefix: str, **options: str) -> Iterator[dict[str, Any]]:
        """Objects and, with a delimiter, folders; without the empty objects by which consoles mark folders."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket_name, Prefix=prefix, **options)
        for page in pages:
            yield from (entry for entry in page.get("Contents", ()) if not entry["Key"].endswith("/"))
            yield from ({"Key": entry["Prefix"]} for entry in page.get("CommonPrefixes", ()))

    def _listed(self, entry: dict[str, Any]) -> StoredFile:
        name = entry["Key"].removeprefix(f"{self.location}/")
        return StoredFile(name, int(entry["Size"]), entry["LastModified"], _md5(entry["ETag"]))

    def set_content_type(self, name: str) -> None:
        """Replace the stored content type by ours. The bytes stay where they are."""
        key = self.object_key(name)
        self.client.copy(
            {"Bucket": self.bucket_name, "Key": key},
            self.bucket_name,
            key,
            ExtraArgs={"MetadataDirective": "REPLACE", "ContentType": content_type(name)},
        )

    def whereabouts(self) -> str:
        """Where the files are, for people; without the key and its secret."""
        return f"the bucket {self.bucket_name} at {self.endpoint_url or 'Amazon'}"


def _md5(etag: str) -> str | None:
    """The MD5 of a file, where its ETag looks like one: that of a file sent in parts does not.

    With encryption by a customer's key it looks like one and is none, so that a difference proves nothing.
    """
    bare = etag.strip('"')
    return bare if MD5.fullmatch(bare) else None


def _known_error(error: ClientError, name: str) -> Exception:
    missing = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404
    return FileNotFoundError(f"There is no file {name}.") if missing else error
