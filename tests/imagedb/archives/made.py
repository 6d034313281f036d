"""Stored files and archives for tests, without a database."""

import hashlib
import io
import zlib
from collections.abc import Iterable

from imagedb.archives import ArchivedImage, ArchivedPrediction, Layout, StoredFile, StoredPart, blocks


class Contents:
    """Stored files in memory; reads as a storage does, and counts."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.reads = 0

    def __call__(self, part: StoredPart) -> bytes:
        self.reads += 1
        content = self.contents[part.name]
        assert len(content) == part.size
        return content[part.offset : part.offset + part.length]

    def stored(self, name: str) -> StoredFile:
        content = self.contents[name]
        return StoredFile(name, len(content), zlib.crc32(content), hashlib.sha256(content).hexdigest())


def zeros(part: StoredPart) -> bytes:
    """The content of files of any size that hold nothing but zeros."""
    return bytes(part.length)


def whole(layout: Layout, read) -> bytes:
    return b"".join(blocks(layout.pieces(), read))


class LayoutFile(io.RawIOBase):
    """An archive as a file that is made where it is read, so that programs can jump about in one of any size."""

    def __init__(self, layout: Layout, read) -> None:
        self.layout, self.content, self.position = layout, read, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.layout.length}[whence]
        return self.position

    def read(self, size: int = -1) -> bytes:
        stop = self.layout.length if size < 0 else self.position + size
        content = b"".join(blocks(self.layout.pieces(self.position, stop), self.content))
        self.position += len(content)
        return content


def image(number: int, file: StoredFile, **values) -> ArchivedImage:
    """An adversarial example, unless ``values`` say otherwise."""
    return ArchivedImage(
        **{
            "id": f"{number:08}-0000-4000-8000-000000000000",
            "kind": "modified",
            "class_index": 281,
            "synset": "n02123045",
            "attack": "cadv",
            "target_model": "resnet-50",
            "file": file,
            "source_id": "5abcdef0-0000-4000-8000-000000000000",
            "source_file_name": "original/5a/5abc.webp",
            "original_filename": "cadv/cat.png",
            "width": 64,
            "height": 48,
            "comparison": "same_size",
            "linf": 8,
            "l2": 1.5,
            "changed_share": 0.25,
            "ssim": 0.875,
            "ciede2000": 0.0,
            "licence": "CC0-1.0",
            "attribution": "Somebody",
            "predictions": (ArchivedPrediction("resnet-50", 282, 0.5), ArchivedPrediction("vit", 281, None)),
            **values,
        }
    )


def clean(number: int, file: StoredFile, **values) -> ArchivedImage:
    """A clean image."""
    nothing = dict.fromkeys(("linf", "l2", "changed_share", "ssim", "ciede2000"))
    texts = dict.fromkeys(("attack", "target_model", "source_id", "source_file_name", "comparison"), "")
    return image(number, file, **{"kind": "clean", **texts, **nothing, "predictions": (), **values})


def samples(names: Iterable[str]) -> dict[str, list[str]]:
    """Files of a tar by sample, as WebDataset groups them: by all that precedes the first dot of the base name.

    What is in a folder __like_this__ is skipped, and what has no dot. A sample's files must follow each other.
    """
    grouped: dict[str, list[str]] = {}
    last = None
    for name in names:
        folder, _, base = name.rpartition("/")
        if (name.startswith("__") and folder.endswith("__")) or "." not in base:
            continue
        key = f"{folder}/{base.partition('.')[0]}"
        assert key == last or key not in grouped, f"{name} is apart from its sample"
        grouped.setdefault(key, []).append(base.partition(".")[2])
        last = key
    return grouped
