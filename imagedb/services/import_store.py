"""What an import writes: the files of an image, its row, its prediction, and the record of the manifest's row."""

import hashlib
from collections.abc import Iterable

from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import transaction

from imagedb import pixels
from imagedb.models import Image, ImageClass, ImageKind, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.services.import_rules import Candidate, Named

Result = ImportRow.Result


def new_image(
    candidate: Candidate, decoded: pixels.DecodedImage, rendition: bytes, batch: ImportBatch, *, is_demo: bool
) -> Image:
    """The row's image, not saved, and without its files."""
    return Image(
        kind=candidate.row.kind,
        image_class=candidate.image_class,
        source=candidate.source,
        attack=candidate.attack,
        target_model=candidate.target_model if candidate.row.kind == ImageKind.MODIFIED else None,
        original_filename=candidate.row.filename,
        original_sha256=candidate.digest,
        original_bytes=len(candidate.content),
        original_format=decoded.format,
        original_mode=decoded.mode,
        rendition_sha256=hashlib.sha256(rendition).hexdigest(),
        width=decoded.width,
        height=decoded.height,
        visibility=batch.visibility,
        licence=batch.licence,
        attribution=batch.attribution,
        is_demo=is_demo,
        uploaded_by=batch.created_by,
    )


def store(
    candidate: Candidate, image: Image, decoded: pixels.DecodedImage, rendition: bytes, batch: ImportBatch
) -> None:
    """Write the files of a new image, then its rows in one transaction; if that fails, remove the files again."""
    contents = (
        (image.original, f"original{pixels.ENDINGS[decoded.format]}", candidate.content),
        (image.rendition, "rendition.png", rendition),
        (image.thumbnail, "thumbnail.jpg", pixels.thumbnail(decoded.image)),
    )
    stored: list[tuple[Storage, str]] = []
    try:
        for field_file, name, content in contents:
            field_file.save(name, ContentFile(content), save=False)
            stored.append((field_file.storage, str(field_file.name)))
        with transaction.atomic():
            image.attack = _saved(candidate.attack)
            target_model = _saved(candidate.target_model)
            image.target_model = target_model if image.kind == ImageKind.MODIFIED else None
            image.import_batch = batch
            image.save()
            if target_model and candidate.predicted_class:
                _predict(image, target_model, candidate.predicted_class, candidate.row.confidence)
            record_row(batch, candidate.row.number, candidate.row.filename, Result.IMPORTED, image, decoded.notes)
    except BaseException:
        for storage, stored_name in stored:
            storage.delete(stored_name)
        raise


def complete(candidate: Candidate, existing: Image) -> list[str]:
    """Add to an image that is there what the row knows more: its target model, a new or changed prediction.

    Returns what was added, for the record.
    """
    messages = []
    target_model = _saved(candidate.target_model)
    if target_model and existing.kind == ImageKind.MODIFIED and existing.target_model is None:
        existing.target_model = target_model
        existing.save(update_fields=["target_model"])
        messages.append(f"its target model was set to {target_model}")
    if target_model and candidate.predicted_class:
        prediction = Prediction.objects.filter(image=existing, target_model=target_model).first()
        if prediction is None:
            _predict(existing, target_model, candidate.predicted_class, candidate.row.confidence)
            messages.append("its prediction was added")
        elif _differs(prediction, candidate):
            prediction.predicted_class = candidate.predicted_class
            prediction.confidence = candidate.row.confidence
            prediction.save(update_fields=["predicted_class", "confidence"])
            messages.append("its prediction was updated")
    return messages


def record_row(
    batch: ImportBatch,
    row_number: int,
    filename: str,
    result: str,
    image: Image | None = None,
    messages: Iterable[str] = (),
) -> None:
    """Note what became of a row of the manifest."""
    ImportRow.objects.update_or_create(
        batch=batch,
        row_number=row_number,
        defaults={"filename": filename[:255], "result": result, "image": image, "message": "; ".join(messages)},
    )


def _differs(prediction: Prediction, candidate: Candidate) -> bool:
    """Whether the row says something else than the catalogue. A row without a confidence says nothing of it."""
    confidence = candidate.row.confidence
    return prediction.predicted_class != candidate.predicted_class or (
        confidence is not None and confidence != prediction.confidence
    )


def _predict(image: Image, target_model: TargetModel, predicted: ImageClass, confidence: float | None) -> None:
    Prediction.objects.create(image=image, target_model=target_model, predicted_class=predicted, confidence=confidence)


def _saved(named: Named | None) -> Named | None:
    """The saved row of an attack or target model; ``named`` itself stays as it was, in case of a roll-back."""
    if named is None or named.pk is not None:
        return named
    values = {"name": named.name, "is_demo": named.is_demo}
    return type(named)._default_manager.get_or_create(slug=named.slug, defaults=values)[0]
