"""The catalogue's pages for researchers: attacks, target models, classes, images and imports."""

from imagedb.admin.images import ImageAdmin
from imagedb.admin.imports import ImportBatchAdmin, ImportRowAdmin
from imagedb.admin.names import AttackAdmin, ImageClassAdmin, TargetModelAdmin

__all__ = ["AttackAdmin", "ImageAdmin", "ImageClassAdmin", "ImportBatchAdmin", "ImportRowAdmin", "TargetModelAdmin"]
