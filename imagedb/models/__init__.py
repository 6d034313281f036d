"""The catalogue: what was attacked, how, and the images that came of it."""

from imagedb.models.attacks import Attack, AttackEvaluation, AttackFamily, TargetModel, ThreatModel
from imagedb.models.classes import ImageClass
from imagedb.models.collections import (
    Collection,
    CollectionImage,
    CollectionVersion,
    CurationAction,
    CurationLogEntry,
)
from imagedb.models.images import Comparison, Image, ImageKind, Prediction, Visibility
from imagedb.models.imports import ImportBatch, ImportChunk, ImportRow
from imagedb.models.terms import TermsAcceptance
from imagedb.models.uploads import Upload, UploadPart, UploadStatus

__all__ = [
    "Attack",
    "AttackEvaluation",
    "AttackFamily",
    "Collection",
    "CollectionImage",
    "CollectionVersion",
    "Comparison",
    "CurationAction",
    "CurationLogEntry",
    "Image",
    "ImageClass",
    "ImageKind",
    "ImportBatch",
    "ImportChunk",
    "ImportRow",
    "Prediction",
    "TargetModel",
    "TermsAcceptance",
    "ThreatModel",
    "Upload",
    "UploadPart",
    "UploadStatus",
    "Visibility",
]
