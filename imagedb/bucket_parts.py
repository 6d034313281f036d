"""Parts of uploads that go straight to an S3-compatible bucket. Named only where one is in use (upload_parts.py)."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from imagedb.models.uploads import Upload
from imagedb.upload_parts import MEBIBYTE, ArrivedPart, UploadConflict, check_all_arrived, size_of_part
from scooter_site.common.object_storage import ObjectStorage
from scooter_site.common.storage import LINK_SECONDS


class BucketParts:
    """A multipart upload of S3: browsers send the parts there themselves, by links that we sign.

    What has arrived is asked of the bucket, so that nobody has to tell us and nobody can tell us wrong.
    """

    is_direct = True
    usual_part_size = 16 * MEBIBYTE

    def __init__(self, upload: Upload, storage: ObjectStorage) -> None:
        self.upload = upload
        self.storage = storage
        self._client = storage.client
        self._object = {"Bucket": storage.bucket_name, "Key": storage.object_key(str(upload.file.name))}

    @property
    def _multipart(self) -> dict[str, Any]:
        return {**self._object, "UploadId": self.upload.s3_upload_id}

    def begin(self) -> None:
        """Begin the multipart upload and keep its id in ``upload``."""
        parameters = self.storage.get_object_parameters(str(self.upload.file.name))
        self.upload.s3_upload_id = self._client.create_multipart_upload(**self._object, **parameters)["UploadId"]

    def link(self, number: int) -> str:
        """A link to PUT one part to within LINK_SECONDS; its length is signed too, so that no other is accepted."""
        return self.storage.signing_client.generate_presigned_url(
            "upload_part",
            Params={**self._multipart, "PartNumber": number, "ContentLength": size_of_part(self.upload, number)},
            ExpiresIn=LINK_SECONDS,
        )

    def arrived(self) -> list[ArrivedPart]:
        """The parts that are there, by number; all of them if they are put together already."""
        try:
            return latest_parts(self._listed_parts())
        except ClientError as error:
            if not _is_gone(error):
                raise
        if self._object_size() != self.upload.size:
            return []
        return [
            ArrivedPart(number, size_of_part(self.upload, number), "")
            for number in range(1, self.upload.part_count + 1)
        ]

    def finish(self) -> list[ArrivedPart]:
        """Have the bucket put the parts together. Raises UploadConflict if they are not all there.

        Two requests may do it at once, or one once more after the first was cut off: the object is what counts.
        """
        arrived = self.arrived()
        check_all_arrived(self.upload, arrived)
        parts = [{"PartNumber": part.number, "ETag": part.etag} for part in arrived]
        try:
            self._client.complete_multipart_upload(**self._multipart, MultipartUpload={"Parts": parts})
        except ClientError as error:
            if not _is_gone(error):
                raise
        if self._object_size() != self.upload.size:
            raise UploadConflict("The bucket does not have the whole of this upload. Begin a new one.")
        return arrived

    def discard(self) -> None:
        """Have the bucket forget the parts and the object. Harmless when there are none."""
        try:
            self._client.abort_multipart_upload(**self._multipart)
        except ClientError as error:
            if not _is_gone(error):
                raise
        self._client.delete_object(**self._object)

    def last_arrival(self) -> datetime | None:
        """When the last part came; None if none is there."""
        try:
            return max((part["LastModified"] for part in self._listed_parts()), default=None)
        except ClientError as error:
            if not _is_gone(error):
                raise
            return None

    def _listed_parts(self) -> Iterator[dict[str, Any]]:
        for page in self._client.get_paginator("list_parts").paginate(**self._multipart):
            yield from page.get("Parts", [])

    def _object_size(self) -> int | None:
        with suppress(FileNotFoundError):
            return self.storage.describe(str(self.upload.file.name)).size
        return None


def latest_parts(listed: Iterable[dict[str, Any]]) -> list[ArrivedPart]:
    """The parts of an answer of list_parts, by number; of one that was sent several times the last.

    S3 lists each part once, but SeaweedFS also those that were replaced, with times in whole seconds. Where these do
    not tell which of different contents came last, the part counts as not there, so that it is sent again.
    """
    newest: dict[int, list[dict[str, Any]]] = {}
    for part in listed:
        known = newest.setdefault(part["PartNumber"], [])
        if known and part["LastModified"] > known[0]["LastModified"]:
            known.clear()
        if not known or part["LastModified"] == known[0]["LastModified"]:
            known.append(part)
    return [
        ArrivedPart(number, parts[0]["Size"], parts[0]["ETag"])
        for number, parts in sorted(newest.items())
        if len({part["ETag"] for part in parts}) == 1
    ]


def _is_gone(error: ClientError) -> bool:
    return error.response["Error"]["Code"] == "NoSuchUpload"


def abort_forgotten(storage: ObjectStorage, folder: str, known: set[str], before: datetime) -> int:
    """Abort multipart uploads below ``folder`` begun before then that no row knows, and say how many.

    They are left when the server stops between the bucket's answer and the commit; the bucket charges for them.
    """
    client, count = storage.client, 0
    pages = client.get_paginator("list_multipart_uploads").paginate(
        Bucket=storage.bucket_name, Prefix=storage.object_key(f"{folder}/")
    )
    for forgotten in [one for page in pages for one in page.get("Uploads", [])]:
        if forgotten["UploadId"] not in known and forgotten["Initiated"] < before:
            with suppress(client.exceptions.NoSuchUpload):
                client.abort_multipart_upload(
                    Bucket=storage.bucket_name, Key=forgotten["Key"], UploadId=forgotten["UploadId"]
                )
                count += 1
    return count
