"""Archives of images whose every byte is known before a file is read. Pure: no Django, no database.

Size, CRC-32 and SHA-256 of each image are in the database, and nothing is compressed, so that an archive's length,
its tag and where each file lies in it follow from rows alone. That is what makes a download resumable: any range of
bytes can be made without making what precedes it.

``zip`` and ``tar`` say what the formats ask for, ``layout`` keeps it in a file, ``image_set`` says what is in an
archive of images, ``reading`` turns a layout and stored files into blocks of bytes, and ``byte_range`` understands
HTTP's ranges.
"""

from imagedb.archives.byte_range import ByteRange, UnsatisfiableRange, requested_range
from imagedb.archives.image_set import ArchivedImage, ArchivedPrediction, ArchiveType, plan_archive
from imagedb.archives.layout import Layout, StoredFile, StoredPart
from imagedb.archives.reading import ContentLost, LocalFiles, blocks, prefetched_blocks

__all__ = [
    "ArchiveType",
    "ArchivedImage",
    "ArchivedPrediction",
    "ByteRange",
    "ContentLost",
    "Layout",
    "LocalFiles",
    "StoredFile",
    "StoredPart",
    "UnsatisfiableRange",
    "blocks",
    "plan_archive",
    "prefetched_blocks",
    "requested_range",
]
