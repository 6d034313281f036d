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


def images_with_details(user: AbstractUser | AnonymousUser) -> QuerySet[Any]:
    """The images a user may see, with all that describes them, in a constant number of queries.

    Adds ``is_verified``: a target model's answer is known, for a modified image that of its own target model; and
    ``visible_source_id``: the public id of the source, empty if the user may not see that.
    """
    answers = Prediction.objects.filter(image=OuterRef("pk"))
    source = visible_images(user).filter(pk=OuterRef("source_id")).values("public_id")
    return (
        visible_images(user)
        .annotate(
            is_verified=Case(
                When(kind=ImageKind.MODIFIED, then=Exists(answers.filter(target_model=OuterRef("target_model")))),
                default=Exists(answers),
            ),
            visible_source_id=Subquery(source),
        )
        .select_related("image_class", "attack", "target_model")
        .prefetch_related(
            Prefetch(
                "predictions",
                Prediction.objects.select_related("predicted_class", "target_model").order_by(F("target_model__slug")),
            )
        )
    )
