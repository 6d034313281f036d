"""Collections and predictions for tests."""

import itertools
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from imagedb.models import Collection, CollectionVersion, Image, ImageClass, Prediction, TargetModel
from tests import factories

_numbers = itertools.count(1)


def collection(**fields: Any) -> Collection:
    number = next(_numbers)
    return Collection.objects.create(**{"name": f"Collection {number}", "slug": f"collection-{number}", **fields})


def version(*images: Image, of: Collection | None = None, **fields: Any) -> CollectionVersion:
    """A draft with these images, ready to be frozen but for what the images lack."""
    values = {"version": "1.0", "licence": "CC BY 4.0", "citation": "Somebody, 2026", **fields}
    made = CollectionVersion.objects.create(collection=of or collection(), **values)
    made.images.add(*images)
    return made


def freeze_by_hand(made: CollectionVersion) -> CollectionVersion:
    """Mark it as frozen, without looking and without a true manifest."""
    made.frozen_at, made.manifest, made.manifest_sha256 = timezone.now(), "manifest/no.jsonl", "0" * 64
    made.save()
    return made


def predict(
    image: Image, model: TargetModel, answer: ImageClass | None = None, confidence: float | None = 0.9
) -> Prediction:
    """What the model says; without an answer, the right one."""
    return Prediction.objects.create(
        image=image, target_model=model, predicted_class=answer or image.image_class, confidence=confidence
    )


def account(name: str, **fields: Any) -> User:
    return User.objects.create_user(name, **fields)


def other_class() -> ImageClass:
    return factories.image_class(7)
