"""Where archives read stored files from: a folder, or a bucket through a few connections at once."""

from collections.abc import Iterable, Iterator
from typing import Any

from imagedb.archives import ContentLost, LocalFiles, StoredPart, blocks, prefetched_blocks
from imagedb.models import Image
from scooter_site.common.storage import LocalStorage


def stored_blocks(pieces: Iterable[bytes | StoredPart]) -> Iterator[bytes]:
    """The bytes of an archive's pieces, with the content of images from where they are stored.

    Raises ContentLost on the way.
    """
    # Originals and renditions are in the same storage.
    storage: Any = Image._meta.get_field("original").storage
    if isinstance(storage, LocalStorage):
        return blocks(pieces, LocalFiles(storage.location))
    return prefetched_blocks(pieces, ObjectFiles(storage))


class ObjectFiles:
    """Reads objects of a bucket. Safe to call from several threads."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        # Threads may share a client; the storage would make each of them one of its own, which takes a while.
        self._client = storage.client

    def __call__(self, part: StoredPart) -> bytes:
        """The bytes of a part. Raises ContentLost."""
        whole = part.length == part.size
        wanted = {} if whole else {"Range": f"bytes={part.offset}-{part.offset + part.length - 1}"}
        try:
            answer = self._client.get_object(
                Bucket=self._storage.bucket_name, Key=self._storage.object_key(part.name), **wanted
            )
            size = int(answer["ContentLength"] if whole else answer["ContentRange"].rpartition("/")[2])
            if size != part.size:
                answer["Body"].close()
                raise ContentLost(f"{part.name} has {size} bytes, the database says {part.size}")
            return answer["Body"].read()
        except (self._client.exceptions.ClientError, *self._storage.TRANSIENT_ERRORS) as error:
            raise ContentLost(f"{part.name} cannot be read: {error}") from error
