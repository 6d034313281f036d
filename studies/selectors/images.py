"""Which images of the catalogue a study may show."""

from django.db.models import F, QuerySet

from imagedb.models import Image, ImageKind, Prediction, Visibility
from imagedb.selectors import visible_images
from studies.models import Study


def _images_for(study: Study) -> QuerySet[Image]:
    """What the study may show to participants: of private images only those that its creator may see."""
    if study.created_by is None:
        return Image.objects.exclude(visibility=Visibility.PRIVATE)
    return visible_images(study.created_by)


def usable_clean_images(study: Study) -> QuerySet[Image]:
    """Clean images, but for those the study's target model is known to misclassify.

    Demonstration images stay with demonstration attacks, so that neither gets into the other's data.
    """
    misclassified = Prediction.objects.filter(target_model=study.target_model_id).exclude(
        predicted_class=F("image__image_class")
    )
    return (
        _images_for(study)
        .filter(kind=ImageKind.CLEAN, is_demo=study.attack.is_demo)
        .exclude(pk__in=misclassified.values("image"))
    )


def usable_modified_images(study: Study) -> QuerySet[Image]:
    """Modified images of the study's pair, but for those its target model is known to classify correctly still."""
    unsuccessful = Prediction.objects.filter(
        target_model=study.target_model_id, predicted_class=F("image__image_class")
    )
    return (
        _images_for(study)
        .filter(kind=ImageKind.MODIFIED, attack=study.attack_id, target_model=study.target_model_id)
        .exclude(pk__in=unsuccessful.values("image"))
    )
