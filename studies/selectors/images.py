"""Which images of the catalogue a study may show."""

from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from imagedb.models import Image, ImageKind, Prediction, Visibility
from imagedb.selectors import visible_images
from studies.models import Study


def _images_for(study: Study) -> QuerySet[Image]:
    """What the study may show to participants: of private images only those that its creator may see.

    These are its own imports and the images of its groups.
    """
    if study.created_by is None:
        return Image.objects.exclude(visibility=Visibility.PRIVATE)
    return visible_images(study.created_by)


def _once(images: QuerySet[Image]) -> QuerySet[Image]:
    """Each picture once: every group of accounts has its own copy, and the creator may see several of them."""
    earlier = images.filter(original_sha256=OuterRef("original_sha256"), pk__lt=OuterRef("pk"))
    return images.exclude(Exists(earlier))


def usable_clean_images(study: Study) -> QuerySet[Image]:
    """Clean images, but for those the study's target model is known to misclassify.

    Demonstration images stay with demonstration attacks, so that neither gets into the other's data.
    """
    misclassified = Prediction.objects.filter(target_model=study.target_model_id).exclude(
        predicted_class=F("image__image_class")
    )
    return _once(
        _images_for(study)
        .filter(kind=ImageKind.CLEAN, is_demo=study.attack.is_demo)
        .exclude(pk__in=misclassified.values("image"))
    )


def usable_modified_images(study: Study) -> QuerySet[Any]:
    """Modified images of the study's pair. (The database holds none that the target model still recognises.)

    Adds ``usable_source_id``: the usable clean image that shows what it was made from, which may be another group's
    copy of its source; the source itself if there is none.
    """
    same_picture = usable_clean_images(study).filter(original_sha256=OuterRef("source__original_sha256"))
    return _once(
        _images_for(study).filter(kind=ImageKind.MODIFIED, attack=study.attack_id, target_model=study.target_model_id)
    ).annotate(usable_source_id=Coalesce(Subquery(same_picture.values("pk")[:1]), F("source_id")))
