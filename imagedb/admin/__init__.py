"""The catalogue's pages for researchers: attacks, target models, classes, images, imports and collections."""

from imagedb.admin.collections import CollectionAdmin, CollectionVersionAdmin, CurationLogEntryAdmin
from imagedb.admin.evaluations import AttackEvaluationAdmin
from imagedb.admin.images import ImageAdmin
from imagedb.admin.imports import ImportBatchAdmin, ImportRowAdmin
from imagedb.admin.names import AttackAdmin, ImageClassAdmin, TargetModelAdmin
from imagedb.admin.terms import TermsAcceptanceAdmin

__all__ = [
    "AttackAdmin",
    "AttackEvaluationAdmin",
    "CollectionAdmin",
    "CollectionVersionAdmin",
    "CurationLogEntryAdmin",
    "ImageAdmin",
    "ImageClassAdmin",
    "ImportBatchAdmin",
    "ImportRowAdmin",
    "TargetModelAdmin",
    "TermsAcceptanceAdmin",
]
