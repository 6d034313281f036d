"""Images below a prefix of an S3 bucket, as the files of an import. Pure: the client is handed in.

Large sets are copied into the bucket by other means than a browser (``aws s3 sync``, rclone), and imported from there.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from typing import IO, Any

from botocore.exceptions import ClientError

from imagedb.image_files import MAX_FILE_BYTES, MAX_MANIFEST_BYTES, FileProblem, Listing, too_large
from imagedb.manifest import CONTROL_CHARACTERS

# The bucket also holds the site's own files: private images and uploads of other groups. An import of those would hand
# them to whoever asked for it, so imports read below this prefix only, where the site itself keeps nothing.
INCOMING = "incoming/"

GONE = {"NoSuchKey", "404"}
PART_BYTES = 1024 * 1024


def incoming_prefix(prefix: str) -> str:
    """The prefix in its one form, ``incoming/.../``. Raises FileProblem if imports must not read there."""
    path = prefix.strip().strip("/") + "/"
    # Some servers keep objects as files and follow "..", as S3 itself does not.
    is_plain = not {"", ".", ".."} & set(path[:-1].split("/")) and not CONTROL_CHARACTERS.search(path)
    if not path.startswith(INCOMING) or path == INCOMING or not is_plain:
        raise FileProblem(
            f"{prefix!r} is not a prefix below {INCOMING}; copy the images to {INCOMING}NAME/ and import that"
        )
    return path


class PrefixFiles(Listing[tuple[str, int]]):
    """The objects below a prefix, by their names below it. Sizes are judged by the listing, before any download.

    Errors of the service itself (no connection, no permission) are botocore's: another try may mend them.
    """

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        """``client`` is boto3's for S3. Raises FileProblem for a prefix that is not below ``incoming/``."""
        prefix = incoming_prefix(prefix)
        super().__init__(f"the prefix {prefix} of the bucket", "prefix")
        self._client = client
        self._bucket = bucket
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for entry in page.get("Contents", ()):
                # S3 consoles make an empty object "folder/" for a folder.
                if not entry["Key"].endswith("/"):
                    self._add(entry["Key"].removeprefix(prefix), (entry["Key"], entry["Size"]))
        self.names = sorted(self._places)

    def read(self, name: str) -> bytes:
        return b"".join(self._content(name, MAX_FILE_BYTES))

    def open_manifest(self, name: str) -> IO[bytes]:
        # Fetched whole before it is read: connections do not wait until all its rows are dealt with.
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            for part in self._content(name, MAX_MANIFEST_BYTES):
                file.write(part)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def _content(self, name: str, limit: int) -> Iterator[bytes]:
        key, size = self._places[name]
        if size > limit:
            raise FileProblem(too_large(name, size, limit))
        try:
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in GONE:
                raise FileProblem(f"{name} is not in the bucket any more") from error
            raise
        size = 0
        with closing(body):
            for part in body.iter_chunks(PART_BYTES):
                size += len(part)
                if size > limit:  # the object has been replaced since it was listed
                    raise FileProblem(too_large(name, size, limit))
                yield part
