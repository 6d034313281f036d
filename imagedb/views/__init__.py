"""Pages of the catalogue, and the files that they show. Who may see what is the selectors' business."""

from imagedb.views.collections import collection, collection_version, collections
from imagedb.views.files import difference, image_file, thumbnail
from imagedb.views.gallery import gallery
from imagedb.views.images import image

__all__ = [
    "collection",
    "collection_version",
    "collections",
    "difference",
    "gallery",
    "image",
    "image_file",
    "thumbnail",
]
