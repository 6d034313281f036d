"""What may be read of the catalogue, and how it is joined for reading."""

from typing import Any

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Case, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery, When

from imagedb.models import Image, ImageKind, Prediction, Visibility


def visible_images(user: AbstractUser | AnonymousUser) -> QuerySet[Image]:
    """The images a user may see. The one place that decides it.

    Anybody: public ones. With an account: registered ones too, and the user's own. Staff who may view images in the
    admin: all.
    """
    if not user.is_authenticated:
        return Image.objects.filter(visibility=Visibility.PUBLIC)
    if user.is_staff and user.has_perm("imagedb.view_image"):
        return Image.objects.all()
    return Image.objects.filter(
        Q(visibility__in=[Visibility.PUBLIC, Visibility.REGISTERED]) | Q(uploaded_by_id=user.pk)
    )


def _predictions() -> QuerySet[Prediction]:
    return Prediction.objects.filter(image=OuterRef("pk"))


def _predictions_of_own_target_model() -> QuerySet[Prediction]:
    return _predictions().filter(target_model=OuterRef("target_model"))


def is_verified() -> Case:
    """For ``Image`` querysets: a target model's answer is known, for a modified image that of its own target model."""
    return Case(
        When(kind=ImageKind.MODIFIED, then=Exists(_predictions_of_own_target_model())),
        default=Exists(_predictions()),
    )


def is_as_intended() -> Case:
    """For ``Image`` querysets: the answers known are as they should be; false without any.

    The target model of a modified image must name another class than the image's own, and every model that was
    asked about a clean image must name its class.
    """
    own_class = Q(predicted_class=OuterRef("image_class"))
    return Case(
        When(kind=ImageKind.MODIFIED, then=Exists(_predictions_of_own_target_model().exclude(own_class))),
        default=Exists(_predictions()) & ~Exists(_predictions().exclude(own_class)),
    )


def images_with_details(user: AbstractUser | AnonymousUser) -> QuerySet[Any]:
    """The images a user may see, with all that describes them, in a constant number of queries.

    Adds ``is_verified``, and ``visible_source_id``: the public id of the source, empty if the user may not see that.
    """
    source = visible_images(user).filter(pk=OuterRef("source_id")).values("public_id")
    return (
        visible_images(user)
        .annotate(is_verified=is_verified(), visible_source_id=Subquery(source))
        .select_related("image_class", "attack", "target_model")
        .prefetch_related(
            Prefetch(
                "predictions",
                Prediction.objects.select_related("predicted_class", "target_model").order_by(F("target_model__slug")),
            )
        )
    )
