"""The catalogue: what was attacked, how, and the images that came of it."""

from imagedb.models.attacks import Attack, TargetModel
from imagedb.models.classes import ImageClass
from imagedb.models.images import Image, ImageKind, Prediction, Visibility
from imagedb.models.imports import ImportBatch, ImportRow

__all__ = [
    "Attack",
    "Image",
    "ImageClass",
    "ImageKind",
    "ImportBatch",
    "ImportRow",
    "Prediction",
    "TargetModel",
    "Visibility",
]
